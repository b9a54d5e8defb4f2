//! A new piece of work, and why it may not begin.

use a2a_hub_agents::Agent;
use a2a_hub_config::Permissions;
use a2a_hub_core::{
    access::Principal, context_memory::transfer::Inherited, quota::Busy, routing::Routing,
    tree::TreeLimits,
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    id::{AgentId, TaskId, TenantId},
    message::Message,
    trace::TraceContext,
};
use a2a_hub_store::StorageError;
use std::sync::Arc;

/// Why a task could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Its agent has too much to do.
    #[error("give `{agent}` another task: {why}")]
    Busy {
        /// The agent.
        agent: AgentId,
        /// How busy it is.
        why: Busy,
    },
    /// The store refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A new piece of work.
pub struct NewTask {
    /// The id that it is to have; a fresh one if the hub is to choose. There is no task of that id.
    pub id: Option<TaskId>,
    /// Who is to do it.
    pub agent: Arc<Agent>,
    /// What the client says.
    pub message: Message,
    /// Where the client would have it done.
    pub working_directory: Option<String>,
    /// How long it may take, in milliseconds, if the client says; the agent's own limit counts all the same.
    pub timeout_ms: Option<u64>,
    /// Whether somebody listens while it is done.
    pub streamed: bool,
    /// What the client can do with an answer.
    pub client: ClientCapabilities,
    /// What the request is known by, should it be made again.
    pub request: Option<String>,
    /// Who asks for it.
    pub by: Principal,
    /// Whose task it is.
    pub tenant: TenantId,
    /// What may follow from it.
    pub limits: TreeLimits,
    /// The most that its agent's program may do without asking, in a task that another agent gives; otherwise it asks.
    pub permissions: Option<Permissions>,
    /// What its agent was handed with it, of another agent's memory.
    pub inherited: Option<Inherited>,
    /// What the client says beside its message of the trace that it is in.
    pub trace: Option<Box<TraceContext>>,
    /// How it came to its agent, if the client named none.
    pub routing: Option<Box<Routing>>,
}
