//! Everything a client may ask of the hub, whatever it speaks, and what it is answered.

use crate::{
    card::AgentCard,
    error::A2aError,
    id::{AgentId, ContextId, PushConfigId, TaskId},
    message::{Message, Metadata},
    push::{Delivery, OfferedPush, PublicKey, PushConfig},
    task::{Task, TaskState},
    terms::Terms,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

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
    /// Hear what happens to a task from now on, or what happened since.
    Resubscribe {
        /// Which.
        id: TaskId,
        /// The number of the last event heard; without it, the task as it stands comes first.
        after: Option<u64>,
    },
    /// Have a task's notifications sent somewhere, instead of where a config of that name has them sent.
    SetPushConfig {
        /// The task.
        task: TaskId,
        /// Where.
        push: OfferedPush,
    },
    /// Show where a task's notifications are sent.
    GetPushConfig {
        /// The task.
        task: TaskId,
        /// Which of its configs; the first if left out.
        id: Option<PushConfigId>,
    },
    /// List where a task's notifications are sent.
    ListPushConfigs {
        /// The task.
        task: TaskId,
    },
    /// Stop sending a task's notifications there. One that is not there is deleted already.
    DeletePushConfig {
        /// The task.
        task: TaskId,
        /// Which of its configs.
        id: PushConfigId,
    },
    /// List notifications that are on their way, or were given up.
    ListDeliveries {
        /// Only what was given up.
        dead_only: bool,
        /// At most so many.
        limit: usize,
    },
    /// Retry a task's notifications that failed or were given up.
    RetryDeliveries {
        /// The task.
        task: TaskId,
    },
    /// Show the keys by which receivers know that notifications are this hub's.
    ListPushKeys,
    /// Show the tasks that match, newest first.
    ListTasks(TaskQuery),
    /// Show the tasks that match, the one whose status changed last first, a page at a time.
    PageTasks(TaskPageQuery),
    /// Show the conversations, the one with the newest task first.
    ListContexts(Page),
    /// Show a conversation.
    GetContext {
        /// Which.
        id: ContextId,
        /// How many of its latest messages to show.
        history_length: usize,
    },
    /// Forget a conversation and its tasks.
    DeleteContext {
        /// Which.
        id: ContextId,
    },
    /// Tell how the hub is.
    Status,
    /// Tell which agents there are.
    ListAgents {
        /// Whether to tell how they are as well.
        include_health: bool,
    },
    /// Show an agent.
    GetAgent {
        /// Which.
        id: AgentId,
    },
    /// Ask an agent how it is, now.
    CheckAgent {
        /// Which.
        id: AgentId,
    },
    /// Take in an agent, for good. For administrators only: no agent may ask for it.
    RegisterAgent {
        /// What it is to be called.
        id: AgentId,
        /// Where its component is.
        component: Component,
    },
    /// Let an agent go. For administrators only.
    DeregisterAgent {
        /// Which.
        id: AgentId,
    },
    /// Read an agent's component again, or the card of one that is elsewhere. For administrators only.
    ReloadAgent {
        /// Which.
        id: AgentId,
        /// The SHA-256 digest of the card that the operator approves, in hex.
        accept: Option<String>,
    },
    /// Tell everything that happens, as it happens.
    WatchHub,
    /// Show an agent's card, as others may find it.
    GetCard {
        /// Whose; the hub's own if left out.
        agent: Option<AgentId>,
    },
    /// Show the cards of all agents.
    ListCards,
    /// Describe this interface.
    Discover,
}

/// An agent's component, on its way in.
#[derive(Clone, Debug, PartialEq)]
pub enum Component {
    /// A file on the hub's machine.
    File(PathBuf),
    /// The component itself.
    Bytes(Vec<u8>),
}

impl Operation {
    /// Whether the answer is a stream.
    pub fn streams(&self) -> bool {
        matches!(self, Self::StreamMessage(_) | Self::Resubscribe { .. } | Self::WatchHub)
    }

    /// Has the stream of a task go on after the event that the client heard last, unless the operation says so itself.
    pub fn go_on_after(&mut self, heard: Option<u64>) {
        if let Self::StreamMessage(SendMessage { after: after @ None, .. })
        | Self::Resubscribe { after: after @ None, .. } = self
        {
            *after = heard;
        }
    }

