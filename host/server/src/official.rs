//! The endpoints of official A2A: `/a2a` for the hub, `/agents/{id}` for each agent. JSON-RPC is at the endpoint itself,
//! REST below its `rest`, and its card where A2A looks for it.

use super::{
    cards,
    dispatcher::{Active, COME_AGAIN, Dispatcher, Done, HUB, RequestContext},
    http::{Unread, answer, event_stream, frames, last_event, read_body},
    http_listener::Caller,
    jsonrpc::{self, Response as RpcResponse, Stream},
    origin_guard,
};
use a2a_hub_core::access::Principal;
use a2a_hub_protocol::{
    binding::{jsonrpc::Beside, rest::Verb, service_params},
    card::Endpoints,
    dialect::{Dialect, Wire, rest},
    error::{A2aError, ErrorKind},
    hub::answer::AGENTS,
    id::AgentId,
    interface::{Binding, Version, check_version},
};
use axum::{
    Router,
    body::Bytes,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::Value;

/// What a client of 1.0 names its version in, as a header or in the query.
pub(super) const VERSION: HeaderName = HeaderName::from_static(service_params::VERSION);

/// What a client names extensions in: of 1.0, and of 0.3.
const EXTENSIONS: [HeaderName; 2] = [
    HeaderName::from_static(service_params::EXTENSIONS[0]),
    HeaderName::from_static(service_params::EXTENSIONS[1]),
];

/// How an answer is spelled whose request does not tell its version.
const TODAYS: Dialect = Dialect::Official(Wire { version: Version::V1, binding: Binding::JsonRpc });

/// JSON of which a client has said that it is A2A's.
const A2A_JSON: &str = "application/a2a+json";

/// The paths of all endpoints.
pub(super) fn routes() -> Router<Dispatcher> {
    let paths =
        ["/a2a", "/a2a/", "/a2a/{*rest}", "/agents/{id}", "/agents/{id}/", "/agents/{id}/{*rest}"];
    paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(enter)))
}

/// What a client is told whose request to an endpoint at `path` is no JSON; nothing if there is no endpoint.
pub(super) fn wrong_media(path: &str, why: &str) -> Option<Response> {
    let is_hub =
        path.strip_prefix(HUB).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !is_hub && !path.starts_with(AGENTS) {
        return None;
    }
    let why = A2aError::new(ErrorKind::ContentTypeNotSupported, why);
    if Place::of(path).is_ok_and(|place| place.below.starts_with("rest/")) {
        return Some(refusal(&why, TODAYS, None));
    }
    let text = jsonrpc::unreadable(TODAYS, &why);
    let response = answer(RpcResponse::Refused(text), false);
    Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, response).into_response())
}

/// What a path leads to.
#[derive(Debug, PartialEq)]
struct Place<'a> {
    /// The agent whose endpoint it is; none if it is the hub's.
    agent: Option<AgentId>,
    /// What is left of the path, without a slash at the beginning.
    below: &'a str,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Result<Self, A2aError> {
        let below = |endpoint: usize| {
            let below = &path[endpoint..];
            below.strip_prefix('/').unwrap_or(below)
        };
        if let Some(rest) = path.strip_prefix(AGENTS) {
            let id = rest.split('/').next().unwrap_or_default();
            let below = below(AGENTS.len() + id.len());
            let agent = AgentId::parse(id)
                .map_err(|why| A2aError::new(ErrorKind::AgentNotFound, why.to_string()))?;
            return Ok(Self { agent: Some(agent), below });
        }
        Ok(Self { agent: None, below: below(HUB.len()) })
    }
}

