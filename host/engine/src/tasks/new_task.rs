//! A new task, and the errors of submitting it.

use crate::error::HubError;
use a2a_hub_agents::Agent;
use a2a_hub_config::Permissions;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    context_memory::transfer::Inherited,
    routing::{NotChosen, Routing},
    scheduling::task_admission::Busy,
    task::tree_budget::TreeLimits,
};
use a2a_hub_protocol::{
    budget::Budget,
    client::ClientCapabilities,
    error::A2aError,
    id::{AgentId, ContextId, TaskId, TenantId},
    message::{Message, Metadata},
    operation::SendMessage,
    trace::TraceContext,
};
use a2a_hub_store::StorageError;
use a2a_hub_worktrees::WorktreeError;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Error of starting a task.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The agent has too much to do.
    #[error("give `{agent}` another task: {why}")]
    Busy {
        /// The agent.
        agent: AgentId,
        /// Limit that is reached.
        why: Busy,
    },
    /// The task cannot get its worktree, or names one that is not its own.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The agent may not work in an additional directory that the message names.
    #[error(transparent)]
    Directory(A2aError),
    /// The store refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Refusal of a new task.
pub enum TaskRefused {
    /// This agent refuses; another one may accept.
    ByAgent(NotChosen, A2aError),
    /// The hub refuses; no agent can accept.
    ByHub(HubError),
}

/// Form in which a client takes the answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    /// Waits for the end: the client need not learn of the task before.
    AtEnd,
    /// Waits for the end for a while, and may look at the task after it. The wait is longer than a
    /// creation is deferred.
    AtEndOrLater,
    /// Takes the task as it is, and looks at it later.
    TaskOnly,
    /// Receives the events as they happen.
    Stream,
}

impl ResponseMode {
    /// True if somebody may follow the events while the agent works.
    pub(crate) fn is_live(self) -> bool {
        self != Self::AtEnd
    }

    /// True if nobody takes an event of the agent while its task's creation may be deferred.
    pub(crate) fn is_unobserved(self) -> bool {
        matches!(self, Self::AtEnd | Self::AtEndOrLater)
    }

    /// True if the client may learn of the task together with the first output of `agent`. A
    /// stream of an agent that replies with a task begins at once.
    pub(crate) fn may_defer(self, agent: &Agent) -> bool {
        self.is_unobserved() || (self == Self::Stream && agent.may_reply_directly())
    }
}

/// A new task.
pub struct NewTask {
    /// Its id, which must not exist yet; none for a fresh one.
    pub id: Option<TaskId>,
    /// Agent that performs it.
    pub agent: Arc<Agent>,
    /// The client's message.
    pub message: Message,
    /// Working directory that the client requested.
    pub working_directory: Option<String>,
    /// Commit from which a worktree of that directory starts; none for a task that works in the
    /// directory itself.
    pub worktree: Option<String>,
    /// Time limit in milliseconds, if the client sets one; the agent's own limit applies as well.
    pub timeout_ms: Option<u64>,
    /// Form in which the client takes the answer.
    pub response: ResponseMode,
    /// Capabilities of the client.
    pub client: ClientCapabilities,
    /// Idempotency key of the request.
    pub request: Option<String>,
    /// Caller that requested it.
    pub by: Principal,
    /// Tenant that owns it.
    pub tenant: TenantId,
    /// Limits of the tree below it.
    pub limits: TreeLimits,
    /// Most that its agent's program may do without asking, in a task that another agent gives;
    /// beyond that it asks.
    pub permissions: Option<Permissions>,
    /// Members of its metadata from the schedule or trigger that started it, or a task above it.
    pub facts: Option<Metadata>,
    /// Record of the memory that another agent transferred to its agent.
    pub inherited: Option<Inherited>,
    /// Trace context that the client sent beside its message.
    pub trace: Option<Box<TraceContext>>,
    /// Routing decision, if the client named no agent.
    pub routing: Option<Box<Routing>>,
}

impl NewTask {
    /// Task of `agent` from a message of `caller`, with this budget.
    pub fn from_message(
        agent: &Arc<Agent>,
        send: SendMessage,
        caller: Caller,
        budget: Budget,
    ) -> Box<Self> {
        Box::new(Self {
            id: send.new_task_id,
            permissions: None,
            facts: send.task_metadata,
            inherited: None,
            agent: Arc::clone(agent),
            message: send.message,
            working_directory: send.working_directory,
            worktree: send.worktree,
            timeout_ms: send.timeout_ms,
            response: ResponseMode::TaskOnly,
            client: send.client,
            request: None,
            by: caller.principal,
            tenant: caller.tenant,
            limits: agent.config.tree_limits().narrowed(budget),
            trace: send.trace,
            routing: None,
        })
    }
}

/// A new task, as far as its directory depends on it.
pub(super) struct Settling<'a> {
    pub(super) id: &'a TaskId,
    pub(super) context: &'a ContextId,
    pub(super) agent: &'a Agent,
    /// Task that began this one; none if a client did.
    pub(super) parent: Option<&'a TaskId>,
    /// Requested directory.
    pub(super) directory: Option<String>,
    /// Commit from which a worktree starts; none if the task asks for no worktree.
    pub(super) base: Option<String>,
}

/// Place in which a child is to work.
pub(super) struct ChildWorkspace {
    /// Working directory, or the repository of a new worktree.
    pub(super) directory: Option<String>,
    /// Commit from which a new worktree starts; none without one.
    pub(super) base: Option<String>,
    /// Directories in which it works besides the working directory.
    pub(super) additional: Vec<String>,
}

/// Directory of a new task.
pub(super) struct Settled {
    pub(super) directory: Option<String>,
    /// Metadata of the worktree, if the task got one.
    pub(super) fact: Option<Value>,
}

/// Time limit of a task: the agent's, or the client's if that is shorter.
pub(super) fn task_timeout(agent: &Agent, timeout_ms: Option<u64>) -> Duration {
    let timeout = agent.config.timeout();
    timeout_ms.map_or(timeout, |ms| Duration::from_millis(ms).min(timeout))
}

/// Error for a task that was given up before it reached the log.
pub(super) fn never_stored() -> StorageError {
    StorageError::Unavailable(
        "the task broke before it was stored; the hub's log says where".into(),
    )
}
