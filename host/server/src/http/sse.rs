//! Server-sent events of a stream, over HTTP.

use a2a_hub_rpc::{
    jsonrpc::{Stream, Update},
    retry_after::RETRY_AFTER_SECONDS,
};
use axum::{
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use futures::{FutureExt as _, Stream as FutureStream, StreamExt as _, stream};
use std::{convert::Infallible, time::Duration};
use tokio::time::timeout;

/// Interval of keep-alive comments. Python's A2A clients give up on a stream after 5 s without
/// data.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// Number of bytes after which no further events are sent in one chunk.
const AT_ONCE: usize = 16 << 10;

/// Response with a stream of encoded events.
pub(crate) fn event_stream(
    frames: impl FutureStream<Item = Result<Vec<u8>, Infallible>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // Disables response buffering in proxies.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

/// Encodes the answers of a stream as server-sent events.
pub(crate) fn frames(answers: Stream) -> impl FutureStream<Item = Result<Vec<u8>, Infallible>> {
    from_the_start(stream::unfold(answers, async |mut answers| {
        let next = async {
            let mut text = frame(&answers.next().await?);
            // Sends available events together, without waiting for more.
            while text.len() < AT_ONCE
                && let Some(Some(more)) = answers.next().now_or_never()
            {
                text.extend_from_slice(&frame(&more));
            }
            Some(text)
        };
        Some((Ok(with_keep_alive(next).await?), answers))
    }))
}

/// Prepends the retry delay to the events. It comes first, because a client that is disconnected
/// for not reading cannot receive it later.
pub(crate) fn from_the_start(
    events: impl FutureStream<Item = Result<Vec<u8>, Infallible>>,
) -> impl FutureStream<Item = Result<Vec<u8>, Infallible>> {
    let retry = format!("retry: {}\n", RETRY_AFTER_SECONDS * 1_000).into_bytes();
    stream::iter([Ok(retry)]).chain(events)
}

/// Waits for the next event, or returns a comment after a period of silence. A comment has no empty
/// line after it, because some clients read that as an event without data.
pub(crate) async fn with_keep_alive(
    next: impl Future<Output = Option<Vec<u8>>>,
) -> Option<Vec<u8>> {
    timeout(KEEP_ALIVE, next).await.unwrap_or_else(|_| Some(b": ping\n".to_vec()))
}

/// A named event.
pub(crate) struct NamedEvent<'a> {
    /// Name of the event.
    pub(crate) event: &'a str,
    /// Sequence number, which a client returns in `Last-Event-ID` to resume.
    pub(crate) number: u64,
    /// Data of the event, as one line.
    pub(crate) text: &'a str,
}

impl NamedEvent<'_> {
    /// Encodes the event.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let Self { event, number, text } = self;
        format!("id: {number}\nevent: {event}\ndata: {text}\n\n").into_bytes()
    }
}

/// Encodes an answer as an event. A client returns its id in
/// `Last-Event-ID` to resume.
pub(crate) fn frame(Update { id, text, is_error }: &Update) -> Vec<u8> {
    let id = id.as_ref().map(|id| format!("id: {id}\n")).unwrap_or_default();
    let name: &[u8] = if *is_error { b"event: error\n" } else { b"" };
    [id.as_bytes(), name, b"data: ", text, b"\n\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_rpc::task_stream::EventId;

    #[test]
    fn event_carries_its_id() {
        let told =
            |id| String::from_utf8(frame(&Update { id, text: b"{}".to_vec(), is_error: false }));
        assert_eq!(told(Some(EventId::Number(7))).unwrap(), "id: 7\ndata: {}\n\n");
        let cursor = EventId::Cursor("5f0c-7".to_owned());
        assert_eq!(told(Some(cursor)).unwrap(), "id: 5f0c-7\ndata: {}\n\n");
        assert_eq!(told(None).unwrap(), "data: {}\n\n");
    }
}
