//! Where an agent learns of the others that it may call, and calls them: a call is a task of the other agent's, and a child of
//! the task that the caller is at work on.

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

/// What an agent asks of another one.
#[derive(Clone, Debug)]
pub struct ChildRequest {
    /// The other agent, by its name on this hub.
    pub agent: String,
    /// What it is told.
    pub message: Message,
    /// What the caller calls this child: to call again under the same name is to join the child that there is.
    pub key: Option<String>,
    /// How long the child may take, in milliseconds; the other agent's own limit counts all the same.
    pub timeout_ms: Option<u64>,
    /// What may follow from it, where that is less than what may follow from the caller's own task.
    pub budget: Budget,
    /// Where it is to be done: the caller's directory or one in there. Without it, the caller's directory.
    pub working_directory: Option<String>,
    /// The conversation of an earlier child that it goes on with.
    pub context_id: Option<String>,
    /// Whether the caller answers what the child asks. A child's request for permission or for a login is for the client all the
    /// same.
    pub answers_questions: bool,
    /// What of the caller's memory is handed over; none says what the message's metadata says.
    pub inherit: Option<Inherit>,
}

impl ChildRequest {
    /// This message to that agent, and nothing else.
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
    /// Its id.
    pub task: TaskId,
    /// The agent that has it.
    pub agent: AgentId,
    /// What the caller calls it, if it calls it anything.
    pub key: Option<String>,
    /// Where it stands.
    pub state: TaskState,
}

/// A child that its caller goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinChild {
    /// Its id.
    pub task: TaskId,
    /// How many updates the caller has heard of it.
    pub heard: usize,
    /// Whether the caller answers what the child asks.
    pub answers_questions: bool,
}

/// What a caller hears of its child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Update {
    /// A new status.
    Status(StatusUpdate),
    /// A piece of an artifact.
    Artifact(ArtifactUpdate),
    /// Its end. There is nothing to hear after it.
    Finished(Ended),
}

/// The hub's side: the agents that one agent may call, and its calls.
#[async_trait::async_trait]
pub trait DelegatePort: Send + Sync {
    /// Their cards, as the hub publishes them, each with its `agentId`.
    async fn agents(&self) -> Vec<Value>;

    /// Those of the same agents that fit a question, the best first, each with why.
    async fn find(&self, query: AgentQuery) -> Result<FoundAgents, Failure>;

    /// Gives another agent a task, or joins the child that there is under this key. Once this returns, the child is in the log.
    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure>;

    /// Joins a child again that the caller had called before its hub was restarted, and has heard so many updates of.
    async fn join(&self, child: &JoinChild) -> Result<Box<dyn CallPort>, Failure> {
        let child = &child.task;
        Err(Failure::Unsupported(format!("join `{child}` again")))
    }

    /// The children of the task that the caller is at work on, oldest first.
    async fn children(&self) -> Result<Vec<ChildTask>, Failure>;
}

/// One call of another agent. Dropping it stops nothing: the child ends with the caller's task at the latest.
#[async_trait::async_trait]
pub trait CallPort: Send + Sync {
    /// The child.
    fn task(&self) -> &TaskId;

    /// What happens to the child next, from its beginning on. May be dropped and called again.
    async fn next(&mut self) -> Result<Update, Failure>;

    /// Answers what the child asks.
    async fn answer(&self, message: Message) -> Result<(), Failure>;

    /// Stops the child, and waits until it has ended.
    async fn cancel(&self) -> Result<(), Failure>;
}
