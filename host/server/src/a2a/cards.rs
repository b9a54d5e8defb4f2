//! Cards of the hub and its agents at well-known URLs.

use crate::http::{
    caller::HttpPeer,
    context::{hub_url, version},
    origin_guard, reply,
};
use a2a_hub_clock as clock;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    card::Endpoints,
    error::{A2aError, ErrorKind},
    hub,
    id::AgentId,
    member,
    operation::{Answer, Operation},
};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Extension, Json, Router,
    extract::{ConnectInfo, Path, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{AppendHeaders, IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Cache lifetime of a card in seconds, short because a component may be replaced.
const FRESH: &str = "max-age=60";

/// File names of a card. A2A 0.2 and the Local Hub specification use the first.
const FILES: [&str; 2] = ["agent.json", "agent-card.json"];

/// Routes of the cards.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new()
        .route("/.well-known/{file}", get(root_card))
        .route("/.well-known/agents", get(all_cards))
        .route("/.well-known/agents/{file}", get(agent_card))
}

/// Returns the card of the hub, or of the agent configured for the root.
async fn root_card(
    State(dispatcher): State<Dispatcher>,
    ConnectInfo(caller): ConnectInfo<HttpPeer>,
    Extension(principal): Extension<Principal>,
    Path(file): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let agent = dispatcher.public_endpoints().root_agent.clone();
    let by_token = origin_guard::by_token(&caller, &headers).await;
    let endpoints = dispatcher.endpoints(&hub_url(&dispatcher, &headers), agent.as_ref(), by_token);
    let version = version(&headers, uri.query());
    let request =
        CardRequest { caller: &principal, method: &Method::GET, headers: &headers, version };
    official(&dispatcher, request, &file, agent, &endpoints).await
}

/// Caller and headers of a card request.
#[derive(Clone, Copy)]
pub(crate) struct CardRequest<'a> {
    pub(crate) caller: &'a Principal,
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// Requested version of A2A.
    pub(crate) version: Option<&'a str>,
}