async fn enter(
    State(dispatcher): State<Dispatcher>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    request: Request,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (principal, headers) = (origin_guard::principal(&request), request.headers().clone());
    let place = match Place::of(uri.path()) {
        Ok(place) => place,
        Err(why) => return refusal(&why, TODAYS, None),
    };
    if let Some(agent) = place.agent.as_ref().filter(|agent| !dispatcher.hub().has(agent)) {
        let why = format!("no agent is called `{agent}`; `/.well-known/agents` lists them");
        return refusal(&A2aError::new(ErrorKind::AgentNotFound, why), TODAYS, None);
    }
    let url = cards::own_url(&dispatcher, &headers);
    let by_token = origin_guard::by_token(&caller, &headers).await;
    let endpoints = dispatcher.endpoints(&url, place.agent.as_ref(), by_token);
    if let Some(file) = place.below.strip_prefix(".well-known/") {
        let version = version(&headers, uri.query());
        let asked =
            cards::Asked { caller: &principal, method: &method, headers: &headers, version };
        return cards::official(&dispatcher, asked, file, place.agent, &endpoints).await;
    }
    let of = context(principal, &url, endpoints, place.agent, TODAYS, &headers, uri.query());
    let body = read_body(&dispatcher, request).await;
    let response = if place.below.is_empty() {
        call(&dispatcher, &method, body, &of).await
    } else if let Some(path) = place.below.strip_prefix("rest/") {
        rest_call(&dispatcher, &method, path, &uri, &headers, body, &of).await
    } else {
        let why = format!("there is nothing at `{}`", uri.path());
        refusal(&A2aError::new(ErrorKind::MethodNotFound, why), TODAYS, None)
    };
    with_extensions(response, &of.active, &headers)
}

/// JSON-RPC.
async fn call(
    dispatcher: &Dispatcher,
    method: &Method,
    body: Result<Bytes, Unread>,
    of: &RequestContext<'_>,
) -> Response {
    if method != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response();
    }
    match body {
        Ok(body) => answer(dispatcher.respond(&body, of).await, false),
        Err(unread) => {
            let text = jsonrpc::unreadable(of.spelled, &unread.why);
            unread.answer(answer(RpcResponse::Refused(text), false))
        }
    }
}

/// REST.
async fn rest_call(
    dispatcher: &Dispatcher,
    method: &Method,
    path: &str,
    uri: &Uri,
    headers: &HeaderMap,
    body: Result<Bytes, Unread>,
    of: &RequestContext<'_>,
) -> Response {
    let media = media(headers);
    let verb = match method.as_str() {
        "GET" | "HEAD" => Verb::Get,
        "POST" => Verb::Post,
        "DELETE" => Verb::Delete,
        _ => {
            let allow = [(header::ALLOW, "GET, HEAD, POST, DELETE")];
            return (StatusCode::METHOD_NOT_ALLOWED, allow).into_response();
        }
    };
    let body = match body {
        Ok(body) => body,
        Err(unread) => return unread.answer(refusal(&unread.why, TODAYS, media)),
    };
    let rest::Request { wire, tenant, operation } = rest::read(verb, path, uri.query(), &body);
    let dialect = Dialect::Official(wire);
    let done = match operation {
        Ok(operation) => dispatcher.carry_out(dialect, operation, of).await,
        Err(why) => Done::Refused(why),
    };
    match done {
        // Its client reads a body, whatever there is to tell.
        Done::One(Value::Null) => json_body("{}".to_owned(), media),
        Done::One(mut answer) => {
            wire.echo_tenant(&mut answer, tenant.as_deref());
            json_body(answer.to_string(), media)
        }
        Done::Stream(stream) => event_stream(frames(Stream::bare(dialect, stream))),
        Done::Refused(why) => refusal(&why, dialect, media),
        Done::Busy(why) => {
            let refusal = refusal(&why, dialect, media);
            ([(header::RETRY_AFTER, COME_AGAIN.to_string())], refusal).into_response()
        }
    }
}

/// The same context with what a client says beside its request: where the hub's own dialect is spoken, 1.0 may be.
pub(super) fn said_in_headers<'a>(
    of: RequestContext<'a>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> RequestContext<'a> {
    let version = check_version(version(headers, query));
    RequestContext { extensions: extensions(headers), version, ..of }
}

/// The version that a client names.
pub(super) fn version<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> Option<&'a str> {
    let named = |pair: &'a str| {
        let (name, value) = pair.split_once('=')?;
        name.eq_ignore_ascii_case(VERSION.as_str()).then_some(value)
    };
    let header = headers.get(&VERSION).map(|version| version.to_str().unwrap_or("?"));
    header.or_else(|| query?.split('&').find_map(named))
}

