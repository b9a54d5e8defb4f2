//! Operations: everything a client may ask of the hub, whatever dialect it speaks, and the answers. Those of A2A (A2A
//! 1.0, section 3.1) stand beside the hub's own.

mod component;
mod find;
mod grants;
mod health;
mod name;
mod placing;
mod plugins;
mod requirements;
mod send;
mod tier;
mod tree;
mod upkeep;

pub use component::Component;
pub use find::{
    AgentQuery, CardPart, DEFAULT_FOUND, FoundAgent, FoundAgents, FoundElsewhere, MAX_FOUND,
    UnaskedRegistry, Why, WhyBy,
};
pub use grants::{AddPlugin, BackedUp, GrantPlugin, PluginChanged, PluginGrant};
pub use health::{AgentBreaker, AgentHealth, BreakerState, HealthStatus, Operated};
pub use plugins::{
    AskedCapability, HeldBack, InstallationInfo, NotGranted, PluginChange, PluginInfo,
    PluginsRefreshed,
};
pub use requirements::{AgentGroup, AgentRequirements};
pub use send::{SendMessage, Wait};
pub use tier::ProgramTier;
pub use tree::{TaskTree, TreeQuery, TreeQuestion, TreeTask};
pub use upkeep::{
    AgentBrief, CompilingPlugin, HubStatus, LeftOut, OpenStreams, Pong, RejectedPlugin, Reloaded,
    StorageCondition,
};

