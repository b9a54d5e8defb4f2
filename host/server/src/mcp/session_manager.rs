//! Sessions of MCP over HTTP for the SDK: its own manager, with the event ids and priming events of
//! the session's version.

use super::tasks;
use futures::{Stream, StreamExt as _, future::ready, stream};
use parking_lot::Mutex;
use rmcp::{
    model::{
        ClientJsonRpcMessage, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage, ServerResult,
    },
    transport::streamable_http_server::{
        SessionId,
        session::{
            ServerSseMessage, SessionManager,
            local::{LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Time after which a client reconnects.
const RETRY: Duration = Duration::from_secs(3);

/// Prefix of the ids of priming events of streams that answer no request. The SDK would number them
/// 0, as it does the first event.
const PRIMING: &str = "priming-";

/// Manager of the sessions with their versions.
#[derive(Default)]
pub(super) struct HubSessionManager {
    local: LocalSessionManager,
    versions: Mutex<HashMap<SessionId, ProtocolVersion>>,
    primed: AtomicU64,
}

impl HubSessionManager {
    /// Creates a manager whose sessions end after this idle time.
    pub(super) fn new(idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        local.session_config.sse_retry = Some(RETRY);
        Self { local, ..Self::default() }
    }

    /// Version of a session.
    pub(super) fn version(&self, id: &str) -> Option<ProtocolVersion> {
        self.versions.lock().get(id).cloned()
    }

    /// Ids of the open sessions.
    pub(super) async fn open(&self) -> std::collections::HashSet<SessionId> {
        self.local.sessions.read().await.keys().cloned().collect()
    }

    /// True if a client of this session expects priming events. Others take one for a message, and
    /// report that it is no JSON.
    fn is_primed(&self, id: &SessionId) -> bool {
        self.version(id).is_some_and(|version| version >= ProtocolVersion::V_2025_11_25)
    }
}

impl SessionManager for HubSessionManager {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let response = self.local.initialize_session(id, message).await?;
        if let JsonRpcMessage::Response(response) = &response
            && let ServerResult::InitializeResult(result) = &response.result
        {
            self.versions.lock().insert(id.clone(), result.protocol_version.clone());
        }
        Ok(tasks::in_core_form(response, self.version(id).as_ref()))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.versions.lock().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let (is_primed, version) = (self.is_primed(id), self.version(id));
        let events = self.local.create_stream(id, message).await?;
        Ok(events.filter_map(move |event| {
            let is_delivered = is_primed || event.message.is_some();
            ready(is_delivered.then(|| in_core_form(event, version.as_ref())))
        }))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let priming = self.is_primed(id).then(|| {
            let n = self.primed.fetch_add(1, Ordering::Relaxed);
            ServerSseMessage::priming(format!("{PRIMING}{n}"), RETRY)
        });
        let events = self.local.create_standalone_stream(id).await?;
        Ok(stream::iter(priming).chain(events))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let is_primed = self.is_primed(id);
        let events = if last_event_id.starts_with(PRIMING) {
            self.local.create_standalone_stream(id).await?.left_stream()
        } else {
            self.local.resume(id, last_event_id.clone()).await?.right_stream()
        };
        // The SDK repeats the event that the client had last.
        let is_new =
            move |event: &ServerSseMessage| event.event_id.as_deref() != Some(&last_event_id);
        let version = self.version(id);
        Ok(events.filter_map(move |event| {
            let is_delivered = is_new(&event) && (is_primed || event.message.is_some());
            ready(is_delivered.then(|| in_core_form(event, version.as_ref())))
        }))
    }
}

/// An event with what tasks add to its message in this version.
fn in_core_form(
    mut event: ServerSseMessage,
    version: Option<&ProtocolVersion>,
) -> ServerSseMessage {
    event.message = event.message.map(|message| match &*message {
        JsonRpcMessage::Response(_) => {
            Arc::new(tasks::in_core_form(Arc::unwrap_or_clone(message), version))
        }
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => {
            message
        }
    });
    event
}