/// The context of a request with these headers, and this query, to an agent or to the hub.
pub(super) fn context<'a>(
    caller: Principal,
    url: &'a str,
    endpoints: Endpoints,
    agent: Option<AgentId>,
    spelled: Dialect,
    headers: &HeaderMap,
    query: Option<&str>,
) -> RequestContext<'a> {
    RequestContext {
        caller,
        url,
        heard: last_event(headers),
        spelled,
        endpoints: Some(endpoints),
        agent,
        extensions: extensions(headers),
        active: Active::default(),
        version: check_version(version(headers, query)),
        beside: Beside::Headers,
    }
}

/// The extensions that a client asks for.
pub(super) fn extensions(headers: &HeaderMap) -> Vec<String> {
    let named = EXTENSIONS.into_iter().flat_map(|name| headers.get_all(name));
    named.filter_map(|value| value.to_str().ok()).flat_map(service_params::listed).collect()
}

/// Tells which extensions were activated, in the header that the client named them in.
pub(super) fn with_extensions(
    mut response: Response,
    active: &Active,
    headers: &HeaderMap,
) -> Response {
    response.headers_mut().extend(activated(active, headers));
    response
}

/// The header that tells which extensions were activated, if any were.
pub(super) fn activated(active: &Active, headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    let name = EXTENSIONS.into_iter().find(|name| headers.contains_key(name))?;
    let active = active.all().join(", ");
    let active = HeaderValue::from_str(&active).ok().filter(|active| !active.is_empty())?;
    Some((name, active))
}

/// A2A's own media type, if the client says that it speaks it.
fn media(headers: &HeaderMap) -> Option<&'static str> {
    let said = [header::CONTENT_TYPE, header::ACCEPT];
    let mut said = said.iter().filter_map(|name| headers.get(name)?.to_str().ok());
    said.any(|media| media.to_ascii_lowercase().contains(A2A_JSON)).then_some(A2A_JSON)
}

fn json_body(text: String, media: Option<&'static str>) -> Response {
    ([(header::CONTENT_TYPE, media.unwrap_or("application/json"))], text).into_response()
}

fn refusal(why: &A2aError, dialect: Dialect, media: Option<&'static str>) -> Response {
    let status = StatusCode::from_u16(why.kind.official().http);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, json_body(dialect.write_rest_error(why).to_string(), media)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_an_endpoint() {
        let echo = AgentId::parse("echo").unwrap();
        for (path, agent, below) in [
            ("/a2a", None, ""),
            ("/a2a/", None, ""),
            ("/a2a/rest/v1/card", None, "rest/v1/card"),
            ("/agents/echo", Some(echo.clone()), ""),
            ("/agents/echo/", Some(echo.clone()), ""),
            ("/agents/echo/rest/tasks", Some(echo), "rest/tasks"),
        ] {
            assert_eq!(Place::of(path).unwrap(), Place { agent, below }, "{path}");
        }
        assert_eq!(Place::of("/agents/..%2Fx").unwrap_err().kind, ErrorKind::AgentNotFound);
    }

    #[test]
    fn a_version_comes_in_the_header_or_the_query() {
        let headers = |said: Option<&'static str>| {
            said.map(|said| (VERSION, HeaderValue::from_static(said))).into_iter().collect()
        };
        let query = Some("historyLength=1&A2A-Version=99.0");
        assert_eq!(version(&headers(None), None), None);
        assert_eq!(version(&headers(None), query), Some("99.0"));
        assert_eq!(version(&headers(Some("1.0")), query), Some("1.0"));
    }

    #[test]
    fn extensions_come_in_lists() {
        let headers: HeaderMap = [
            (EXTENSIONS[0].clone(), HeaderValue::from_static("urn:a, urn:b")),
            (EXTENSIONS[1].clone(), HeaderValue::from_static("urn:c,")),
        ]
        .into_iter()
        .collect();
        assert_eq!(extensions(&headers), ["urn:a", "urn:b", "urn:c"]);
    }
}
