//! What goes back over HTTP: answers of JSON-RPC and of REST, streams, refusals.

use super::{
    dispatcher::COME_AGAIN,
    jsonrpc::{Enveloped, Refused, Update},
    sse::{event_stream, frame, frames},
};
use a2a_hub_hub::Reply;
use a2a_hub_protocol::{
    dialect::{Dialect, Wire},
    error::A2aError,
    interface::{Binding, Version},
};
use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures::stream;

/// How an answer is spelled whose request does not tell its version.
pub(super) const TODAYS: Dialect =
    Dialect::Official(Wire { version: Version::V1, binding: Binding::JsonRpc });

/// JSON of which a client has said that it is A2A's.
const A2A_JSON: &str = "application/a2a+json";

/// What goes back over HTTP.
pub(super) fn answer(enveloped: Enveloped, sse: bool) -> Response {
    match enveloped {
        Ok(None) => StatusCode::NO_CONTENT.into_response(),
        Ok(Some(Reply::One(text))) if sse => {
            event_stream(stream::iter([Ok(frame(&Update { number: None, text, is_error: false }))]))
        }
        Ok(Some(Reply::Stream(answers))) => event_stream(frames(*answers)),
        // An error found before the first event is a plain answer, so that clients need not read a stream to find it.
        Ok(Some(Reply::One(text))) | Err(Refused { text, is_busy: false }) => json_body(text),
        Err(Refused { text, is_busy: true }) => {
            let again = [(header::RETRY_AFTER, COME_AGAIN.to_string())];
            (StatusCode::SERVICE_UNAVAILABLE, again, json_body(text)).into_response()
        }
    }
}

/// An answer of JSON-RPC.
pub(super) fn json_body(answer: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

/// A2A's own media type, if the client says that it speaks it.
pub(super) fn media(headers: &HeaderMap) -> Option<&'static str> {
    let said = [header::CONTENT_TYPE, header::ACCEPT];
    let mut said = said.iter().filter_map(|name| headers.get(name)?.to_str().ok());
    said.any(|media| media.to_ascii_lowercase().contains(A2A_JSON)).then_some(A2A_JSON)
}

/// An answer of REST.
pub(super) fn rest_body(text: String, media: Option<&'static str>) -> Response {
    ([(header::CONTENT_TYPE, media.unwrap_or("application/json"))], text).into_response()
}

/// A refusal as REST has it.
pub(super) fn refusal(why: &A2aError, dialect: Dialect, media: Option<&'static str>) -> Response {
    let status = StatusCode::from_u16(why.kind.official().http);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, rest_body(dialect.write_rest_error(why).to_string(), media)).into_response()
}