/// Returns a card in official form: of 1.0 if requested, otherwise the hybrid form.
pub(crate) async fn official(
    dispatcher: &Dispatcher,
    CardRequest { caller, method, headers, version }: CardRequest<'_>,
    file: &str,
    agent: Option<AgentId>,
    endpoints: &Endpoints,
) -> Response {
    if !FILES.contains(&file) {
        let why = format!("there is nothing called `{file}` here; there are {}", FILES.join(", "));
        return refusal(&A2aError::new(ErrorKind::AgentNotFound, why));
    }
    if method != Method::GET && method != Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let is_hub = agent.is_none();
    match dispatcher.hub().handle(caller, None, Operation::GetCard { agent }).await {
        Ok(Reply::One(Answer::Card(of))) => {
            let mut card = if version.is_some_and(|version| version.trim().starts_with("1.")) {
                of.card.v1(endpoints)
            } else {
                let mut card = of.card.hybrid(endpoints);
                // Clients of the first file speak the Local Hub's dialect.
                if is_hub && file == FILES[0] {
                    of.card.add_local_hub(&mut card);
                    member::set(&mut card, "url", hub_url(dispatcher, headers));
                }
                card
            };
            dispatcher.declare_generations(&mut card);
            dispatcher.hub().sign_card(&mut card, &hub_url(dispatcher, headers));
            fresh(card.to_string(), clock::http_date(&of.since), headers)
        }
        // Unreachable: a card request is answered with a card.
        Ok(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => refusal(&why),
    }
}

async fn all_cards(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    show(&dispatcher, &principal, Ok(Operation::ListCards), &headers).await
}

async fn agent_card(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Response {
    let named = file.strip_suffix(".json").ok_or_else(|| {
        let why =
            format!("there is nothing called `{file}` here; an agent's card is at `<id>.json`");
        A2aError::new(ErrorKind::AgentNotFound, why)
    });
    let named = named.and_then(|id| {
        AgentId::parse(id).map_err(|why| A2aError::new(ErrorKind::AgentNotFound, why.to_string()))
    });
    show(&dispatcher, &principal, named.map(|id| Operation::GetCard { agent: Some(id) }), &headers)
        .await
}

async fn show(
    dispatcher: &Dispatcher,
    caller: &Principal,
    wanted: Result<Operation, A2aError>,
    headers: &HeaderMap,
) -> Response {
    let reply = match wanted {
        Ok(wanted) => dispatcher.hub().handle(caller, None, wanted).await,
        Err(why) => Err(why),
    };
    match reply {
        Ok(Reply::One(answer)) => fresh(
            hub::answer::write(answer, &hub_url(dispatcher, headers)).to_string(),
            None,
            headers,
        ),
        // Unreachable: a card request is never answered with a stream.
        Ok(Reply::Stream(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => refusal(&why),
    }
}

fn refusal(why: &A2aError) -> Response {
    (reply::status(why), Json(json!({ "error": why.to_hub_json() }))).into_response()
}

/// Response with the card, or 304 if the client's copy is current.
fn fresh(card: String, since: Option<String>, headers: &HeaderMap) -> Response {
    let mut hash = DefaultHasher::new();
    card.hash(&mut hash);
    let tag = format!("\"{:016x}\"", hash.finish());
    let has_it = is_current(&tag, since.as_deref(), headers);
    let head = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, FRESH.to_owned()),
        // Headers that the card depends on.
        (header::VARY, "A2A-Version, Authorization, Host".to_owned()),
    ];
    let head: Vec<_> =
        head.into_iter().chain(since.map(|since| (header::LAST_MODIFIED, since))).collect();
    let head = AppendHeaders(head);
    if has_it {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    (head, [(header::CONTENT_TYPE, "application/json")], card).into_response()
}

/// True if the client has the card with this tag and `Last-Modified` already. The date decides only
/// if the client names no tag (RFC 9110, sections 13.1.2 and 13.1.3).
fn is_current(tag: &str, since: Option<&str>, headers: &HeaderMap) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        let values = headers.get_all(header::IF_NONE_MATCH).iter();
        let mut tags =
            values.filter_map(|tags| tags.to_str().ok()).flat_map(|tags| tags.split(','));
        return tags.any(
            |one| matches!(one.trim().trim_start_matches("W/"), one if one == tag || one == "*"),
        );
    }
    let known = headers.get(header::IF_MODIFIED_SINCE).and_then(|date| date.to_str().ok());
    since.zip(known).is_some_and(|(since, known)| clock::is_unmodified(since, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmodified_card_gets_not_modified() {
        let since = "Sun, 06 Nov 1994 08:49:37 GMT";
        let ask = |named: &[(header::HeaderName, &str)]| {
            let headers = named.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            fresh("{}".to_owned(), Some(since.to_owned()), &headers.collect()).status().as_u16()
        };
        let date = header::IF_MODIFIED_SINCE;
        assert_eq!(ask(&[(date.clone(), since)]), 304);
        assert_eq!(ask(&[(date.clone(), "Sun, 06 Nov 1994 08:49:36 GMT")]), 200);
        assert_eq!(ask(&[(date.clone(), "yesterday")]), 200);
        let other = (header::IF_NONE_MATCH, "\"other\"");
        assert_eq!(ask(&[(date.clone(), since), other]), 200, "the tag takes precedence");
    }

    #[test]
    fn known_etag_gets_not_modified() {
        let ask = |known: Option<&str>| {
            let known = known.map(|tag| (header::IF_NONE_MATCH, tag.parse().unwrap()));
            fresh("{}".to_owned(), None, &known.into_iter().collect())
        };
        let first = ask(None);
        assert_eq!(first.status(), 200);
        assert_eq!(first.headers()[header::CACHE_CONTROL], FRESH);
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        assert_eq!(ask(Some(&format!("\"other\", W/{tag}"))).status(), 304);
        assert_eq!(ask(Some("\"other\"")).status(), 200);
    }
}
