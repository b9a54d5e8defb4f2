//! Everything needed to start a server.

use crate::port::{files::Files, http::AgentHttp, live_grant::LiveGrant, programs::Programs};
use a2a_hub_config::McpServer;
use a2a_hub_protocol::id::AgentId;
use std::sync::Arc;

/// Configuration of a server and the agent that owns it.
pub(super) struct ServerOrigin {
    pub(super) agent: AgentId,
    pub(super) name: String,
    pub(super) config: McpServer,
    pub(super) programs: Arc<Programs>,
    pub(super) files: Files,
    pub(super) live: LiveGrant,
    pub(super) http: Option<Arc<AgentHttp>>,
}
