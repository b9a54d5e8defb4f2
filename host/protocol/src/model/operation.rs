//! Operations that a client may request, independent of dialect, and their answers: those of A2A
//! (A2A 1.0, section 3.1) and the hub's own.

mod choice;
mod component;
mod conversation;
mod devices;
mod find;
mod grants;
mod handoff;
mod health;
mod name;
mod notices;
mod notifiers;
mod page;
mod people;
mod permissions;
mod placing;
mod plugins;
mod questions;
mod requirements;
mod reviews;
mod schedules;
mod search;
mod send;
mod task_lists;
mod tier;
mod timeline;
mod tree;
mod triggers;
mod upkeep;
mod usage;
mod watch;
mod worktrees;

pub use crate::boards::BoardRequest;
pub use crate::topics::{TopicAnswer, TopicRequest};
pub use choice::AgentChoice;
pub use component::ComponentSource;
pub use conversation::{ContextInfo, ContextQuery};
pub use devices::{
    DeviceInfo, DeviceList, DeviceReport, DeviceRequest, NamedDevice, OfferedPairing,
    PairingReport, PresentKey, PresentedReport,
};
pub use find::{
    AgentQuery, CardPart, DEFAULT_FOUND, FoundAgent, FoundAgents, FoundElsewhere, MAX_FOUND,
    UnaskedRegistry, Why, WhyBy,
};
pub use grants::{AddPlugin, BackedUp, GrantPlugin, PluginChanged, PluginGrant};
pub use handoff::HandOver;
pub use health::{AgentBreaker, AgentHealth, BreakerState, HealthStatus, Operated};
pub use notices::{
    Notice, NoticeAnswer, NoticeKind, NoticeList, NoticeQuery, NoticeRequest, NoticesRead,
    ReadNotices,
};
pub use notifiers::{NotifierAnswer, NotifierFault, NotifierInfo, NotifierRequest, NotifierTest};
pub use page::{Page, TaskCursor};
pub use people::{
    CallerInfo, InvitationReport, KeyInfo, KeyTerms, NewKeyReport, PeopleList, PeopleReport,
    PeopleRequest, PersonInfo, RemovalReport,
};
pub use permissions::{
    ListedRule, NewRule, RemovedRules, RuleList, RuleReport, RuleRequest, RuleTest, SuggestedRule,
    SuggestedRules, TestedAction, TestedRequest,
};
pub use plugins::{
    AskedCapability, HeldBack, InstallationInfo, NotGranted, PluginChange, PluginInfo,
    PluginsRefreshed,
};
pub use questions::{
    AlwaysAnswer, OpenQuestion, OpenQuestions, PastQuestion, QuestionAnswer, QuestionHistory,
    QuestionQuery, QuestionRequest, QuestionResult,
};
pub use requirements::{AgentGroup, AgentRequirements};
pub use reviews::{
    DiffSide, NewReviewComment, OutdatedReason, ReviewAnswer, ReviewComment, ReviewInfo,
    ReviewReport, ReviewRequest, SentReview,
};
pub use schedules::{ScheduleInfo, ScheduleRun};
pub use search::{ExcerptPart, SearchQuery, SearchResult, SearchResults};
pub use send::{RequestForm, SendMessage, Wait};
pub use task_lists::{ListedTask, TaskPageQuery, TaskQuery, TaskSummary};
pub use tier::ProgramTier;
pub use timeline::{TimelineCursor, TimelineEntry, TimelineKind, TimelinePage, TimelineQuery};
pub use tree::{TaskTree, TreeQuery, TreeQuestion, TreeTask};
pub use triggers::{TriggerAnswer, TriggerInfo, TriggerRequest, TriggerRun};
pub use upkeep::{
    AgentBrief, CompilingPlugin, Deregistered, HubStart, HubStatus, LeftOut, OpenStreams, Pong,
    RejectedPlugin, Reloaded, StorageCondition,
};
pub use usage::{UsageFigures, UsageGroup, UsageKey, UsageQuery, UsageReport};
pub use watch::EventWatch;
pub use worktrees::{
    ApplyTo, ConflictWith, LeftOutPart, WorktreeAnswer, WorktreeApplied, WorktreeChanges,
    WorktreeDiff, WorktreeInfo, WorktreeRemoved, WorktreeRequest, WorktreeSize,
};

