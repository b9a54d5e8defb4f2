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
use futures::{FutureExt as _, Stream as FutureStream, StreamExt as _, stream};
use std::{convert::Infallible, time::Duration};
use tokio::time::timeout;

/// Python's A2A clients give up on a stream after 5 s without a byte.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// Bytes of events from which on no more of them are sent together.
const AT_ONCE: usize = 16 << 10;

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

/// What a stream tells, as server-sent events.
pub(super) fn frames(answers: Stream) -> impl FutureStream<Item = Result<Vec<u8>, Infallible>> {
    from_the_start(stream::unfold(answers, async |mut answers| {
        let next = async {
            let mut text = frame(&answers.next().await?);
            // What is there goes out together; nobody waits for more.
            while text.len() < AT_ONCE
                && let Some(Some(more)) = answers.next().now_or_never()
            {
                text.extend_from_slice(&frame(&more));
            }
            Some(text)
        };
        Some((Ok(kept_alive(next).await?), answers))
    }))
}

/// The events, after how soon to come back: who is hung up on for not reading cannot be told any more.
pub(super) fn from_the_start(
    events: impl FutureStream<Item = Result<Vec<u8>, Infallible>>,
) -> impl FutureStream<Item = Result<Vec<u8>, Infallible>> {
    let retry = format!("retry: {}\n", COME_AGAIN * 1_000).into_bytes();
    stream::iter([Ok(retry)]).chain(events)
}

/// The next event, or a comment if there is nothing to send for a while. Only events end with an empty line, for some clients read
/// an event without data into any other.
pub(super) async fn kept_alive(next: impl Future<Output = Option<Vec<u8>>>) -> Option<Vec<u8>> {
    timeout(KEEP_ALIVE, next).await.unwrap_or_else(|_| Some(b": ping\n".to_vec()))
}

/// An event with a name of its own.
pub(super) struct Named<'a> {
    /// What the event is called.
    pub(super) event: &'a str,
    /// The number after which a client can go on with `Last-Event-ID`.
    pub(super) number: u64,
    /// The event's data, in one line.
    pub(super) text: &'a str,
}

impl Named<'_> {
    /// The event, ready to be sent.
    pub(super) fn frame(&self) -> Vec<u8> {
        let Self { event, number, text } = self;
        format!("id: {number}\nevent: {event}\ndata: {text}\n\n").into_bytes()
    }
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
