//! HTTP: JSON-RPC on `POST /`, streams as server-sent events on `POST /stream`, `GET /health`, and cards.

use super::{
    MAX_REQUEST, cards,
    door::{Caller, Door},
    guard::{self, Guard},
    jsonrpc::{
        self, COME_AGAIN, Circumstances, Desk, HUB, Response as RpcResponse, Stream, Update,
    },
    official,
};
use crate::auth::Token;
use a2a_hub_protocol::{
    dialect::Dialect,
    error::{A2aError, ErrorKind},
};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{Stream as FutureStream, StreamExt as _, stream};
use serde_json::json;
use std::{convert::Infallible, io, net::SocketAddr, time::Duration};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

/// Python's A2A clients give up on a stream after 5 s without a byte.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// A bound HTTP server.
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
}

impl Http {
    /// Listens on `address`.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then lets the requests that are under way come to their end.
    pub async fn serve(self, desk: Desk, token: Token, stop: CancellationToken) -> io::Result<()> {
        let guard = Guard::new(self.address, desk.whereabouts().public_url.as_deref(), token);
        let routes = Router::new()
            .route("/", post(call))
            .route("/stream", post(call_streaming))
            .route("/health", get(health))
            .merge(cards::routes())
            .merge(official::routes())
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .layer(middleware::from_fn_with_state(guard, guard::check))
            .with_state(desk)
            .into_make_service_with_connect_info::<Caller>();
        let door = Door::new(self.listener);
        axum::serve(door, routes).with_graceful_shutdown(stop.cancelled_owned()).await
    }
}

async fn health() -> impl IntoResponse {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

async fn call(
    State(desk): State<Desk>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    respond(&desk, &headers, body, false).await
}

async fn call_streaming(
    State(desk): State<Desk>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    respond(&desk, &headers, body, true).await
}

/// Streams are what `POST /stream` is for; there, an answer that is not a stream is one event.
async fn respond(
    desk: &Desk,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    sse: bool,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(why) => return too_large(&why),
    };
    let url = cards::own_url(desk, headers);
    let reach = desk.reach(&url, HUB, false);
    let of = Circumstances::of_hub(&url, last_event(headers), reach);
    answer(desk.respond(&body, &of).await, sse)
}

/// What goes back over HTTP.
pub(super) fn answer(response: RpcResponse, sse: bool) -> Response {
    match response {
        RpcResponse::None => StatusCode::NO_CONTENT.into_response(),
        RpcResponse::One(text) if sse && is_result(&text) => {
            event_stream(stream::iter([Ok(frame(&Update { number: None, text, is_error: false }))]))
        }
        RpcResponse::One(answer) => json_body(answer),
        RpcResponse::Busy(answer) => {
            let again = [(header::RETRY_AFTER, COME_AGAIN.to_string())];
            (StatusCode::SERVICE_UNAVAILABLE, again, json_body(answer)).into_response()
        }
        RpcResponse::Stream(answers) => event_stream(frames(*answers)),
    }
}

/// The number of the event that the client heard last, before it was cut off.
pub(super) fn last_event(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

/// An error found before the first event is a plain answer, so that clients need not read a stream to find it.
fn is_result(answer: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(answer)
        .is_ok_and(|answer| answer.get("result").is_some())
}

fn too_large(why: &BytesRejection) -> Response {
    let answer = jsonrpc::unreadable(Dialect::Hub, &unreadable(why));
    (why.status(), [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

/// What is wrong with a body that cannot be read.
pub(super) fn unreadable(why: &BytesRejection) -> A2aError {
    let text = if why.status() == StatusCode::PAYLOAD_TOO_LARGE {
        format!("the request is larger than {MAX_REQUEST} bytes")
    } else {
        why.body_text()
    };
    A2aError::new(ErrorKind::InvalidRequest, text)
}

pub(super) fn json_body(answer: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

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
fn frame(Update { number, text, is_error }: &Update) -> Vec<u8> {
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

    #[test]
    fn where_a_client_was_cut_off_is_read() {
        let read = |said: &'static str| {
            last_event(
                &[(header::HeaderName::from_static("last-event-id"), said.parse().unwrap())]
                    .into_iter()
                    .collect(),
            )
        };
        assert_eq!((read("12"), read("x"), read("-1")), (Some(12), None, None));
    }
}