    /// Whether its stream is of a task that was there before, so that the client may have heard some of it.
    pub fn resumes(&self) -> bool {
        if let Self::StreamMessage(send) = self {
            return send.message.task_id.is_some();
        }
        self.streams()
    }
}

/// Which part of a list to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: usize,
    /// Leaving out so many of the first.
    pub offset: usize,
}

/// Which tasks to show, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Which of those.
    pub page: Page,
    /// How many of each task's latest messages to show; all of them if left out.
    pub history_length: Option<usize>,
    /// Whether to show what the agents made; a thousand tasks may have made gigabytes.
    pub include_artifacts: bool,
}

/// Which page of the tasks to show, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPageQuery {
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Only those whose status changed then or later: RFC 3339 in UTC with milliseconds.
    pub since: Option<String>,
    /// Only those that come after this place.
    pub after: Option<TaskPlace>,
    /// At most so many.
    pub size: usize,
    /// How many of each task's latest messages to show; all of them if left out.
    pub history_length: Option<usize>,
    /// Whether to show what the agents made.
    pub include_artifacts: bool,
}

/// A task's place among all, when those whose status changed last come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    /// When its status changed: RFC 3339 in UTC with milliseconds.
    pub updated: String,
    /// Its name, which tells apart those that changed in the same millisecond.
    pub id: TaskId,
}

/// How long to wait for the end of a task before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until it is over, or waits for its client.
    ToTheEnd,
    /// The same, but no longer than this.
    AtMost(Duration),
    /// Not at all.
    No,
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
    /// Where the task's notifications are to be sent.
    pub push: Option<OfferedPush>,
    /// How long to wait for its end; a stream has no need to.
    pub wait: Wait,
    /// On what terms it is asked.
    pub terms: Terms,
    /// The number of the last event that the client heard of the task that the message is for, if it was cut off: a stream
    /// goes on after that.
    pub after: Option<u64>,
}

impl SendMessage {
    /// A message for whom its metadata names, waited for to the end. What it leaves out, the metadata of the request may
    /// say: `targetAgent` and `workingDirectory`.
    pub fn new(message: Message, request: Option<&Metadata>) -> Result<Self, A2aError> {
        let text = |name: &str| {
            let of = |facts: Option<&Metadata>, at: &str| match facts
                .and_then(|facts| facts.get(name))
            {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some((text.clone(), format!("{at}.{name}")))),
                Some(_) => Err(A2aError::invalid(&format!("{at}.{name}"), "must be a string")),
            };
            let said = of(message.metadata.as_ref(), "message.metadata")?;
            said.map_or_else(|| of(request, "metadata"), |said| Ok(Some(said)))
        };
        let agent = text("targetAgent")?
            .map(|(name, at)| AgentId::parse(name).map_err(|why| A2aError::invalid(&at, why)))
            .transpose()?;
        let working_directory = text("workingDirectory")?.map(|(directory, _)| directory);
        Ok(Self {
            message,
            agent,
            working_directory,
            history_length: None,
            timeout_ms: None,
            push: None,
            wait: Wait::ToTheEnd,
            terms: Terms::default(),
            after: None,
        })
    }
}

/// A task in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTask {
    /// Who does it.
    pub agent: AgentId,
    /// The task.
    pub task: Task,
}