use crate::model::{
    card::AgentCard,
    id::{AgentId, ContextId, PushConfigId, TaskId, TenantId},
    message::Message,
    push::{Delivery, OfferedPush, PublicKey, PushConfig},
    task::{Task, TaskState},
    trace::TraceContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// An operation: what a client asks the hub to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Have an agent work on a message, and wait for the end (A2A 1.0, section 3.1.1).
    SendMessage(Box<SendMessage>),
    /// Have an agent work on a message, and hear what happens as it happens (section 3.1.2).
    StreamMessage(Box<SendMessage>),
    /// Show a task (section 3.1.3).
    GetTask {
        /// The task to show.
        id: TaskId,
        /// How many of its latest messages to show; all of them if left out.
        history_length: Option<usize>,
    },
    /// Stop a task (section 3.1.5).
    CancelTask {
        /// The task to stop.
        id: TaskId,
    },
    /// Hear what happens to a task from now on, or what happened since an event (section 3.1.6).
    Resubscribe {
        /// The task to hear of.
        id: TaskId,
        /// The number of the last event heard; without it, the task as it stands comes first.
        after: Option<u64>,
    },
    /// Have a task's notifications sent somewhere, instead of where a config of that id has them sent (section 3.1.7).
    SetPushConfig {
        /// The task whose notifications are meant.
        task: TaskId,
        /// Where the notifications are to be sent.
        push: OfferedPush,
    },
    /// Show where a task's notifications are sent (section 3.1.8).
    GetPushConfig {
        /// The task whose notifications are meant.
        task: TaskId,
        /// The config to show, of those of the task; the first if left out.
        id: Option<PushConfigId>,
    },
    /// List where a task's notifications are sent (section 3.1.9).
    ListPushConfigs {
        /// The task whose notifications are meant.
        task: TaskId,
    },
    /// Stop sending a task's notifications to one place (section 3.1.10). A config that is not there is deleted already.
    DeletePushConfig {
        /// The task whose notifications are meant.
        task: TaskId,
        /// The config to delete, of those of the task.
        id: PushConfigId,
    },
    /// List notifications that are on their way, or were given up.
    ListDeliveries {
        /// Whether to list only notifications that were given up.
        dead_only: bool,
        /// How many to list at most.
        limit: usize,
    },
    /// Retry a task's notifications that failed or were given up.
    RetryDeliveries {
        /// The task whose notifications are meant.
        task: TaskId,
    },
    /// Show the keys by which receivers know that notifications are this hub's.
    ListPushKeys,
    /// Show the tasks that match, newest first.
    ListTasks(TaskQuery),
    /// Show the tasks that match, the one whose status changed last first, a page at a time (section 3.1.4).
    PageTasks(TaskPageQuery),
    /// Shows a task with all below it.
    GetTree(TreeQuery),
    /// Show the conversations, the one with the newest task first.
    ListContexts(ContextQuery),
    /// Show a conversation (context) and its latest messages.
    GetContext {
        /// The conversation to show.
        id: ContextId,
        /// How many of its latest messages to show.
        history_length: usize,
    },
    /// Forget a conversation and its tasks.
    DeleteContext {
        /// The conversation to forget.
        id: ContextId,
    },
    /// Tell that the hub answers.
    Ping,
    /// Tell how the hub is.
    Status,
    /// Tell the hub's metrics.
    ReadMetrics {
        /// What the door knows that was asked.
        streams: OpenStreams,
    },
    /// Read the configuration again, and follow what can be followed without a restart. For administrators only.
    ReloadConfig,
    /// Tell what plug-ins ask for, and what is granted to them. For administrators only.
    ListPlugins,
    /// Look at once for what the operator granted, and at the plugins folder. For administrators only; it grants nothing.
    RefreshPlugins,
    /// Put a component into the plugins folder. For the operator by the kernel's word alone.
    AddPlugin(Box<AddPlugin>),
    /// Grant a plug-in something, and let its component in. For the operator by the kernel's word alone.
    GrantPlugin(Box<GrantPlugin>),
    /// Take some of what was granted away, also from tasks at work. For the operator by the kernel's word alone.
    DenyPlugin {
        /// The plug-in.
        id: AgentId,
        /// What it may not do any more, such as `process.git` or `memory`.
        capabilities: Vec<String>,
    },
    /// Take all away that was granted, also from tasks at work. For the operator by the kernel's word alone.
    RevokePlugin {
        /// The plug-in.
        id: AgentId,
    },
    /// Take a plug-in out of the plugins folder, and forget what it keeps. For the operator by the kernel's word alone.
    RemovePlugin {
        /// The plug-in.
        id: AgentId,
    },
    /// Copy the store to a new file of this machine. For the operator by the kernel's word alone: it holds all tasks of all tenants.
    BackUp {
        /// The file to make, as an absolute path.
        file: PathBuf,
    },
    /// Tell which agents there are.
    ListAgents {
        /// Whether to tell how they are as well.
        include_health: bool,
    },
    /// Find agents by what they are called, can do and say of themselves.
    FindAgents(AgentQuery),
    /// Show an agent, with its card and its health.
    GetAgent {
        /// The agent to show.
        id: AgentId,
    },
    /// Ask an agent how it is, now.
    CheckAgent {
        /// The agent to ask.
        id: AgentId,
    },
    /// Take in an agent, for good. For administrators only: no agent may ask for it.
    RegisterAgent {
        /// The id that the agent is to have.
        id: AgentId,
        /// The agent's component, or where it is.
        component: Component,
    },
    /// Let an agent go. For administrators only.
    DeregisterAgent {
        /// The agent to let go.
        id: AgentId,
    },
    /// Read an agent's component again, or the card of one that is elsewhere. For administrators only.
    ReloadAgent {
        /// The agent to read again.
        id: AgentId,
        /// The SHA-256 digest of the card that the operator approves, in hex.
        accept: Option<String>,
    },
    /// Tell everything that happens, as it happens.
    WatchHub,
    /// Show an agent's card, as others may find it (section 3.1.11).
    GetCard {
        /// The agent; the hub itself if left out.
        agent: Option<AgentId>,
    },
    /// Show the cards of all agents.
    ListCards,
    /// Describe the hub's interface as OpenRPC.
    Discover,
}

impl Operation {
    /// Whether the answer is a stream.
    pub fn streams(&self) -> bool {
        matches!(self, Self::StreamMessage(_) | Self::Resubscribe { .. } | Self::WatchHub)
    }

    /// Has the stream of a task go on after the event that the client heard last, unless the operation says so itself.
    pub fn go_on_after(&mut self, heard: Option<u64>) {
        if let Self::StreamMessage(send) = self {
            send.after = send.after.or(heard);
        } else if let Self::Resubscribe { after, .. } = self {
            *after = after.or(heard);
        }
    }

    /// Has the message be one of the trace that its client is in, as that said beside it.
    pub fn in_trace(&mut self, said: &TraceContext) {
        if let Self::SendMessage(send) | Self::StreamMessage(send) = self {
            send.trace = (*said != TraceContext::default()).then(|| Box::new(said.clone()));
        }
    }