use crate::model::{
    card::AgentCard,
    id::{AgentId, ContextId, PushConfigId, TaskId},
    interface::{Binding, Version},
    message::Message,
    push::{Delivery, OfferedPush, PublicKey, PushConfig},
    task::{Task, TaskState},
    trace::TraceContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// An operation that a client requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Sends a message to an agent and waits for the result (A2A 1.0, section 3.1.1).
    SendMessage(Box<SendMessage>),
    /// Sends a message to an agent and streams the task's events (section 3.1.2).
    StreamMessage(Box<SendMessage>),
    /// Returns a task (section 3.1.3).
    GetTask {
        /// Task to return.
        id: TaskId,
        /// Maximum number of latest messages; all, if `None`.
        history_length: Option<usize>,
    },
    /// Cancels a task (section 3.1.5).
    CancelTask {
        /// Task to cancel.
        id: TaskId,
    },
    /// Subscribes to a task's events, from now on or after a given event (section 3.1.6).
    Resubscribe {
        /// Task to subscribe to.
        id: TaskId,
        /// Sequence number of the last received event; with `None`, the stream begins with a
        /// snapshot.
        after: Option<u64>,
    },
    /// Creates or replaces a push configuration of a task (section 3.1.7).
    SetPushConfig {
        /// Task of the configuration.
        task: TaskId,
        /// The configuration.
        push: OfferedPush,
    },
    /// Returns a push configuration of a task (section 3.1.8).
    GetPushConfig {
        /// Task of the configuration.
        task: TaskId,
        /// Configuration to return; the task's first one, if `None`.
        id: Option<PushConfigId>,
    },
    /// Lists the push configurations of a task (section 3.1.9).
    ListPushConfigs {
        /// Task of the configurations.
        task: TaskId,
    },
    /// Deletes a push configuration of a task (section 3.1.10). Succeeds if the configuration does
    /// not exist.
    DeletePushConfig {
        /// Task of the configuration.
        task: TaskId,
        /// Configuration to delete.
        id: PushConfigId,
    },
    /// Lists pending and dead deliveries of notifications.
    ListDeliveries {
        /// True to list dead deliveries only.
        dead_only: bool,
        /// Maximum number of deliveries.
        limit: usize,
    },
    /// Retries a task's failing and dead deliveries.
    RetryDeliveries {
        /// Task of the deliveries.
        task: TaskId,
    },
    /// Lists the public keys with which receivers verify this hub's notifications.
    ListPushKeys,
    /// Lists the matching tasks, newest first.
    ListTasks(TaskQuery),
    /// Lists a page of the matching tasks, most recently changed status first (section 3.1.4).
    PageTasks(TaskPageQuery),
    /// Returns a task with its descendants.
    GetTree(TreeQuery),
    /// Returns a page of a task's timeline.
    GetTimeline(TimelineQuery),
    /// Finds tasks by the words in their messages and answers.
    Search(SearchQuery),
    /// Returns the usage of tasks, including those that were deleted.
    Usage(UsageQuery),
    /// Lists conversations, the one with the newest task first.
    ListContexts(ContextQuery),
    /// Returns a conversation (context) with its latest messages.
    GetContext {
        /// Conversation to return.
        id: ContextId,
        /// Maximum number of latest messages.
        history_length: usize,
    },
    /// Deletes a conversation and its tasks.
    DeleteContext {
        /// Conversation to delete.
        id: ContextId,
    },
    /// Hands a task over to another agent.
    HandOver(HandOver),
    /// Has a task that waits for its agent's quota try now.
    RetryNow {
        /// Task that waits.
        task: TaskId,
    },
    /// Lists, shows, takes over or removes the worktrees of tasks.
    Worktree(WorktreeRequest),
    /// Shows, changes or sends the caller's review of a task's changes.
    Review(ReviewRequest),
    /// Lists, answers or postpones the questions of all tasks, or lists earlier ones.
    Question(QuestionRequest),
    /// Lists the notices of all tasks, or marks some as read.
    Notice(NoticeRequest),
    /// Lists, makes, removes or tests standing permissions.
    Permission(RuleRequest),
    /// Lists, pairs or removes devices, which are paired browsers.
    Device(DeviceRequest),
    /// Lists, adds or removes people and their API keys.
    People(PeopleRequest),
    /// Answers without further checks.
    Ping,
    /// Returns the status of the hub.
    Status,
    /// Returns the hub's metrics.
    ReadMetrics {
        /// Stream counts, which only the server knows.
        streams: OpenStreams,
    },
    /// Reloads the configuration and applies all changes that need no restart. For administrators
    /// only.
    ReloadConfig,
    /// Lists the schedules of the configuration: all for an operator that names no tenant, or those
    /// of a tenant.
    ListSchedules,
    /// Starts a run of a schedule now. For administrators only.
    RunSchedule {
        /// Schedule to run.
        name: String,
    },
    /// Pauses a schedule: planned times get no run. For administrators only.
    PauseSchedule {
        /// Schedule to pause.
        name: String,
    },
    /// Resumes a paused schedule. For administrators only.
    ResumeSchedule {
        /// Schedule to resume.
        name: String,
    },
    /// Accepts a schedule that passed to the calling person, for which it then runs.
    AcceptSchedule {
        /// Schedule to accept.
        name: String,
    },
    /// Lists, runs, pauses, resumes or accepts the triggers of the configuration.
    Trigger(TriggerRequest),
    /// Lists or tests the notifiers of the configuration. For administrators only.
    Notifier(NotifierRequest),
    /// Publishes to topics, reads, lists or deletes them.
    Topic(TopicRequest),
    /// Reads the blackboards of a flow, or changes the one at which the calling program has a turn.
    Board(BoardRequest),
    /// Lists plug-ins with their requested and granted capabilities. For administrators only.
    ListPlugins,
    /// Rereads the file of grants and the plugins folder at once. Grants nothing. For
    /// administrators only.
    RefreshPlugins,
    /// Puts a component into the plugins folder. For the operator only, identified by the kernel.
    AddPlugin(Box<AddPlugin>),
    /// Grants capabilities to a plug-in and admits its component. For the operator only, identified
    /// by the kernel.
    GrantPlugin(Box<GrantPlugin>),
    /// Withdraws some granted capabilities, from running tasks too. For the operator only,
    /// identified by the kernel.
    DenyPlugin {
        /// Plug-in to change.
        id: AgentId,
        /// Capabilities to withdraw, such as `process.git` or `memory`.
        capabilities: Vec<String>,
    },
    /// Withdraws all granted capabilities, from running tasks too. For the operator only,
    /// identified by the kernel.
    RevokePlugin {
        /// Plug-in to change.
        id: AgentId,
    },
    /// Removes a plug-in from the plugins folder and deletes its data. For the operator only,
    /// identified by the kernel.
    RemovePlugin {
        /// Plug-in to remove.
        id: AgentId,
    },
    /// Copies the store to a new local file. For the operator only, identified by the kernel,
    /// because the copy holds all tasks of all tenants.
    BackUp {
        /// Absolute path of the new file.
        file: PathBuf,
    },
    /// Lists the agents.
    ListAgents {
        /// True to include the agents' health.
        include_health: bool,
    },
    /// Searches agents by name, skill, tags, media types and description.
    FindAgents(AgentQuery),
    /// Returns an agent with its card and health.
    GetAgent {
        /// Agent to return.
        id: AgentId,
    },
    /// Runs a health check of an agent.
    CheckAgent {
        /// Agent to check.
        id: AgentId,
    },
    /// Registers an agent permanently. For administrators only; agents may not request it.
    RegisterAgent {
        /// Id of the new agent.
        id: AgentId,
        /// Component of the agent, or its path.
        component: ComponentSource,
    },
    /// Deregisters an agent. For administrators only.
    DeregisterAgent {
        /// Agent to deregister.
        id: AgentId,
    },
    /// Reloads an agent's component, or a remote agent's card. For administrators only.
    ReloadAgent {
        /// Agent to reload.
        id: AgentId,
        /// SHA-256 digest in hex of the card that the operator approves.
        accept: Option<String>,
    },
    /// Subscribes to all events of the hub.
    WatchHub(EventWatch),
    /// Returns the public card of an agent (section 3.1.11).
    GetCard {
        /// Agent of the card; the hub itself, if `None`.
        agent: Option<AgentId>,
    },
    /// Returns the cards of all agents.
    ListCards,
    /// Returns the OpenRPC description of the hub's interface.
    Discover,
}

