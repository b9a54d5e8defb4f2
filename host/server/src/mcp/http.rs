//! MCP over HTTP (Streamable HTTP) at `/mcp`, behind the guard that every request passes.

use super::session::McpSession;
use crate::{
    MAX_REQUEST,
    body::read_body,
    dispatcher::{COME_AGAIN, Dispatcher},
    origin_guard,
};
use a2a_hub_core::access::Principal;
use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// The header by which a session is known.
const SESSION: &str = "mcp-session-id";

/// How many sessions there may be at once.
const MAX_SESSIONS: usize = 256;

/// How long a session may be silent: longer than any call waits.
const IDLE: Duration = Duration::from_secs(2 * 3600);

/// The endpoint, and whose its sessions are. Cheap to clone.
#[derive(Clone)]
pub(crate) struct McpHttp {
    service: StreamableHttpService<McpSession, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// Who began each session: it is of use to nobody else.
    owners: Arc<Mutex<HashMap<String, Principal>>>,
}

impl McpHttp {
    /// An endpoint that serves until `stop`.
    pub(crate) fn new(dispatcher: Dispatcher, stop: CancellationToken) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let manager = Arc::new(manager);
        // Who may knock is decided before anything comes here.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_REQUEST)
            .with_cancellation_token(stop.clone());
        let session = move || Ok(McpSession::new(dispatcher.clone(), None, None, stop.clone()));
        let service = StreamableHttpService::new(session, Arc::clone(&manager), config);
        Self { service, manager, owners: Arc::default() }
    }

    /// The path at which it is found.
    pub(crate) fn routes(self) -> Router<Dispatcher> {
        let enter = move |State(dispatcher): State<Dispatcher>, request: Request| async move {
            self.enter(&dispatcher, request).await
        };
        Router::new().route(PATH, any(enter))
    }

    async fn enter(&self, dispatcher: &Dispatcher, request: Request) -> Response {
        let principal = origin_guard::principal(&request);
        let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok());
        if let Some(id) = session
            && self.owners.lock().get(id).is_some_and(|owner| *owner != principal)
        {
            // As if it were not there, so that its client begins another.
            return StatusCode::NOT_FOUND.into_response();
        }
        let is_new = session.is_none();
        let request = match whole(dispatcher, request).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        if is_new && self.is_full().await && begins(request.body()) {
            let again = [(header::RETRY_AFTER, COME_AGAIN.to_string())];
            let why =
                format!("there are {MAX_SESSIONS} sessions already; end one, or try again soon");
            return (StatusCode::SERVICE_UNAVAILABLE, again, told(&why)).into_response();
        }
        let response = self.service.handle(request.map(Body::from)).await.map(Body::new);
        let begun = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        if let Some(id) = begun.filter(|_| is_new) {
            self.own(id.to_owned(), principal).await;
        }
        response
    }

    async fn is_full(&self) -> bool {
        self.manager.sessions.read().await.len() >= MAX_SESSIONS
    }

    /// Remembers whose a session is, and forgets those that are over.
    async fn own(&self, id: String, principal: Principal) {
        let sessions = self.manager.sessions.read().await;
        let mut owners = self.owners.lock();
        owners.retain(|id, _| sessions.contains_key(id.as_str()));
        owners.insert(id, principal);
    }
}

/// The request with its body, which came in time.
async fn whole(
    dispatcher: &Dispatcher,
    request: Request,
) -> Result<http::Request<axum::body::Bytes>, Response> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return Ok(http::Request::from_parts(parts, axum::body::Bytes::new()));
    }
    match read_body(dispatcher, Request::from_parts(parts.clone(), body)).await {
        Ok(body) => Ok(http::Request::from_parts(parts, body)),
        Err(unread) => Err(unread.answer(told(&unread.why.message).into_response())),
    }
}

/// Whether a body asks for a session.
fn begins(body: &[u8]) -> bool {
    let asked: Option<Value> = serde_json::from_slice(body).ok();
    asked.is_some_and(|asked| asked["method"] == "initialize")
}

fn told(why: &str) -> Json<Value> {
    Json(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": why } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handshake_begins_a_session() {
        assert!(begins(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#));
        for other in [&br#"{"method":"tools/call"}"#[..], b"{", b"[]"] {
            assert!(!begins(other));
        }
    }
}
