//! One run of an agent: its input and its call.

use crate::{
    limits::Limits,
    port::{Ports, journal::Journal},
};
use a2a_hub_core::{grant::EffectiveGrant, text::redact::Secrets};
use a2a_hub_protocol::{client::ClientCapabilities, id::AgentId, message::Message, task::Task};
use std::sync::Arc;

/// Input of a run.
#[derive(Clone, Debug)]
pub struct Work {
    /// Task, as of its log.
    pub task: Task,
    /// Last message of the client.
    pub message: Message,
    /// Earlier messages of this conversation, oldest first.
    pub history: Vec<Message>,
    /// True if a client streams the events; otherwise only the end matters.
    pub live: bool,
    /// Journal of this run, if it is recorded.
    pub journal: Option<Journal>,
}

/// Context of a call: the agent, and what it may do.
#[derive(Clone)]
pub struct Call {
    /// Called agent.
    pub agent: AgentId,
    /// Resource limits.
    pub limits: Limits,
    /// Effective capabilities: those that it requests and the operator grants.
    pub grant: Arc<EffectiveGrant>,
    /// Ports of those capabilities.
    pub ports: Arc<Ports>,
    /// Secrets to redact from its output.
    pub secrets: Arc<Secrets>,
    /// Working directory that the client requested.
    pub working_directory: Option<String>,
    /// Capabilities of the client when the call began.
    pub client: ClientCapabilities,
}

impl Call {
    /// Creates a call without capabilities.
    pub fn bare(agent: AgentId, limits: Limits) -> Self {
        let (grant, ports, secrets, client) = Default::default();
        Self { agent, limits, grant, ports, secrets, working_directory: None, client }
    }
}