    /// Whether the answer is a stream of a task that was there before, so that the client may have heard some of it.
    pub fn resumes(&self) -> bool {
        if let Self::StreamMessage(send) = self {
            return send.message.task_id.is_some();
        }
        self.streams()
    }
}

/// A part of a list, by how many of its first items are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many items to show at most.
    pub limit: usize,
    /// How many of the first items to leave out.
    pub offset: usize,
}

/// A choice among all conversations, the one with the newest task first: which to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextQuery {
    /// Leaves out conversations whose name does not begin so.
    pub id_prefix: Option<String>,
    /// Leaves out conversations of other tenants.
    pub tenant: Option<TenantId>,
    /// The part of the conversations that are left.
    pub page: Page,
}

/// A choice among all tasks, newest first: which to show, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuery {
    /// Leaves out tasks whose name does not begin so.
    pub id_prefix: Option<String>,
    /// Leaves out tasks of other agents.
    pub agent: Option<AgentId>,
    /// Leaves out tasks whose status changed before: RFC 3339 in UTC with milliseconds.
    pub since: Option<String>,
    /// Leaves out tasks of other conversations.
    pub context: Option<ContextId>,
    /// Leaves out tasks of other tenants.
    pub tenant: Option<TenantId>,
    /// Leaves out tasks that are to be done in other directories, as their clients said last.
    pub directory: Option<String>,
    /// Leaves out tasks of other workflows; the task at the root of a tree, which has the workflow's name, is one of it.
    pub workflow: Option<String>,
    /// Leaves out tasks in other states.
    pub state: Option<TaskState>,
    /// The part of the tasks that are left.
    pub page: Page,
    /// How many of each task's latest messages to show; all of them if left out.
    pub history_length: Option<usize>,
    /// Whether to show what the agents made; a thousand tasks may have made gigabytes.
    pub include_artifacts: bool,
}

/// A page of all tasks, the one whose status changed last first (A2A 1.0, section 3.1.4): which to show, and how much of
/// each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPageQuery {
    /// Leaves out tasks of other agents.
    pub agent: Option<AgentId>,
    /// Leaves out tasks of other conversations.
    pub context: Option<ContextId>,
    /// Leaves out tasks of other tenants.
    pub tenant: Option<TenantId>,
    /// Leaves out tasks in other states.
    pub state: Option<TaskState>,
    /// Leaves out tasks whose status has not changed since then: RFC 3339 in UTC with milliseconds.
    pub since: Option<String>,
    /// The cursor: leaves out the task at this place, and those before it.
    pub after: Option<TaskPlace>,
    /// How many tasks a page holds at most.
    pub size: usize,
    /// How many of each task's latest messages to show; all of them if left out.
    pub history_length: Option<usize>,
    /// Whether to show what the agents made.
    pub include_artifacts: bool,
}

/// A task's place among all, when those whose status changed last come first: the cursor of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    /// When the task's status changed: RFC 3339 in UTC with milliseconds.
    pub updated: String,
    /// The task's id, which tells apart those that changed in the same millisecond.
    pub id: TaskId,
}

/// A task in a list of tasks of all agents.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTask {
    /// The agent that does it.
    pub agent: AgentId,
    /// The task as it stands.
    pub task: Task,
}