impl Operation {
    /// True if the answer is a stream.
    pub fn streams(&self) -> bool {
        matches!(self, Self::StreamMessage(_) | Self::Resubscribe { .. } | Self::WatchHub(_))
    }

    /// True for an operation of A2A 0.3, whose methods the hub's own dialect has as well.
    pub fn is_of_v03(&self) -> bool {
        matches!(
            self,
            Self::SendMessage(_)
                | Self::StreamMessage(_)
                | Self::GetTask { .. }
                | Self::CancelTask { .. }
                | Self::Resubscribe { .. }
                | Self::SetPushConfig { .. }
                | Self::GetPushConfig { .. }
                | Self::ListPushConfigs { .. }
                | Self::DeletePushConfig { .. }
        )
    }

    /// Sets the event after which the stream resumes, unless the operation already has one: by its
    /// number in a task's stream, by its cursor in the hub's.
    pub fn go_on_after(&mut self, last_event_id: Option<&str>) {
        let seq = last_event_id.and_then(|id| id.parse().ok());
        if let Self::StreamMessage(send) = self {
            send.after = send.after.or(seq);
        } else if let Self::Resubscribe { after, .. } = self {
            *after = after.or(seq);
        } else if let Self::WatchHub(EventWatch::Resumable { after }) = self {
            *after = after.take().or_else(|| last_event_id.map(str::to_owned));
        }
    }

