//! Server-sent events: what a stream tells, over HTTP.

use super::{
    dispatcher::COME_AGAIN,
    jsonrpc::{Stream, Update},
};
use axum::{
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use futures::{Stream as FutureStream, StreamExt as _, stream};
use std::{convert::Infallible, time::Duration};
use tokio::time::timeout;

/// Python's A2A clients give up on a stream after 5 s without a byte.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// A response whose body is these events.
pub(super) fn event_stream(
    frames: impl FutureStream<Item = Result<Vec<u8>, Infallible>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // For proxies that would hold the events back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

/// Server-sent events, with a comment whenever there was nothing to send for a while. How soon to come back is said
/// first: who is hung up on for not reading cannot be told any more. Only events end with an empty line, for some clients
/// read an event without data into any other.
pub(super) fn frames(answers: Stream) -> impl FutureStream<Item = Result<Vec<u8>, Infallible>> {
    let retry = format!("retry: {}\n", COME_AGAIN * 1_000).into_bytes();
    let events = stream::unfold(answers, async |mut answers| {
        match timeout(KEEP_ALIVE, answers.next()).await {
            Ok(Some(update)) => Some((Ok(frame(&update)), answers)),
            Ok(None) => None,
            Err(_) => Some((Ok(b": ping\n".to_vec()), answers)),
        }
    });
    stream::iter([Ok(retry)]).chain(events)
}

/// An event, by the number after which a client can go on with `Last-Event-ID`.
pub(super) fn frame(Update { number, text, is_error }: &Update) -> Vec<u8> {
    let id = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
    let name: &[u8] = if *is_error { b"event: error\n" } else { b"" };
    [id.as_bytes(), name, b"data: ", text, b"\n\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_carries_its_number() {
        let told = |number| {
            String::from_utf8(frame(&Update { number, text: b"{}".to_vec(), is_error: false }))
        };
        assert_eq!(told(Some(7)).unwrap(), "id: 7\ndata: {}\n\n");
        assert_eq!(told(None).unwrap(), "data: {}\n\n");
    }
}
