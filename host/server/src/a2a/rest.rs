//! Endpoints of official A2A: `/a2a` for the hub, `/agents/{id}` for each agent. Each endpoint
//! serves JSON-RPC itself, REST below `rest`, and its card at the well-known path.

use super::cards;
use crate::http::{
    body::{BodyError, read_body},
    caller::HttpPeer,
    context::{context, extensions_header, hub_url, version, with_extensions},
    origin_guard,
    paths::EndpointPath,
    reply::{TODAYS, answer, json_body, media, refusal, rest_answer},
};
use a2a_hub_protocol::{
    binding::rest::Verb,
    dialect::{Dialect, rest},
    error::{A2aError, ErrorKind},
};
use a2a_hub_rpc::{
    dispatcher::{Dispatcher, RequestContext},
    jsonrpc,
};
use axum::{
    Router,
    body::Bytes,
    extract::{ConnectInfo, Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};

/// Routes of all endpoints.
pub(crate) fn routes() -> Router<Dispatcher> {
    let paths =
        ["/a2a", "/a2a/", "/a2a/{*rest}", "/agents/{id}", "/agents/{id}/", "/agents/{id}/{*rest}"];
    paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(enter)))
}

async fn enter(
    State(dispatcher): State<Dispatcher>,
    ConnectInfo(caller): ConnectInfo<HttpPeer>,
    request: Request,
) -> Response {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().map(str::to_owned));
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let principal = origin_guard::principal(&request);
    let mut endpoint = match EndpointPath::parse(&path) {
        Ok(endpoint) => endpoint,
        Err(why) => return refusal(&why, TODAYS, None),
    };
    if let Some(name) = &endpoint.agent {
        // Resolves an alias to the agent's id, which owns card and tasks.
        match dispatcher.hub().named(name) {
            Ok(id) => endpoint.agent = Some(id),
            Err(why) => return refusal(&why, TODAYS, None),
        }
    }
    let url = hub_url(&dispatcher, &headers);
    let by_token = origin_guard::by_token(&caller, &headers).await;
    let endpoints = dispatcher.endpoints(&url, endpoint.agent.as_ref(), by_token);
    if let Some(file) = endpoint.subpath.strip_prefix(".well-known/") {
        let version = version(&headers, query.as_deref());
        let card_request =
            cards::CardRequest { caller: &principal, method: &method, headers: &headers, version };
        return cards::official(&dispatcher, card_request, file, endpoint.agent, &endpoints).await;
    }
    let query = query.as_deref();
    let of = context(principal, &url, endpoints, endpoint.agent, TODAYS, &headers, query);
    let (media, named_in) = (media(&headers), extensions_header(&headers));
    // Headers and body share the connection's buffer, which a long task would keep alive.
    drop(headers);
    let body = read_body(&dispatcher, request).await;
    let response = if endpoint.subpath.is_empty() {
        call(&dispatcher, &method, body, &of).await
    } else if let Some(path) = endpoint.subpath.strip_prefix("rest/") {
        rest_call(&dispatcher, &method, (path, query), media, body, &of).await
    } else {
        let why = format!("there is nothing at `{path}`");
        refusal(&A2aError::new(ErrorKind::MethodNotFound, why), TODAYS, None)
    };
    with_extensions(response, &of.active, named_in)
}

/// Handles a JSON-RPC request.
async fn call(
    dispatcher: &Dispatcher,
    method: &Method,
    body: Result<Bytes, BodyError>,
    of: &RequestContext<'_>,
) -> Response {
    if method != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response();
    }
    match body {
        Ok(body) => answer(dispatcher.respond(body, of).await, false),
        Err(unread) => {
            let text = jsonrpc::unreadable(of.spelled, &unread.why);
            unread.answer(json_body(text))
        }
    }
}

/// Handles a REST request.
async fn rest_call(
    dispatcher: &Dispatcher,
    method: &Method,
    (path, query): (&str, Option<&str>),
    media: Option<&'static str>,
    body: Result<Bytes, BodyError>,
    of: &RequestContext<'_>,
) -> Response {
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
    let rest::Request { wire, tenant, operation } = rest::read(verb, path, query, &body);
    drop(body);
    let dialect = Dialect::Official(wire);
    let spelled = match operation {
        Ok(operation) => match dispatcher.resolve_target(tenant.as_deref(), of.agent.as_ref()) {
            Ok(target) => dispatcher.carry_out(dialect, operation, target, of).await,
            Err(why) => Err(why.into()),
        },
        Err(why) => Err(of.unreadable(dialect, why).into()),
    };
    rest_answer(spelled, dialect, media, |answer| wire.echo_tenant(answer, tenant.as_deref()))
}