    /// Sets the version, binding and transport of a message's request; the hub's own dialect has no
    /// version.
    pub fn set_transport(&mut self, official: Option<(Version, Binding)>, headerless: bool) {
        if let Self::SendMessage(send) | Self::StreamMessage(send) = self {
            send.form = RequestForm { official, headerless, ..send.form };
        }
    }

    /// Sets the trace context that the client sent in headers.
    pub fn in_trace(&mut self, trace: &TraceContext) {
        if let Self::SendMessage(send) | Self::StreamMessage(send) = self {
            send.trace = (*trace != TraceContext::default()).then(|| Box::new(trace.clone()));
        }
    }

    /// True if the answer streams an existing task, so that the client may have received earlier
    /// events.
    pub fn resumes(&self) -> bool {
        if let Self::StreamMessage(send) = self {
            return send.message.task_id.is_some();
        }
        self.streams()
    }
}

/// Answer to an operation that does not stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Snapshot of a task.
    Task(Box<Task>),
    /// Message of the agent, in place of a task.
    Message(Message),
    /// Tasks that match a query.
    Tasks {
        /// The tasks, newest first.
        tasks: Vec<ListedTask>,
        /// True if the tasks include artifacts.
        artifacts: bool,
    },
    /// Task with its descendants.
    Tree(TaskTree),
    /// Page of a task's timeline.
    Timeline(TimelinePage),
    /// Tasks with the words of a search.
    Searched(SearchResults),
    /// Usage of tasks.
    Usage(UsageReport),
    /// Push configuration of a task.
    PushConfig(Box<PushConfig>),
    /// All push configurations of a task.
    PushConfigs(Vec<PushConfig>),
    /// Confirmation that a push configuration does not exist any more.
    PushConfigDeleted,
    /// Pending and dead deliveries.
    Deliveries(Vec<Delivery>),
    /// Public keys that verify notifications, the current signing key first.
    PushKeys(Vec<PublicKey>),
    /// Page of tasks.
    TaskPage {
        /// Tasks of this page.
        tasks: Vec<ListedTask>,
        /// True if the tasks include artifacts.
        artifacts: bool,
        /// Maximum number of tasks of a page.
        size: usize,
        /// Number of tasks on all pages.
        total: u64,
        /// Cursor of the next page; `None` on the last page.
        next: Option<TaskCursor>,
    },
    /// List of conversations.
    Contexts(Vec<ContextInfo>),
    /// Conversation with its latest messages, oldest first.
    Context(ContextInfo, Vec<Message>),
    /// Confirmation of a deleted conversation.
    Forgotten {
        /// Deleted conversation.
        context: ContextId,
        /// Number of tasks that the conversation had.
        tasks: usize,
    },
    /// Answer to a request for worktrees.
    Worktree(WorktreeAnswer),
    /// Reviews of a task's changes, or the one that was sent.
    Review(ReviewAnswer),
    /// Open questions, earlier ones, or the result of an answer.
    Question(QuestionAnswer),
    /// Notices, or the number of those that were marked as read.
    Notice(NoticeAnswer),
    /// Standing permissions.
    Permission(RuleReport),
    /// Devices, or the state of a pairing.
    Device(DeviceReport),
    /// People, keys or invitations.
    People(PeopleReport),
    /// Answer to a ping.
    Pong(Pong),
    /// Status of the hub.
    Status(HubStatus),
    /// Metrics of the hub in the OpenMetrics text format.
    Metrics(String),
    /// Result of reloading the configuration.
    Reloaded(Reloaded),
    /// Schedules of the configuration.
    Schedules(Vec<ScheduleInfo>),
    /// Schedule that was paused or resumed.
    Schedule(Box<ScheduleInfo>),
    /// Triggers of the configuration.
    Trigger(TriggerAnswer),
    /// Notifiers of the configuration, or the result of a test message.
    Notifier(NotifierAnswer),
    /// Stored message, messages or list of topics.
    Topic(TopicAnswer),
    /// Blackboards, or the answer of a flow to a change of one.
    Board(Value),
    /// Plug-ins with their requested and granted capabilities.
    Plugins(Vec<PluginInfo>),
    /// Changes found by a refresh of plug-ins.
    PluginsRefreshed(PluginsRefreshed),
    /// Result of an addition, removal or changed grant of a plug-in.
    PluginChanged(Box<PluginChanged>),
    /// Result of a backup.
    BackedUp(BackedUp),
    /// List of agents.
    Agents(Vec<AgentInfo>),
    /// Agents that match a search.
    Found(FoundAgents),
    /// Agent with its card and health.
    Agent(Box<AgentInfo>),
    /// Health of an agent.
    Health(AgentHealth),
    /// Result of deregistering an agent.
    Deregistered(Deregistered),
    /// OpenRPC document of the hub's interface.
    Discovery(Value),
    /// Card without interfaces, whose URLs only the server knows.
    Card(Box<CardOf>),
    /// Cards of all agents, without interfaces.
    Cards(Vec<CardOf>),
}

