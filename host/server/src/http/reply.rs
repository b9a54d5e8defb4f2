//! HTTP responses for JSON-RPC and REST: answers, streams and errors.

use super::sse::{event_stream, frame, frames};
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    dialect::{Dialect, Wire},
    error::A2aError,
    interface::{Binding, Version},
};
use a2a_hub_rpc::{
    dispatcher::{OperationRefusal, Spelled, SpelledAnswer},
    jsonrpc::{EncodedRefusal, Enveloped, Stream, Update},
    retry_after::RETRY_AFTER_SECONDS,
};
use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures::stream;
use serde_json::{Value, json};

/// Dialect of an error response to a request whose version is unknown.
pub(crate) const TODAYS: Dialect =
    Dialect::Official(Wire { version: Version::V1, binding: Binding::JsonRpc });

/// A2A's media type for JSON.
const A2A_JSON: &str = "application/a2a+json";

/// Converts a JSON-RPC result to an HTTP response.
pub(crate) fn answer(enveloped: Enveloped, sse: bool) -> Response {
    match enveloped {
        Ok(None) => StatusCode::NO_CONTENT.into_response(),
        Ok(Some(Reply::One(text))) if sse => {
            event_stream(stream::iter([Ok(frame(&Update { id: None, text, is_error: false }))]))
        }
        Ok(Some(Reply::Stream(answers))) => event_stream(frames(*answers)),
        // Errors before the first event are plain responses, so that clients need not parse a
        // stream.
        Ok(Some(Reply::One(text))) | Err(EncodedRefusal { text, is_busy: false }) => {
            json_body(text)
        }
        Err(EncodedRefusal { text, is_busy: true }) => {
            let again = [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())];
            (StatusCode::SERVICE_UNAVAILABLE, again, json_body(text)).into_response()
        }
    }
}

/// Response with a JSON-RPC answer.
pub(crate) fn json_body(answer: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Error response of an endpoint without a protocol: `{ "error": { "code", "message" } }`, with the
/// status as code.
pub(crate) fn plain_error(status: StatusCode, why: &str) -> Response {
    let body = json!({ "error": { "code": status.as_u16(), "message": why } });
    (status, Json(body)).into_response()
}

/// A2A's media type, if the client sends or accepts it.
pub(crate) fn media(headers: &HeaderMap) -> Option<&'static str> {
    let names = [header::CONTENT_TYPE, header::ACCEPT];
    let mut values = names.iter().filter_map(|name| headers.get(name)?.to_str().ok());
    values.any(|media| media.to_ascii_lowercase().contains(A2A_JSON)).then_some(A2A_JSON)
}

/// Response with a REST answer.
pub(crate) fn rest_body(text: impl Into<Body>, media: Option<&'static str>) -> Response {
    ([(header::CONTENT_TYPE, media.unwrap_or("application/json"))], text.into()).into_response()
}

/// Converts the result of an operation to a REST response. `complete` is called with an answer that
/// is no text yet.
pub(crate) fn rest_answer(
    spelled: Spelled,
    dialect: Dialect,
    media: Option<&'static str>,
    complete: impl FnOnce(&mut Value),
) -> Response {
    match spelled {
        // REST clients expect a JSON body even without a result.
        Ok(Reply::One(SpelledAnswer::Tree(Value::Null))) => rest_body("{}", media),
        Ok(Reply::One(SpelledAnswer::Text(answer))) => rest_body(answer, media),
        Ok(Reply::One(SpelledAnswer::Tree(mut answer))) => {
            complete(&mut answer);
            rest_body(answer.to_string(), media)
        }
        Ok(Reply::Stream(stream)) => event_stream(frames(Stream::bare(dialect, stream))),
        Err(OperationRefusal { why, is_busy }) => {
            let again = is_busy.then(|| [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())]);
            (again, refusal(&why, dialect, media)).into_response()
        }
    }
}

/// HTTP status of a refusal.
pub(crate) fn status(why: &A2aError) -> StatusCode {
    let status = StatusCode::from_u16(why.kind.official().http);
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Response with a REST error.
pub(crate) fn refusal(why: &A2aError, dialect: Dialect, media: Option<&'static str>) -> Response {
    let status = status(why);
    (status, rest_body(dialect.write_rest_error(why).to_string(), media)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, media type, `Retry-After`, and body.
    async fn told(enveloped: Enveloped, sse: bool) -> (u16, String, String, String) {
        let response = answer(enveloped, sse);
        let header = |name| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let (media, again) = (header(header::CONTENT_TYPE), header(header::RETRY_AFTER));
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 10).await.unwrap();
        (status, media, again, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn response_has_status_and_media_type() {
        let row = |status, media: &str, again: &str, body: &str| {
            (status, media.to_owned(), again.to_owned(), body.to_owned())
        };
        let result = || Ok(Some(Reply::One(b"{}".to_vec())));
        let refused = |is_busy| Err(EncodedRefusal { text: b"{}".to_vec(), is_busy });
        let json = "application/json";
        for sse in [false, true] {
            assert_eq!(told(Ok(None), sse).await, row(204, "", "", ""), "a notification");
            assert_eq!(told(refused(false), sse).await, row(200, json, "", "{}"));
            assert_eq!(told(refused(true), sse).await, row(503, json, "1", "{}"));
        }
        assert_eq!(told(result(), false).await, row(200, json, "", "{}"));
        let event = row(200, "text/event-stream", "", "data: {}\n\n");
        assert_eq!(told(result(), true).await, event, "where streams are, it is one event");
    }
}
