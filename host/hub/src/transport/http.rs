//! HTTP: JSON-RPC on `POST /`, streams as server-sent events on `POST /stream`, `GET /health`.

use super::{
    MAX_REQUEST,
    guard::{self, Names},
    jsonrpc::{self, Response as RpcResponse, Stream},
};
use crate::hub::Hub;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{Stream as FutureStream, stream};
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
    pub async fn serve(self, hub: Hub, stop: CancellationToken) -> io::Result<()> {
        let names = Names::of(self.address);
        let routes = Router::new()
            .route("/", post(call))
            .route("/stream", post(call_streaming))
            .route("/health", get(health))
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .layer(middleware::from_fn_with_state(names, guard::check))
            .with_state(hub);
        axum::serve(self.listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await
    }
}

async fn health() -> impl IntoResponse {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

async fn call(State(hub): State<Hub>, body: Result<Bytes, BytesRejection>) -> Response {
    respond(&hub, body, false).await
}

async fn call_streaming(State(hub): State<Hub>, body: Result<Bytes, BytesRejection>) -> Response {
    respond(&hub, body, true).await
}

/// Streams are what `POST /stream` is for; there, an answer that is not a stream is one event.
async fn respond(hub: &Hub, body: Result<Bytes, BytesRejection>, sse: bool) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(why) => return too_large(&why),
    };
    match jsonrpc::respond(hub, &body).await {
        RpcResponse::None => StatusCode::NO_CONTENT.into_response(),
        RpcResponse::One(answer) if sse && is_result(&answer) => {
            event_stream(stream::iter([Ok(frame(&answer))]))
        }
        RpcResponse::One(answer) => json_body(answer),
        RpcResponse::Stream(answers) => event_stream(frames(*answers)),
    }
}

/// An error found before the first event is a plain answer, so that clients need not read a stream to find it.
fn is_result(answer: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(answer)
        .is_ok_and(|answer| answer.get("result").is_some())
}

fn too_large(why: &BytesRejection) -> Response {
    let text = if why.status() == StatusCode::PAYLOAD_TOO_LARGE {
        format!("the request is larger than {MAX_REQUEST} bytes")
    } else {
        why.body_text()
    };
    let answer = jsonrpc::unreadable(&A2aError::new(ErrorKind::InvalidRequest, text));
    (why.status(), [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

fn json_body(answer: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

fn event_stream(
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

/// Server-sent events, with a comment whenever there was nothing to send for a while.
fn frames(answers: Stream) -> impl FutureStream<Item = Result<Vec<u8>, Infallible>> {
    stream::unfold(answers, async |mut answers| match timeout(KEEP_ALIVE, answers.next()).await {
        Ok(Some(answer)) => Some((Ok(frame(&answer)), answers)),
        Ok(None) => None,
        Err(_) => Some((Ok(b": ping\n\n".to_vec()), answers)),
    })
}

fn frame(answer: &[u8]) -> Vec<u8> {
    [b"data: ", answer, b"\n\n"].concat()
}