/// The answer to an operation that does not stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A task.
    Task(Box<Task>),
    /// The agent answered with a message and no task.
    Message(Message),
    /// Tasks.
    Tasks {
        /// Each of them.
        tasks: Vec<ListedTask>,
        /// Whether they are shown with what the agents made.
        artifacts: bool,
    },
    /// Where a task's notifications are sent.
    PushConfig(Box<PushConfig>),
    /// Every place where they are.
    PushConfigs(Vec<PushConfig>),
    /// They are not sent there any more.
    PushConfigDeleted,
    /// Notifications that are on their way, or were given up.
    Deliveries(Vec<Delivery>),
    /// The keys by which notifications are known, the one that signs first.
    PushKeys(Vec<PublicKey>),
    /// A page of tasks.
    TaskPage {
        /// Each of them.
        tasks: Vec<Task>,
        /// Whether they are shown with what the agents made.
        artifacts: bool,
        /// How many a page may hold.
        size: usize,
        /// How many there are on all pages.
        total: u64,
        /// The place after which the next page begins, if there is one.
        next: Option<TaskPlace>,
    },
    /// Conversations.
    Contexts(Vec<ContextInfo>),
    /// A conversation, with its latest messages, oldest first.
    Context(ContextInfo, Vec<Message>),
    /// A conversation was forgotten.
    Forgotten {
        /// Which.
        context: ContextId,
        /// How many tasks it had.
        tasks: usize,
    },
    /// How the hub is.
    Status(HubStatus),
    /// The agents there are.
    Agents(Vec<AgentInfo>),
    /// One agent.
    Agent(Box<AgentInfo>),
    /// How an agent is.
    Health(AgentHealth),
    /// An agent was let go.
    Deregistered(Deregistered),
    /// This interface, as an OpenRPC document.
    Discovery(Value),
    /// A card, all but where it is reached: what it travels on knows.
    Card(Box<CardOf>),
    /// The cards of all agents, in the same way.
    Cards(Vec<CardOf>),
}

/// A card, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct CardOf {
    /// The agent; none if it is the hub itself.
    pub agent: Option<AgentId>,
    /// What it says of itself.
    pub card: AgentCard,
    /// Since when it has been so: RFC 3339 in UTC.
    pub since: String,
}

/// A conversation in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfo {
    /// Its name.
    pub id: ContextId,
    /// How many tasks it has.
    pub task_count: u64,
    /// Who takes part, by name.
    pub agents: Vec<AgentId>,
    /// When its first task began: RFC 3339 in UTC.
    pub created_at: String,
    /// When the state of one of its tasks last changed: RFC 3339 in UTC.
    pub updated_at: String,
    /// Where its newest task stands, as [`TaskState::name`] calls it.
    #[serde(serialize_with = "state_name")]
    #[schemars(with = "String")]
    pub last_state: TaskState,
}

fn state_name<S: serde::Serializer>(state: &TaskState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.name())
}

/// How well an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// What else it says of itself, such as which version of its program it was tested with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
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
            detail: None,
            fix: None,
        }
    }
}

/// Whether tasks reach an agent, judged by how its last ones and its health checks went.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBreaker {
    /// Where it stands.
    pub state: BreakerState,
    /// When the next task is let through, unless a good health check comes before: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// What went wrong the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl AgentBreaker {
    /// Tasks reach the agent.
    pub fn closed() -> Self {
        Self { state: BreakerState::Closed, retry_at: None, cause: None }
    }
}

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    /// Every task reaches the agent.
    Closed,
    /// None does, for the agent failed again and again.
    Open,
    /// One was let through, to see how it fares.
    HalfOpen,
}

/// How the hub is: `hub/status` of the Local Hub specification.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentBrief {
    /// Its name on this hub.
    pub id: AgentId,
    /// Its name for people.
    pub name: String,
    /// How well it is.
    pub status: HealthStatus,
    /// Whether tasks reach it.
    pub breaker: AgentBreaker,
}

/// A component that was not taken in.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RejectedPlugin {
    /// The file's name.
    pub file: String,
    /// What is wrong with it, and how to mend it.
    pub error: String,
}

/// One agent: an element of the answer to `hub/agents/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// Whether tasks reach it.
    pub breaker: AgentBreaker,
    /// When it joined the hub: RFC 3339 in UTC.
    pub registered_at: String,
    /// Where it came from: `built-in` or the file's name.
    pub source: String,
    /// Programs it asks for and was not granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_granted: Vec<String>,
}

/// An agent that was let go: the answer to `hub/agents/deregister`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deregistered {
    /// Its name.
    pub agent_id: AgentId,
    /// Where it came from: `built-in` or the file's name.
    pub source: String,
    /// Whether it is back when the hub starts again; until then `hub/agents/reload` brings it back.
    pub returns_on_restart: bool,
}
