//! One run of an agent: what it is given, what it says of itself, and how it ends.

use crate::{
    limits::Limits,
    port::{Ports, journal::Journal},
};
use a2a_hub_core::{grant::EffectiveGrant, redact::Secrets};
use a2a_hub_protocol::{
    client::ClientCapabilities, id::AgentId, message::Message, operation::HealthStatus, task::Task,
};
use std::sync::Arc;

/// What a guest is to do.
#[derive(Clone, Debug)]
pub struct Work {
    /// The task as its log tells it so far.
    pub task: Task,
    /// What the client said last.
    pub message: Message,
    /// What was said before in this conversation, oldest first.
    pub history: Vec<Message>,
    /// Whether a client listens to a stream of it meanwhile; if not, only the end counts.
    pub live: bool,
    /// What it has heard and told in this run so far, if the run is recorded.
    pub journal: Option<Journal>,
}

/// What a call of an agent comes with: whose it is, and what it may do.
#[derive(Clone)]
pub struct Call {
    /// The agent that is called.
    pub agent: AgentId,
    /// What it may use up.
    pub limits: Limits,
    /// The capabilities that it holds: what it asks, as far as the operator grants it.
    pub held: Arc<EffectiveGrant>,
    /// The hub's side of what it holds.
    pub ports: Arc<Ports>,
    /// What must not be in anything it tells.
    pub secrets: Arc<Secrets>,
    /// Where the client would have the work done.
    pub working_directory: Option<String>,
    /// What the client can do with an answer, as it said when the call began.
    pub client: ClientCapabilities,
}

impl Call {
    /// A call with no capability at all.
    pub fn bare(agent: AgentId, limits: Limits) -> Self {
        let (held, ports, secrets, client) = Default::default();
        Self { agent, limits, held, ports, secrets, working_directory: None, client }
    }
}

/// What an agent says of its health.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How well it is.
    pub status: HealthStatus,
    /// The version of the program behind it.
    pub version: Option<String>,
    /// What the check found, for people; none if there is nothing to say.
    pub detail: Option<String>,
    /// The command that mends it.
    pub fix: Option<String>,
}