/// The answer to an operation that does not stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A task as it stands.
    Task(Box<Task>),
    /// The agent answered with a message and no task.
    Message(Message),
    /// The tasks that match a query.
    Tasks {
        /// The tasks, newest first.
        tasks: Vec<ListedTask>,
        /// Whether the tasks are shown with what the agents made.
        artifacts: bool,
    },
    /// A task with those below it.
    Tree(TaskTree),
    /// Where a task's notifications are sent.
    PushConfig(Box<PushConfig>),
    /// Every place where a task's notifications are sent.
    PushConfigs(Vec<PushConfig>),
    /// A task's notifications are not sent to that place any more.
    PushConfigDeleted,
    /// Notifications that are on their way, or were given up.
    Deliveries(Vec<Delivery>),
    /// The keys by which notifications are known, the one that signs first.
    PushKeys(Vec<PublicKey>),
    /// A page of tasks.
    TaskPage {
        /// The tasks of this page.
        tasks: Vec<Task>,
        /// Whether the tasks are shown with what the agents made.
        artifacts: bool,
        /// How many a page may hold.
        size: usize,
        /// How many there are on all pages.
        total: u64,
        /// The place after which the next page begins, if there is one.
        next: Option<TaskPlace>,
    },
    /// The conversations there are.
    Contexts(Vec<ContextInfo>),
    /// A conversation, with its latest messages, oldest first.
    Context(ContextInfo, Vec<Message>),
    /// A conversation was forgotten.
    Forgotten {
        /// The conversation that was deleted.
        context: ContextId,
        /// How many tasks the conversation had.
        tasks: usize,
    },
    /// The hub answers, whatever else may be wrong with it.
    Pong(Pong),
    /// How the hub is.
    Status(HubStatus),
    /// The hub's metrics, in the text form of OpenMetrics.
    Metrics(String),
    /// The configuration was read again.
    Reloaded(Reloaded),
    /// What plug-ins ask for, and what is granted to them.
    Plugins(Vec<PluginInfo>),
    /// What looking for new grants has changed.
    PluginsRefreshed(PluginsRefreshed),
    /// A plug-in was added, granted something, denied something, or removed.
    PluginChanged(Box<PluginChanged>),
    /// A copy of the store was made.
    BackedUp(BackedUp),
    /// The agents there are.
    Agents(Vec<AgentInfo>),
    /// The agents that were found.
    Found(FoundAgents),
    /// An agent, with its card and its health.
    Agent(Box<AgentInfo>),
    /// How an agent is.
    Health(AgentHealth),
    /// An agent was let go.
    Deregistered(Deregistered),
    /// The hub's interface, as an OpenRPC document.
    Discovery(Value),
    /// A card without where its agent is reached, which only the transport knows.
    Card(Box<CardOf>),
    /// The cards of all agents, without where they are reached.
    Cards(Vec<CardOf>),
}

/// A card with the agent that it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct CardOf {
    /// The agent; none if it is the hub itself.
    pub agent: Option<AgentId>,
    /// The card that the agent or the hub has given itself.
    pub card: AgentCard,
    /// Since when the card has been so: RFC 3339 in UTC.
    pub since: String,
    /// How each agent behind it is run, which only the extended card tells.
    pub operated: Vec<(AgentId, Operated)>,
}

/// A conversation in one line: an element of the answer to `hub/contexts/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfo {
    /// The conversation's id.
    pub id: ContextId,
    /// How many tasks the conversation has.
    pub task_count: u64,
    /// The ids of the agents that take part.
    pub agents: Vec<AgentId>,
    /// When the first task of the conversation began: RFC 3339 in UTC.
    pub created_at: String,
    /// When the state of one of the conversation's tasks last changed: RFC 3339 in UTC.
    pub updated_at: String,
    /// The state of the conversation's newest task, as [`TaskState::name`] calls it.
    #[serde(serialize_with = "state_name")]
    #[schemars(with = "String")]
    pub last_state: TaskState,
}

fn state_name<S: serde::Serializer>(state: &TaskState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.name())
}

/// One agent: an element of the answer to `hub/agents/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// The agent's id on this hub.
    pub id: AgentId,
    /// The agent's name for people.
    pub name: String,
    /// The agent's card.
    pub card: Value,
    /// The agent's health, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<AgentHealth>,
    /// The agent's circuit breaker: whether tasks reach it.
    pub breaker: AgentBreaker,
    /// When the agent joined the hub: RFC 3339 in UTC.
    pub registered_at: String,
    /// Where the agent came from: `built-in` or the file's name.
    pub source: String,
    /// The name of the operator's key that signed the agent's component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// What the agent asks for and was not granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_granted: Vec<NotGranted>,
    /// Another component in the agent's file that waits for the operator; the one that was granted serves on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// How the agent's programs are held; nothing if it may run none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProgramTier>,
    /// What the agent's programs may do without asking, as the operator set it: `read-only`, `ask`, `edit` or `full`; nothing if it
    /// may run none. A message's `metadata.permissions` says less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// How many of the agent's programs live between its tasks, for the next of them; nothing if none do.
    #[serde(skip_serializing_if = "tree::is_zero")]
    pub kept: usize,
}

/// An agent that was let go: the answer to `hub/agents/deregister`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deregistered {
    /// The agent's id.
    pub agent_id: AgentId,
    /// Where the agent came from: `built-in` or the file's name.
    pub source: String,
    /// Whether the agent is back when the hub starts again; until then `hub/agents/reload` brings it back.
    pub returns_on_restart: bool,
}
