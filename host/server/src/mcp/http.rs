//! MCP over HTTP (Streamable HTTP) at `/mcp`, behind the origin guard.

use super::{
    accept::name_accepted,
    lines::{no_batches, no_handshake},
    message::{self, ClientMessage, McpFrame, McpMessage, McpRefusal},
    request_ids::RequestIdError,
    session::{McpSession, SessionOffer},
    session_manager::HubSessionManager,
    sessions::{McpSessions, SessionPermit},
};
use crate::{
    MAX_REQUEST,
    http::{body::read_body, origin_guard},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_rpc::{dispatcher::Dispatcher, retry_after::RETRY_AFTER_SECONDS};
use axum::{
    Json, Router,
    body::{Body, BodyDataStream, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use rmcp::{
    model::{ErrorCode, ProtocolVersion},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::SessionManager as _,
    },
};
use serde_json::Value;
use std::{sync::Arc, task::Poll, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Path of the endpoint.
const PATH: &str = "/mcp";

/// Header with the session's id.
const SESSION: &str = "mcp-session-id";

/// Idle timeout of a session, longer than any call waits.
const IDLE: Duration = Duration::from_secs(2 * 3600);

/// The endpoint with the owners of its sessions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct McpHttp {
    service: StreamableHttpService<McpSession, HubSessionManager>,
    manager: Arc<HubSessionManager>,
    /// Owner of each session; other callers cannot use it.
    sessions: Arc<Mutex<McpSessions>>,
}

impl McpHttp {
    /// Creates an endpoint that serves until `stop`.
    pub(crate) fn new(dispatcher: Dispatcher, stop: CancellationToken) -> Self {
        let manager = Arc::new(HubSessionManager::new(IDLE));
        // The origin guard has checked the host already.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            // Priming events are the session manager's.
            .with_sse_retry(None)
            .with_max_request_body_bytes(MAX_REQUEST)
            .with_cancellation_token(stop.clone());
        let session = move || {
            Ok(McpSession::new(dispatcher.clone(), None, SessionOffer::default(), stop.clone()))
        };
        let service = StreamableHttpService::new(session, Arc::clone(&manager), config);
        Self { service, manager, sessions: Arc::default() }
    }

    /// Route of the endpoint.
    pub(crate) fn routes(self) -> Router<Dispatcher> {
        let enter = move |State(dispatcher): State<Dispatcher>, request: Request| async move {
            self.enter(&dispatcher, request).await
        };
        Router::new().route(PATH, any(enter))
    }

    async fn enter(&self, dispatcher: &Dispatcher, request: Request) -> Response {
        let principal = origin_guard::principal(&request);
        let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok());
        let session = session.map(str::to_owned);
        if session.as_ref().is_some_and(|id| self.sessions.lock().is_of_another(id, &principal)) {
            // Another caller's session looks unknown, so that the client starts a new one.
            return StatusCode::NOT_FOUND.into_response();
        }
        let mut request = match read_request(dispatcher, request).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let method = request.method().clone();
        name_accepted(&method, request.headers_mut());
        if method != Method::POST {
            let is_end = method == Method::DELETE;
            if let Some(session) = session.as_ref().filter(|_| is_end)
                && !self.has_session(session).await
            {
                return StatusCode::NOT_FOUND.into_response();
            }
            let mut response = self.pass(request, session, None).await;
            // Clients expect 200 or 204: the session has ended already.
            if is_end && response.status() == StatusCode::ACCEPTED {
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            return response;
        }
        match message::read(request.body()) {
            McpFrame::One(read) => self.one(request, session, principal, read).await,
            McpFrame::Batch(reads) => {
                let version = session.as_deref().and_then(|id| self.manager.version(id));
                match session {
                    Some(session) if version == Some(ProtocolVersion::V_2025_03_26) => {
                        self.batch(request, session, principal, reads).await
                    }
                    _ => refused(&no_batches()),
                }
            }
        }
    }

    async fn has_session(&self, id: &str) -> bool {
        self.manager.has_session(&id.into()).await.unwrap_or(false)
    }

    /// Serves a message.
    async fn one(
        &self,
        request: http::Request<Bytes>,
        session: Option<String>,
        principal: Principal,
        read: McpMessage,
    ) -> Response {
        let message = match read {
            McpMessage::Message(message) => message,
            McpMessage::Refused(why) => return refused(&why),
            McpMessage::Skipped => return StatusCode::ACCEPTED.into_response(),
        };
        let begins = session.is_none() && message.is_initialize();
        if begins && let Err(full) = self.ensure_capacity(&principal).await {
            return full;
        }
        let (parts, _) = request.into_parts();
        let id = message.request_id().cloned().map(|id| id.into_json_value().to_string());
        let body = Bytes::from(message.json.to_string());
        let response = self.pass(http::Request::from_parts(parts, body), session.clone(), id).await;
        if session.is_none()
            && let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok())
        {
            self.sessions.lock().begin(id.to_owned(), principal, Instant::now());
        }
        response
    }

    /// Serves a batch of 2025-03-26: the responses are events of one stream.
    async fn batch(
        &self,
        request: http::Request<Bytes>,
        session: String,
        principal: Principal,
        reads: Vec<McpMessage>,
    ) -> Response {
        if !self.has_session(&session).await {
            return StatusCode::NOT_FOUND.into_response();
        }
        let mut streams = Vec::new();
        for read in reads {
            let read = match read {
                McpMessage::Message(message) if message.is_initialize() => {
                    McpMessage::Refused(no_handshake(&message))
                }
                read @ (McpMessage::Message(_) | McpMessage::Refused(_) | McpMessage::Skipped) => {
                    read
                }
            };
            let is_request = match &read {
                McpMessage::Message(message) => ClientMessage::request_id(message).is_some(),
                McpMessage::Refused(_) => true,
                McpMessage::Skipped => false,
            };
            let request = request.clone();
            let response = self.one(request, Some(session.clone()), principal.clone(), read).await;
            if is_request {
                streams.push(events_of(response).await);
            }
        }
        if streams.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        let headers =
            [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
        // The SDK writes each event as one piece, so pieces of several streams can be mixed.
        (headers, Body::from_stream(stream::select_all(streams))).into_response()
    }

    /// Passes a request on to the SDK, as one of its session if it has one.
    async fn pass(
        &self,
        request: http::Request<Bytes>,
        session: Option<String>,
        id: Option<String>,
    ) -> Response {
        let Some(session) = session else {
            return self.service.handle(request.map(Body::from)).await.map(Body::new);
        };
        if let Err(refused) = self.sessions.lock().enter(&session, id.as_deref(), Instant::now()) {
            return taken(&refused, id.as_deref());
        }
        let session_request = SessionRequest {
            sessions: Arc::clone(&self.sessions),
            session,
            id,
            fully_received: false,
        };
        session_request
            .until_the_end_of(self.service.handle(request.map(Body::from)).await.map(Body::new))
    }

    /// Makes capacity for another session of this caller.
    async fn ensure_capacity(&self, caller: &Principal) -> Result<(), Response> {
        let permit = {
            let open = self.manager.open().await;
            let mut sessions = self.sessions.lock();
            sessions.retain(|id| open.contains(id));
            sessions.permit(caller)
        };
        match permit {
            SessionPermit::Free => Ok(()),
            SessionPermit::Instead(silent) => {
                tracing::debug!(session = silent, "closing an idle MCP session for a new one");
                // The session may have ended in the meantime, which frees capacity as well.
                let _ = self.manager.close_session(&silent.into()).await;
                Ok(())
            }
            SessionPermit::Full(max) => {
                let again = [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())];
                let why = format!(
                    "there are {max} sessions already, and all are busy; end one, or try again soon"
                );
                Err((StatusCode::SERVICE_UNAVAILABLE, again, error_json(&why)).into_response())
            }
        }
    }
}

/// A request in its session, until the response ends.
struct SessionRequest {
    sessions: Arc<Mutex<McpSessions>>,
    session: String,
    /// JSON-RPC id of the request, as JSON text.
    id: Option<String>,
    /// True if the client received the whole response.
    fully_received: bool,
}

impl SessionRequest {
    /// Ties the request's end to the end of the response body.
    fn until_the_end_of(mut self, response: Response) -> Response {
        response.map(|body| {
            let mut body = body.into_data_stream();
            Body::from_stream(stream::poll_fn(move |context| {
                // Forces the closure to capture the whole struct, which is dropped with the body.
                let session_request = &mut self;
                let next = body.poll_next_unpin(context);
                session_request.fully_received |= matches!(next, Poll::Ready(None));
                next
            }))
        })
    }
}

impl Drop for SessionRequest {
    fn drop(&mut self) {
        let now = Instant::now();
        self.sessions.lock().exit(&self.session, self.id.as_deref(), self.fully_received, now);
    }
}

/// Reads the body of the request within the timeout.
async fn read_request(
    dispatcher: &Dispatcher,
    request: Request,
) -> Result<http::Request<Bytes>, Response> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return Ok(http::Request::from_parts(parts, Bytes::new()));
    }
    match read_body(dispatcher, Request::from_parts(parts.clone(), body)).await {
        Ok(body) => Ok(http::Request::from_parts(parts, body)),
        Err(unread) => Err(unread.answer(error_json(&unread.why.message).into_response())),
    }
}

