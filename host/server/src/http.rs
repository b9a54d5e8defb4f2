//! HTTP: JSON-RPC on `POST /`, streams as server-sent events on `POST /stream`, `GET /health`, `/ready` and `/metrics`, cards, keys, and gRPC.

use super::{
    MAX_REQUEST, cards,
    dispatcher::{COME_AGAIN, Dispatcher, RequestContext, dawdled},
    grpc,
    http_listener::HttpListener,
    jsonrpc::{self, Response as RpcResponse, Stream, Update},
    keys, metrics, official,
    origin_guard::{self, OriginGuard},
    probes,
};
use a2a_hub_hub::token::Token;
use a2a_hub_protocol::{
    dialect::Dialect,
    error::{A2aError, ErrorKind},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, FromRequest as _, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::post,
};
use futures::{Stream as FutureStream, StreamExt as _, stream};
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
    pub async fn serve(self, dispatcher: Dispatcher, token: Token, stop: CancellationToken) {
        let patience = dispatcher.patience();
        let guard = OriginGuard::new(
            self.address,
            dispatcher.public_endpoints().public_url.as_deref(),
            token,
        );
        let routes = Router::new()
            .route("/", post(call))
            .route("/stream", post(call_streaming))
            .merge(probes::routes())
            .merge(metrics::routes())
            .merge(cards::routes())
            .merge(keys::routes())
            .merge(official::routes())
            .merge(grpc::routes())
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .layer(middleware::from_fn_with_state(guard, origin_guard::check))
            .with_state(dispatcher);
        HttpListener::new(self.listener, patience).serve(routes, stop).await;
    }
}

async fn call(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    respond(&dispatcher, request, false).await
}

async fn call_streaming(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    respond(&dispatcher, request, true).await
}

/// Streams are what `POST /stream` is for; there, an answer that is not a stream is one event.
async fn respond(dispatcher: &Dispatcher, request: Request, sse: bool) -> Response {
    let (caller, headers) = (origin_guard::principal(&request), request.headers().clone());
    let url = cards::own_url(dispatcher, &headers);
    let of = RequestContext::of_hub(caller, &url, last_event(&headers));
    let of = official::said_in_headers(of, &headers, request.uri().query());
    match read_body(dispatcher, request).await {
        Ok(body) => {
            let response = answer(dispatcher.respond(&body, &of).await, sse);
            official::with_extensions(response, &of.active, &headers)
        }
        Err(unread) => unread.answer(json_body(jsonrpc::unreadable(Dialect::Hub, &unread.why))),
    }
}

/// What goes back over HTTP.
pub(super) fn answer(response: RpcResponse, sse: bool) -> Response {
    match response {
        RpcResponse::None => StatusCode::NO_CONTENT.into_response(),
        RpcResponse::Result(text) if sse => {
            event_stream(stream::iter([Ok(frame(&Update { number: None, text, is_error: false }))]))
        }
        // An error found before the first event is a plain answer, so that clients need not read a stream to find it.
        RpcResponse::Result(answer) | RpcResponse::Refused(answer) | RpcResponse::Batch(answer) => {
            json_body(answer)
        }
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

/// A body that could not be read.
pub(super) struct Unread {
    status: StatusCode,
    /// What was wrong.
    pub(super) why: A2aError,
}

impl Unread {
    /// The answer that tells it. Of a body that came too slowly the rest is not read: its connection ends.
    pub(super) fn answer(&self, told: Response) -> Response {
        let slow = self.status == StatusCode::REQUEST_TIMEOUT;
        let hang_up = slow.then_some([(header::CONNECTION, "close")]);
        (self.status, hang_up, told).into_response()
    }
}

/// Reads the whole body, for as long as the hub has patience.
pub(super) async fn read_body(dispatcher: &Dispatcher, request: Request) -> Result<Bytes, Unread> {
    match timeout(dispatcher.patience(), Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(why)) => {
            let text = if why.status() == StatusCode::PAYLOAD_TOO_LARGE {
                format!("the request is larger than {MAX_REQUEST} bytes")
            } else {
                why.body_text()
            };
            let text = A2aError::new(ErrorKind::InvalidRequest, text);
            Err(Unread { status: why.status(), why: text })
        }
        Err(_) => {
            let why = dawdled("request", dispatcher.patience());
            Err(Unread { status: StatusCode::REQUEST_TIMEOUT, why })
        }
    }
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
