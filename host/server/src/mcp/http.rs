//! MCP over HTTP (Streamable HTTP) at `/mcp`, behind the origin guard.

use super::{
    request_ids::Refused,
    session::McpSession,
    sessions::{SessionRoom, Sessions},
};
use crate::{
    MAX_REQUEST,
    http::{body::read_body, origin_guard},
    rpc::dispatcher::{COME_AGAIN, Dispatcher},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::foreign;
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use rmcp::{
    model::ErrorCode,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::{SessionManager as _, local::LocalSessionManager},
    },
};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
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
    service: StreamableHttpService<McpSession, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// Owner of each session; other callers cannot use it.
    sessions: Arc<Mutex<Sessions>>,
}

impl McpHttp {
    /// Creates an endpoint that serves until `stop`.
    pub(crate) fn new(dispatcher: Dispatcher, stop: CancellationToken) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let manager = Arc::new(manager);
        // The origin guard has checked the host already.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_REQUEST)
            .with_cancellation_token(stop.clone());
        let session = move || Ok(McpSession::new(dispatcher.clone(), None, None, stop.clone()));
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
        let request = match whole(dispatcher, request).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let Envelope { method, id } = match Envelope::of(&request) {
            Ok(envelope) => envelope,
            Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
        };
        let Some(session) = session else {
            if method.as_deref() == Some("initialize")
                && let Err(full) = self.make_room(&principal).await
            {
                return full;
            }
            let response = self.service.handle(request.map(Body::from)).await.map(Body::new);
            if let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
                self.sessions.lock().begin(id.to_owned(), principal, Instant::now());
            }
            return response;
        };
        // With a method the id belongs to a request, without one to a response.
        let id = id.filter(|_| method.is_some());
        if let Err(refused) = self.sessions.lock().enter(&session, id.as_deref(), Instant::now()) {
            return taken(&refused, id.as_deref());
        }
        let visit =
            SessionRequest { sessions: Arc::clone(&self.sessions), session, id, heard_out: false };
        visit.until_the_end_of(self.service.handle(request.map(Body::from)).await.map(Body::new))
    }

    /// Makes capacity for another session of this caller.
    async fn make_room(&self, caller: &Principal) -> Result<(), Response> {
        let room = {
            let open = self.manager.sessions.read().await;
            let mut sessions = self.sessions.lock();
            sessions.retain(|id| open.contains_key(id));
            sessions.room(caller)
        };
        match room {
            SessionRoom::Free => Ok(()),
            SessionRoom::Instead(silent) => {
                tracing::debug!(session = silent, "an MCP session makes room for another");
                // The session may have ended in the meantime, which frees capacity as well.
                let _ = self.manager.close_session(&silent.into()).await;
                Ok(())
            }
            SessionRoom::Full(most) => {
                let again = [(header::RETRY_AFTER, COME_AGAIN.to_string())];
                let why = format!(
                    "there are {most} sessions already, and all are busy; end one, or try again soon"
                );
                Err((StatusCode::SERVICE_UNAVAILABLE, again, told(&why)).into_response())
            }
        }
    }
}

/// A request in its session, until the response ends.
struct SessionRequest {
    sessions: Arc<Mutex<Sessions>>,
    session: String,
    /// JSON-RPC id of the request, as JSON text.
    id: Option<String>,
    /// True if the client received the whole response.
    heard_out: bool,
}

impl SessionRequest {
    /// Ties the request's end to the end of the response body.
    fn until_the_end_of(mut self, response: Response) -> Response {
        response.map(|body| {
            let mut body = body.into_data_stream();
            Body::from_stream(stream::poll_fn(move |context| {
                // Forces the closure to capture the whole struct, which is dropped with the body.
                let visit = &mut self;
                let next = body.poll_next_unpin(context);
                visit.heard_out |= matches!(next, Poll::Ready(None));
                next
            }))
        })
    }
}

impl Drop for SessionRequest {
    fn drop(&mut self) {
        let now = Instant::now();
        self.sessions.lock().leave(&self.session, self.id.as_deref(), self.heard_out, now);
    }
}

