//! What others find at well-known places: the cards of the hub and of its agents.

use super::jsonrpc::{Desk, answer_json};
use crate::hub::Reply;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::Operation,
};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// How long a card may be used without asking again, in seconds: a component that is replaced is soon known.
const FRESH: &str = "max-age=60";

/// The paths at which cards are found. The first is where A2A 0.2 looked, and the specification of the Local Hub does.
pub(super) fn routes() -> Router<Desk> {
    Router::new()
        .route("/.well-known/agent.json", get(hub_card))
        .route("/.well-known/agent-card.json", get(hub_card))
        .route("/.well-known/agents", get(all_cards))
        .route("/.well-known/agents/{file}", get(agent_card))
}

async fn hub_card(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    show(&desk, Ok(Operation::GetCard { agent: None }), &headers).await
}

async fn all_cards(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    show(&desk, Ok(Operation::ListCards), &headers).await
}

async fn agent_card(
    State(desk): State<Desk>,
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
    show(&desk, named.map(|id| Operation::GetCard { agent: Some(id) }), &headers).await
}

async fn show(desk: &Desk, wanted: Result<Operation, A2aError>, headers: &HeaderMap) -> Response {
    let reply = match wanted {
        Ok(wanted) => desk.hub().handle(wanted).await,
        Err(why) => Err(why),
    };
    match reply {
        Ok(Reply::One(answer)) => {
            fresh(answer_json(answer, &own_url(headers)).to_string(), headers)
        }
        // No card is a stream.
        Ok(Reply::Stream(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => {
            let found = why.kind != ErrorKind::AgentNotFound;
            let status =
                if found { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::NOT_FOUND };
            (status, Json(json!({ "error": why.to_hub_json() }))).into_response()
        }
    }
}

/// Where the client reached this hub: its `Host` header, which the guard has found to be one of the hub's own names.
pub(super) fn own_url(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("http://{host}/")
}

/// The card, or word that the client has it already.
fn fresh(card: String, headers: &HeaderMap) -> Response {
    let mut hash = DefaultHasher::new();
    card.hash(&mut hash);
    let tag = format!("\"{:016x}\"", hash.finish());
    let said = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let has_it = said.is_some_and(|tags| {
        tags.split(',').any(
            |one| matches!(one.trim().trim_start_matches("W/"), one if one == tag || one == "*"),
        )
    });
    let head = [(header::ETAG, tag), (header::CACHE_CONTROL, FRESH.to_owned())];
    if has_it {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    (head, [(header::CONTENT_TYPE, "application/json")], card).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_is_known_is_not_sent_again() {
        let ask = |known: Option<&str>| {
            let known = known.map(|tag| (header::IF_NONE_MATCH, tag.parse().unwrap()));
            fresh("{}".to_owned(), &known.into_iter().collect())
        };
        let first = ask(None);
        assert_eq!(first.status(), 200);
        assert_eq!(first.headers()[header::CACHE_CONTROL], FRESH);
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        assert_eq!(ask(Some(&format!("\"other\", W/{tag}"))).status(), 304);
        assert_eq!(ask(Some("\"other\"")).status(), 200);
    }
}