/// Card with its agent.
#[derive(Clone, Debug, PartialEq)]
pub struct CardOf {
    /// Agent of the card; `None` for the hub itself.
    pub agent: Option<AgentId>,
    /// Card as its agent or the hub provides it.
    pub card: AgentCard,
    /// Time since which the card is unchanged: RFC 3339 in UTC.
    pub since: String,
    /// Operating data of each agent behind the card; only the extended card contains them.
    pub operated: Vec<(AgentId, Operated)>,
}

fn state_name<S: serde::Serializer>(state: &TaskState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.name())
}

/// Agent of the hub: an element of the answer to `hub/agents/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Id of the agent on this hub.
    pub id: AgentId,
    /// Name of the agent, for people.
    pub name: String,
    /// A2A card of the agent.
    pub card: Value,
    /// Health of the agent; absent if the client did not request it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<AgentHealth>,
    /// Circuit breaker of the agent, which decides if tasks reach the agent.
    pub breaker: AgentBreaker,
    /// Time at which the agent joined the hub: RFC 3339 in UTC.
    pub registered_at: String,
    /// Source of the agent: `built-in`, `acp`, `native`, the file's name of a plug-in, or a remote
    /// agent's URL.
    pub source: String,
    /// Name of the operator's key that signed the agent's component; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Requested capabilities that are not granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_granted: Vec<NotGranted>,
    /// Another component in the agent's file that waits for the operator's approval; the granted
    /// one keeps serving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// Confinement of the agent's programs; absent if the agent may run none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProgramTier>,
    /// Actions that the agent's programs may do without asking, as the operator set it:
    /// `read-only`, `ask`, `edit` or `full`; absent if the agent may run none.
    /// `metadata.permissions` of a message can only lower it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// Models that a client may name, as the operator lists them; absent without a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<AgentChoice>,
    /// Reasoning efforts that a client may name; absent without a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<AgentChoice>,
    /// Number of idle programs that are kept for the agent's next tasks; absent if zero.
    #[serde(skip_serializing_if = "tree::is_zero")]
    pub kept: usize,
    /// True if lists for people leave the agent out: an agent that works for other commands, or a
    /// flow file with `listed = false`. Absent if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}