/// Stream of the events of a response. A response that is no stream becomes one event.
async fn events_of(response: Response) -> BodyDataStream {
    let media = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if media.is_some_and(|media| media.starts_with(b"text/event-stream")) {
        return response.into_body().into_data_stream();
    }
    let status = response.status();
    let body = to_bytes(response.into_body(), MAX_REQUEST).await.unwrap_or_default();
    let data: Value = serde_json::from_slice(&body).unwrap_or_else(|_| {
        let why = format!("the message was refused with status {status}");
        McpRefusal::request(&why, Value::Null).json()
    });
    Body::from(format!("data: {data}\n\n")).into_data_stream()
}

/// Response to a message that cannot be served. A request with a valid id gets an ordinary response
/// of JSON-RPC, anything else an error of HTTP; an unknown method is 404 (MCP 2026-07-28,
/// Streamable HTTP).
fn refused(why: &McpRefusal) -> Response {
    let status = match why.code {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::INVALID_PARAMS if !why.id.is_null() => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, Json(why.json())).into_response()
}

/// Response to a request that its session refuses.
fn taken(refused: &RequestIdError, id: Option<&str>) -> Response {
    let status = match refused {
        RequestIdError::IdInUse => StatusCode::BAD_REQUEST,
        RequestIdError::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
    };
    let id = id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default();
    (status, Json(McpRefusal::request(&refused.why(), id).json())).into_response()
}

fn error_json(why: &str) -> Json<Value> {
    Json(McpRefusal::request(why, Value::Null).json())
}
