//! Webhooks from outside: `POST /hooks/{name}` reports an event to a trigger of the configuration.

use crate::http::{body::read_body_of, header_value::only, paths::HOOKS, reply::plain_error};
use a2a_hub_automation::triggers::{WebhookRefusal, WebhookResult};
use a2a_hub_rpc::{dispatcher::Dispatcher, retry_after::RETRY_AFTER_SECONDS};
use a2a_hub_triggers::webhook::{MAX_WEBHOOK, WEBHOOK_HEADERS, WebhookError, WebhookRequest};
use axum::{
    Json, Router,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde_json::json;
use std::collections::BTreeMap;

/// Route of the webhooks. It needs no token: the signature of a request is its right.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route(&format!("{HOOKS}{{name}}"), post(receive))
}

async fn receive(
    State(dispatcher): State<Dispatcher>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let headers = signed_headers(request.headers());
    let body = match read_body_of(&dispatcher, request, MAX_WEBHOOK).await {
        Ok(body) => body.to_vec(),
        Err(unread) => {
            return unread.answer(plain_error(unread.status, &unread.why.message));
        }
    };
    let request = WebhookRequest { headers, body };
    match dispatcher.hub().take_webhook(name, request).await {
        Ok(result) => answer(&result),
        Err(why) => refused(&why),
    }
}

/// The headers that a check may need. One that is there twice is left out.
fn signed_headers(headers: &HeaderMap) -> BTreeMap<&'static str, String> {
    let value = |name| {
        let value = only(headers, &HeaderName::from_static(name)).ok()??;
        Some((name, value.to_owned()))
    };
    WEBHOOK_HEADERS.into_iter().filter_map(value).collect()
}

fn answer(result: &WebhookResult) -> Response {
    match result {
        WebhookResult::Taken => {
            (StatusCode::ACCEPTED, Json(json!({ "status": "taken" }))).into_response()
        }
        WebhookResult::Repeated => Json(json!({ "status": "repeated" })).into_response(),
        WebhookResult::Ignored(why) => {
            Json(json!({ "status": "ignored", "reason": why })).into_response()
        }
    }
}

fn refused(why: &WebhookRefusal) -> Response {
    let status = match why {
        WebhookRefusal::Unknown => StatusCode::NOT_FOUND,
        WebhookRefusal::Invalid(WebhookError::Json(_)) => StatusCode::BAD_REQUEST,
        WebhookRefusal::Invalid(
            WebhookError::Header(_)
            | WebhookError::Unreadable(_)
            | WebhookError::Signature
            | WebhookError::Age,
        ) => StatusCode::UNAUTHORIZED,
        WebhookRefusal::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        WebhookRefusal::Secret | WebhookRefusal::Interrupted | WebhookRefusal::Storage(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    // The details of the store are the operator's.
    let is_storage = matches!(why, WebhookRefusal::Storage(_));
    let text = if is_storage { "the event cannot be stored now".into() } else { why.to_string() };
    let response = plain_error(status, &text);
    let is_later =
        matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let again = is_later.then(|| [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())]);
    (again, response).into_response()
}