/// Reads the body of the request within the timeout.
async fn whole(
    dispatcher: &Dispatcher,
    request: Request,
) -> Result<http::Request<Bytes>, Response> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return Ok(http::Request::from_parts(parts, Bytes::new()));
    }
    match read_body(dispatcher, Request::from_parts(parts.clone(), body)).await {
        Ok(body) => {
            let mended = foreign::mended(&body).into_owned();
            Ok(http::Request::from_parts(parts, mended.into()))
        }
        Err(unread) => Err(unread.answer(told(&unread.why.message).into_response())),
    }
}

/// Members of a message that are read before the SDK parses it.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Envelope {
    method: Option<String>,
    /// As JSON text, because `1` and `"1"` are different ids.
    #[serde(default, deserialize_with = "spelled")]
    id: Option<String>,
}

impl Envelope {
    /// Reads the members from a request's body; empty for methods other than `POST`.
    fn of(request: &http::Request<Bytes>) -> Result<Self, Json<Value>> {
        let body = request.body();
        if request.method() != Method::POST {
            return Ok(Self::default());
        }
        let no_message = || {
            let why = "a message of MCP is one JSON object with a `method` or an answer; there are no batches";
            refusal(ErrorCode::INVALID_REQUEST, why, None)
        };
        match serde_json::from_slice(body) {
            // serde would accept an array with a method and an id.
            Ok(_) if body.trim_ascii_start().starts_with(b"[") => Err(no_message()),
            Ok(envelope) => Ok(envelope),
            Err(why) if why.is_data() => Err(no_message()),
            Err(why) => {
                Err(refusal(ErrorCode::PARSE_ERROR, &format!("the body is not JSON: {why}"), None))
            }
        }
    }
}

fn spelled<'de, D: Deserializer<'de>>(id: D) -> Result<Option<String>, D::Error> {
    let id = Option::<Value>::deserialize(id)?;
    Ok(id.map(|id| id.to_string()))
}

/// Response to a request that its session refuses.
fn taken(refused: &Refused, id: Option<&str>) -> Response {
    let status = match refused {
        Refused::IdInUse => StatusCode::BAD_REQUEST,
        Refused::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
    };
    (status, refusal(ErrorCode::INVALID_REQUEST, &refused.why(), id)).into_response()
}

fn told(why: &str) -> Json<Value> {
    refusal(ErrorCode::INVALID_REQUEST, why, None)
}

/// Error response for the request with this id, which is JSON text.
fn refusal(code: ErrorCode, why: &str, id: Option<&str>) -> Json<Value> {
    let id: Option<Value> = id.and_then(|id| serde_json::from_str(id).ok());
    Json(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": why } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(body: &'static [u8]) -> http::Request<Bytes> {
        let request = http::Request::post("/mcp").body(Bytes::from_static(body));
        request.unwrap_or_default()
    }

    #[test]
    fn envelope_is_read_from_each_message_kind() {
        for (body, method, id) in [
            (
                &br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#[..],
                Some("initialize"),
                Some("1"),
            ),
            (br#"{"id":"1","method":"tools/call"}"#, Some("tools/call"), Some("\"1\"")),
            (br#"{"method":"notifications/initialized"}"#, Some("notifications/initialized"), None),
            (br#"{"id":null,"result":{}}"#, None, None),
        ] {
            let envelope = Envelope::of(&post(body)).unwrap();
            assert_eq!((envelope.method.as_deref(), envelope.id.as_deref()), (method, id));
        }
        assert_eq!(Envelope::of(&http::Request::default()).unwrap(), Envelope::default());
    }

    #[test]
    fn invalid_mcp_message_is_refused() {
        for (body, code) in [
            (&b"{"[..], ErrorCode::PARSE_ERROR),
            (b"[]", ErrorCode::INVALID_REQUEST),
            (b"7", ErrorCode::INVALID_REQUEST),
            (b"null", ErrorCode::INVALID_REQUEST),
            (b"true", ErrorCode::INVALID_REQUEST),
            (b"1.5", ErrorCode::INVALID_REQUEST),
            (b"\"x\"", ErrorCode::INVALID_REQUEST),
            (b"[1]", ErrorCode::INVALID_REQUEST),
            (b" [\"initialize\", 1]", ErrorCode::INVALID_REQUEST),
        ] {
            let Json(refused) = Envelope::of(&post(body)).unwrap_err();
            assert_eq!(refused["error"]["code"], code.0);
        }
    }
}
