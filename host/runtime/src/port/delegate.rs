//! Port for delegation: lists the agents that an agent may call, and calls them. A call is a task
//! of the called agent, and a child of the caller's task.

use crate::{ended::Ended, failure::Failure};
use a2a_hub_core::context_memory::inherit::Inherit;
use a2a_hub_protocol::{
    budget::Budget,
    event::{ArtifactUpdate, StatusUpdate},
    id::{AgentId, TaskId},
    message::Message,
    operation::{AgentQuery, FoundAgents},
    task::TaskState,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Call of another agent.
#[derive(Clone, Debug)]
pub struct ChildRequest {
    /// Called agent, by its name on this hub.
    pub agent: String,
    /// Message for it.
    pub message: Message,
    /// Caller's key for this child: another call with the same key joins the existing child.
    pub key: Option<String>,
    /// Time limit of the child in milliseconds; the called agent's own limit applies as well.
    pub timeout_ms: Option<u64>,
    /// Limits of the tree below the child, if narrower than the caller's own.
    pub budget: Budget,
    /// Working directory: the caller's, or one below it. Defaults to the caller's.
    pub working_directory: Option<String>,
    /// Conversation of an earlier child to continue.
    pub context_id: Option<String>,
    /// True if the caller answers the child's questions. A child's request for permission or for a
    /// login goes to the client regardless.
    pub answers_questions: bool,
    /// Memory to transfer; if none, the message's metadata decides.
    pub inherit: Option<Inherit>,
}

impl ChildRequest {
    /// Creates a call with this message, and defaults for the rest.
    pub fn new(agent: impl Into<String>, message: Message) -> Self {
        let (agent, budget) = (agent.into(), Budget::default());
        let (key, timeout_ms, working_directory, context_id) = Default::default();
        let (answers_questions, inherit) = (false, None);
        Self {
            agent,
            message,
            key,
            timeout_ms,
            budget,
            working_directory,
            context_id,
            answers_questions,
            inherit,
        }
    }
}

/// A child of the caller's task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildTask {
    /// Task id.
    pub task: TaskId,
    /// Agent of the task.
    pub agent: AgentId,
    /// Caller's key, if it has one.
    pub key: Option<String>,
    /// State of the task.
    pub state: TaskState,
}

/// A child that its caller rejoins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinChild {
    /// Task id.
    pub task: TaskId,
    /// Number of updates that the caller has received.
    pub received: usize,
    /// True if the caller answers the child's questions.
    pub answers_questions: bool,
}

/// Update of a child for its caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Update {
    /// A new status.
    Status(StatusUpdate),
    /// An artifact chunk.
    Artifact(ArtifactUpdate),
    /// The end; no update follows.
    Finished(Ended),
}

/// Delegation of one agent: the agents that it may call, and its calls.
#[async_trait::async_trait]
pub trait DelegatePort: Send + Sync {
    /// Cards of the callable agents, as the hub publishes them, each with its `agentId`.
    async fn agents(&self) -> Vec<Value>;

    /// Callable agents that match a query, best first, each with the reasons.
    async fn find(&self, query: AgentQuery) -> Result<FoundAgents, Failure>;

    /// Starts a child at another agent, or joins the existing child with the key. The child is in
    /// the log when this returns.
    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure>;

    /// Rejoins a child that the caller had started before a restart, after the updates that it has
    /// received.
    async fn join(&self, child: &JoinChild) -> Result<Box<dyn CallPort>, Failure> {
        let child = &child.task;
        Err(Failure::Unsupported(format!("join `{child}` again")))
    }

    /// Children of the caller's task, oldest first.
    async fn children(&self) -> Result<Vec<ChildTask>, Failure>;
}

/// One call of another agent. Dropping it stops nothing: the child ends with the caller's task at
/// the latest.
#[async_trait::async_trait]
pub trait CallPort: Send + Sync {
    /// The child's task.
    fn task(&self) -> &TaskId;

    /// Next update, from the child's beginning on. Cancel-safe.
    async fn next(&mut self) -> Result<Update, Failure>;

    /// Answers the child's question.
    async fn answer(&self, message: Message) -> Result<(), Failure>;

    /// Sends the child a further message, which answers no question.
    async fn send(&self, _message: Message) -> Result<(), Failure> {
        Err(Failure::Unsupported("send a call a further message".to_owned()))
    }

    /// Cancels the child, and waits until it has ended.
    async fn cancel(&self) -> Result<(), Failure>;
}
