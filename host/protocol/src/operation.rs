//! Everything a client may ask of the hub, whatever it speaks, and what it is answered.

use crate::{
    id::{AgentId, TaskId},
    message::Message,
    task::Task,
};
use serde::Serialize;
use serde_json::Value;

/// Something a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Have an agent work on a message, and wait for the end.
    SendMessage(SendMessage),
    /// The same, hearing what happens as it happens.
    StreamMessage(SendMessage),
    /// Show a task.
    GetTask {
        /// Which.
        id: TaskId,
        /// How many of its latest messages to show; all of them if left out.
        history_length: Option<usize>,
    },
    /// Stop a task.
    CancelTask {
        /// Which.
        id: TaskId,
    },
    /// Tell how the hub is.
    Status,
    /// Tell which agents there are.
    ListAgents {
        /// Whether to tell how they are as well.
        include_health: bool,
    },
    /// Show an agent's card, as others may find it.
    GetCard {
        /// Whose; the hub's own if left out.
        agent: Option<AgentId>,
    },
    /// Show the cards of all agents.
    ListCards,
}

impl Operation {
    /// Whether the answer is a stream.
    pub fn streams(&self) -> bool {
        matches!(self, Self::StreamMessage(_))
    }

    /// Whether its stream is of a task that was there before, so that the client may have heard some of it.
    pub fn resumes(&self) -> bool {
        if let Self::StreamMessage(send) = self {
            return send.message.task_id.is_some();
        }
        self.streams()
    }
}

/// A message, and how it is to be treated.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// What the client says.
    pub message: Message,
    /// Who is to hear it; a message that answers a task's question goes to that task's agent.
    pub agent: Option<AgentId>,
    /// Where the work is to be done.
    pub working_directory: Option<String>,
    /// How many of the task's latest messages to show; all of them if left out.
    pub history_length: Option<usize>,
    /// How long the task may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// The answer to an operation that does not stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A task.
    Task(Box<Task>),
    /// The agent answered with a message and no task.
    Message(Message),
    /// How the hub is.
    Status(HubStatus),
    /// The agents there are.
    Agents(Vec<AgentInfo>),
    /// A card, all but where it is reached: what it travels on knows.
    Card(Value),
    /// The cards of all agents, in the same way.
    Cards(Vec<Value>),
}

/// How well an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// It can work.
    Healthy,
    /// It can work, but not fully.
    Degraded,
    /// It cannot work.
    Unhealthy,
    /// It was not asked yet.
    Unknown,
}

/// What was found when an agent was last asked how it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentHealth {
    /// How well it is.
    pub status: HealthStatus,
    /// When it was asked: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check: Option<String>,
    /// How long its answer took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The version of the program behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The command that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl AgentHealth {
    /// Nobody asked yet.
    pub fn unknown() -> Self {
        Self {
            status: HealthStatus::Unknown,
            last_check: None,
            latency_ms: None,
            version: None,
            error_message: None,
            fix: None,
        }
    }
}

/// How the hub is: `hub/status` of the Local Hub specification.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HubStatus {
    /// The hub's version.
    pub version: String,
    /// How long it has been up, in milliseconds.
    pub uptime: u64,
    /// Its agents.
    pub agents: Vec<AgentBrief>,
    /// Tasks that are not over.
    pub active_tasks: u64,
    /// Tasks it remembers.
    pub total_tasks: u64,
    /// Agents in all.
    pub total: usize,
    /// Agents that can work.
    pub healthy: usize,
    /// Agents that can work, but not fully.
    pub degraded: usize,
    /// Agents that cannot work.
    pub unhealthy: usize,
    /// Agents that were not asked yet.
    pub unknown: usize,
    /// Components in the plugins folder that are not agents, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected_plugins: Vec<RejectedPlugin>,
}

/// An agent in one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentBrief {
    /// Its name on this hub.
    pub id: AgentId,
    /// Its name for people.
    pub name: String,
    /// How well it is.
    pub status: HealthStatus,
}

/// A component that was not taken in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RejectedPlugin {
    /// The file's name.
    pub file: String,
    /// What is wrong with it, and how to mend it.
    pub error: String,
}

/// One agent: an element of the answer to `hub/agents/list`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Its name on this hub.
    pub id: AgentId,
    /// Its name for people.
    pub name: String,
    /// Its card.
    pub card: Value,
    /// How it is, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<AgentHealth>,
    /// When it joined the hub: RFC 3339 in UTC.
    pub registered_at: String,
    /// Where it came from: `built-in` or the file's name.
    pub source: String,
    /// Programs it asks for and was not granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_granted: Vec<String>,
}
