//! Storage of task logs, agents' memories and push configs.
//!
//! A task's log is the source of truth, written only by [`TaskLog::append`]; all else about tasks
//! is derived from it. Callers must not assume that a log is stored on this machine.

mod changes;
mod context_memory;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod error;
pub mod feed;
mod health;
mod known_children;
mod log;
mod memories;
pub mod memory;
mod notices;
mod people;
mod permission_rules;
mod pushes;
mod questions;
mod reviews;
mod search;
mod search_filter;
pub mod sqlite;
mod topics;
mod usage;

pub use crate::health::{Readiness, until_usable};
pub use changes::{
    ChangeCursor, ChangeLog, ChangePage, ChangesAfter, CursorLoss, MAX_CHANGES, Moves, NoCursor,
    TaskChange,
};
pub use error::{BackupError, StorageError};
pub use known_children::{KnownChild, KnownChildren};
pub use log::{fold, fold_page};
pub use memories::{AgentMemory, ContextMemory, MemoryShare, Search};
pub use notices::{
    MAX_NOTICES, NoticeFilter, NoticeListener, NoticePage, NoticeStore, StoredNotice,
};
pub use people::PeopleStore;
pub use permission_rules::{PermissionRules, RuleUse, TenantRule};
pub use pushes::{DeliveryFailure, Progress, PushFilter, StoredPush};
pub use questions::{ClosedQuestion, ClosedQuestionFilter, QuestionPostponements};
pub use reviews::ReviewStore;
pub use search::{FoundPage, SearchHit, SearchIndexState, TaskSearch};
pub use topics::{CursorUse, NewTopicMessage, TopicQuery, TopicStore};
pub use usage::UsageStore;

use a2a_hub_clock::schedule;
use a2a_hub_core::{access_control::Principal, notify::plan::NotifierState};
use a2a_hub_protocol::{
    dialect::FinishedTask,
    event::{Created, SequencedEvent, TaskEvent},
    id::{AgentId, ContextId, PushConfigId, TaskId, TenantId},
    message::Message,
    operation::{ContextInfo, StorageCondition, TaskPageQuery},
    push::PushConfig,
    task::{Task, TaskState},
};
use a2a_hub_triggers::plan::TriggerState;
use std::{ops::RangeInclusive, path::Path, sync::Arc};
use tokio::sync::watch;

/// Task logs: the source of truth about each task. Each writer states the last event that it has
/// seen, and a conflict is reported (optimistic concurrency). A dropped write may still happen.
#[async_trait::async_trait]
pub trait TaskLog: Send + Sync {
    /// Appends events to a task's log and returns the number of the last: all of them durably, or
    /// none.
    ///
    /// If the log's last event is not `expected`, nothing is appended (optimistic concurrency).
    /// With 0 the task must be new, and its first event its creation. A final task's log takes no
    /// event. `by`, who requested the events, is stored with each, but at a log's beginning only
    /// with the first; events that an agent, a clock or the hub caused have none.
    async fn append_by(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
        by: Option<&Principal>,
    ) -> Result<u64, StorageError>;

    /// Appends events that no principal requested.
    async fn append(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
    ) -> Result<u64, StorageError> {
        self.append_by(task, expected, events, None).await
    }

    /// Numbers of a task's events that a principal requested, with that principal, oldest first.
    async fn askers(&self, task: &TaskId) -> Result<Vec<(u64, Principal)>, StorageError>;

    /// Those of [`askers`](Self::askers) with numbers in `range`. Reads only that part of the log.
    async fn askers_within(
        &self,
        task: &TaskId,
        range: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, Principal)>, StorageError> {
        let all = self.askers(task).await?;
        Ok(all.into_iter().filter(|(seq, _)| range.contains(seq)).collect())
    }

    /// Up to `limit` events of a task after number `after`, oldest first; none for an unknown task.
    async fn events(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SequencedEvent>, StorageError>;

    /// First event of a task; none if the task was deleted.
    async fn beginning(&self, task: &TaskId) -> Result<Option<Box<Created>>, StorageError> {
        let first = self.events(task, 0, 1).await?.pop();
        Ok(first.and_then(|first| match first.event {
            TaskEvent::Created(created) => Some(created),
            TaskEvent::Status(_)
            | TaskEvent::Artifact(_)
            | TaskEvent::Input(_)
            | TaskEvent::Reply(_) => None,
        }))
    }

    /// Task, folded from its log.
    async fn task(&self, task: &TaskId) -> Result<Option<StoredTask>, StorageError>;

    /// View of a task for clients; a finished task may be returned as text.
    async fn view(&self, task: &TaskId) -> Result<Option<TaskView>, StorageError> {
        Ok(self.task(task).await?.map(|stored| TaskView::Task(Box::new(stored))))
    }

    /// Deletes the finished ones of these tasks, with logs and configs; returns their number. An
    /// unfinished task keeps its descendants: it counts them, and its agent may ask for them.
    async fn forget_tasks(&self, tasks: Vec<TaskId>) -> Result<usize, StorageError>;
}

/// A request that began a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunRequest {
    /// Fingerprint ([`Created::request`]).
    pub fingerprint: String,
    /// Task that it began.
    pub task: TaskId,
    /// Caller that made it; none if it was not stored.
    pub by: Option<Principal>,
    /// Time (RFC 3339).
    pub created: String,
}

/// Logs of one tenant's tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSize {
    /// Tenant.
    pub tenant: TenantId,
    /// Number of tasks.
    pub tasks: u64,
    /// Size of their events in bytes.
    pub bytes: u64,
}

/// Queries over all tasks: lists, conversations, counts. Derived from the logs.
#[async_trait::async_trait]
pub trait TaskIndex: Send + Sync {
    /// Summary of a task.
    async fn head(&self, task: &TaskId) -> Result<Option<Head>, StorageError>;

    /// Agent and conversation of a task.
    async fn whose(&self, task: &TaskId) -> Result<Option<(AgentId, ContextId)>, StorageError> {
        Ok(self.head(task).await?.map(|head| (head.agent, head.context)))
    }

    /// True if a task of a tenant other than the default exists.
    async fn has_tenants(&self) -> Result<bool, StorageError>;

    /// Summaries of the tasks that match, newest first: by id, which is the order of creation.
    async fn heads(&self, filter: HeadFilter) -> Result<Vec<Head>, StorageError>;

    /// Page of summaries of the tasks that match, latest status first.
    async fn page(&self, query: &TaskPageQuery) -> Result<HeadPage, StorageError>;

    /// Conversations that match, the one with the newest task first.
    async fn contexts(&self, filter: ContextFilter) -> Result<Vec<ContextInfo>, StorageError>;

    /// Up to `limit` finished tasks without an unfinished ancestor, which may be deleted, oldest
    /// first; with `before`, only those whose latest status is older.
    async fn finished(
        &self,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError>;

    /// Up to `limit` tasks of one tenant that may be deleted, oldest first.
    async fn finished_of_tenant(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError>;

    /// Sizes of the logs of all tasks by tenant, in bytes, in no order. Logs that older
    /// hubs wrote count with the average size of the others.
    async fn log_sizes(&self) -> Result<Vec<LogSize>, StorageError>;

    /// Latest `limit` messages of a conversation's final tasks, oldest first: each task's history
    /// and the agent's final message. Tasks are in order of creation.
    async fn conversation(
        &self,
        context: &ContextId,
        limit: usize,
    ) -> Result<Vec<Message>, StorageError>;

    /// Requests that began tasks since then (RFC 3339), oldest first; only of the latest `limit`
    /// tasks that changed since. An unreadable log has none.
    async fn requests(&self, since: &str, limit: usize) -> Result<Vec<BegunRequest>, StorageError>;

    /// Questions of tasks that are not open any more, the latest first. Tasks of hubs before version
    /// 0.2 have none.
    async fn closed_questions(
        &self,
        filter: ClosedQuestionFilter,
    ) -> Result<Vec<ClosedQuestion>, StorageError>;

    /// Numbers of tasks by agent and state; zero counts are left out.
    async fn tally(&self) -> Result<Vec<Tally>, StorageError>;

    /// Number of tasks.
    async fn counts(&self) -> Result<TaskCounts, StorageError> {
        Ok(TaskCounts::from_tallies(&self.tally().await?))
    }

    /// Size of all stored data in bytes, without the free space that deleted data leaves.
    async fn size(&self) -> Result<u64, StorageError>;
}

/// Push configs of tasks, each with a cursor: the log's later events are to be sent (an outbox).
#[async_trait::async_trait]
pub trait Outbox: Send + Sync {
    /// Stores a push config durably; returns true if the task is known. A config of that id is
    /// replaced, and keeps its cursor but no failure. A new one starts after event `sent`.
    async fn set_push(&self, config: PushConfig, sent: u64) -> Result<bool, StorageError>;

    /// Configs that match: by task, oldest first; of one task in the order of their creation.
    async fn pushes(&self, filter: PushFilter) -> Result<Vec<StoredPush>, StorageError>;

    /// Stores the progress of a config, unless the config is gone. The cursor never goes back.
    async fn push_went(
        &self,
        task: &TaskId,
        id: &PushConfigId,
        progress: Progress,
    ) -> Result<(), StorageError>;

    /// Deletes a config, if it exists.
    async fn delete_push(&self, task: &TaskId, id: &PushConfigId) -> Result<(), StorageError>;
}

/// States of schedules, by the schedules' names.
#[async_trait::async_trait]
pub trait ScheduleStates: Send + Sync {
    /// State of each known schedule, by name.
    async fn schedules(&self) -> Result<Vec<(String, schedule::State)>, StorageError>;

    /// Stores the state of a schedule durably, in place of an earlier one.
    async fn set_schedule(&self, name: &str, state: &schedule::State) -> Result<(), StorageError>;

    /// Deletes the state of a schedule, if it exists.
    async fn forget_schedule(&self, name: &str) -> Result<(), StorageError>;
}

/// States of triggers, by the triggers' names.
#[async_trait::async_trait]
pub trait TriggerStates: Send + Sync {
    /// State of each known trigger, by name.
    async fn triggers(&self) -> Result<Vec<(String, TriggerState)>, StorageError>;

    /// Stores the state of a trigger durably, in place of an earlier one.
    async fn set_trigger(&self, name: &str, state: &TriggerState) -> Result<(), StorageError>;

    /// Deletes the state of a trigger, if it exists.
    async fn forget_trigger(&self, name: &str) -> Result<(), StorageError>;
}

/// States of notifiers, by the notifiers' names.
#[async_trait::async_trait]
pub trait NotifierStates: Send + Sync {
    /// State of each known notifier, by name.
    async fn notifiers(&self) -> Result<Vec<(String, NotifierState)>, StorageError>;

    /// Stores the state of a notifier durably, in place of an earlier one.
    async fn set_notifier(&self, name: &str, state: &NotifierState) -> Result<(), StorageError>;

    /// Deletes the state of a notifier, if it exists.
    async fn forget_notifier(&self, name: &str) -> Result<(), StorageError>;
}

/// Journals of replayable runs: the latest run's of each unfinished task. Entries are opaque.
#[async_trait::async_trait]
pub trait RunJournal: Send + Sync {
    /// Appends an entry durably if the journal has `expected` entries, otherwise fails. With 0 it
    /// begins another run's journal, which replaces the old one.
    async fn record(&self, task: &TaskId, expected: u64, entry: String)
    -> Result<(), StorageError>;

    /// Entries of a task's journal, in order; none if it has no journal, or the task is over.
    async fn recorded(&self, task: &TaskId) -> Result<Vec<String>, StorageError>;
}

/// Health of a store, judged by its writes.
#[async_trait::async_trait]
pub trait StoreHealth: Send + Sync {
    /// Makes a durable write that changes nothing, to test whether the store works now.
    async fn probe(&self) -> Result<(), StorageError>;

    /// Number of changes that wait to be written.
    fn backlog(&self) -> usize;

    /// Condition of the store: failing from the first failed write, until a write succeeds some
    /// time after the last failure. Without writes, it changes only by a monitor's probes.
    fn condition(&self) -> watch::Receiver<StorageCondition>;
}

/// Store of the task engine: logs, their changes, queries, searches, usage, notices, postponed
/// questions, journals, standing permissions, reviews and health.
pub trait TaskStore:
    TaskLog
    + ChangeLog
    + TaskIndex
    + TaskSearch
    + UsageStore
    + NoticeStore
    + QuestionPostponements
    + RunJournal
    + PermissionRules
    + ReviewStore
    + StoreHealth
{
}

impl<S> TaskStore for S where
    S: TaskLog
        + ChangeLog
        + TaskIndex
        + TaskSearch
        + UsageStore
        + NoticeStore
        + QuestionPostponements
        + RunJournal
        + PermissionRules
        + ReviewStore
        + StoreHealth
{
}

/// Summary of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Numbers of tasks in it.
    pub counts: TaskCounts,
    /// Size of its file in bytes.
    pub bytes: u64,
}

/// A store that can be backed up while it is used.
#[async_trait::async_trait]
pub trait Copies: Send + Sync {
    /// Copies everything, as of one moment, to the new file `to`, which only this user may read.
    async fn back_up(&self, to: &Path) -> Result<Copied, BackupError>;
}

/// Complete store of a hub. Every implementation passes the tests in `contract`.
pub trait Storage:
    TaskStore + Outbox + Memories + Automations + TopicStore + PeopleStore + Copies
{
}

impl<S: TaskStore + Outbox + Memories + Automations + TopicStore + PeopleStore + Copies> Storage
    for S
{
}

/// States of what the hub starts by itself.
pub trait Automations: ScheduleStates + TriggerStates + NotifierStates {}

impl<S: ScheduleStates + TriggerStates + NotifierStates> Automations for S {}

/// Agents' memories: values by key, and context memories.
pub trait Memories: AgentMemory + ContextMemory {}

impl<S: AgentMemory + ContextMemory> Memories for S {}

/// A task, folded from its log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTask {
    /// Agent of the task.
    pub agent: AgentId,
    /// Number of its last event.
    pub seq: u64,
    /// Task after that event.
    pub task: Task,
}

/// View of a task for clients.
#[derive(Clone, Debug)]
pub enum TaskView {
    /// Finished, and available as text.
    Finished(Arc<FinishedTask>),
    /// Folded from its log.
    Task(Box<StoredTask>),
}

impl TaskView {
    /// Agent of the task.
    pub fn agent(&self) -> &AgentId {
        match self {
            Self::Finished(task) => task.agent(),
            Self::Task(stored) => &stored.agent,
        }
    }
}

/// Summary of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Id.
    pub task: TaskId,
    /// Conversation.
    pub context: ContextId,
    /// Agent.
    pub agent: AgentId,
    /// Current state.
    pub state: TaskState,
    /// Number of the last event in its log.
    pub seq: u64,
    /// Timestamp of its first status.
    pub created: String,
    /// Timestamp of its latest status.
    pub updated: String,
    /// Working directory that its client requested last, unless that is longer than any path.
    pub directory: Option<String>,
    /// Parent task; none if a client created the task.
    pub parent: Option<TaskId>,
    /// Workflow, if the task belongs to one.
    pub workflow: Option<String>,
}

/// Page of summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadPage {
    /// Summaries on the page.
    pub heads: Vec<Head>,
    /// Total number on all pages.
    pub total: u64,
}

/// Filter for summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadFilter {
    /// Prefix of the task's id.
    pub id_prefix: Option<String>,
    /// Agent of the task.
    pub agent: Option<AgentId>,
    /// Earliest time of the latest status: RFC 3339 in UTC with milliseconds.
    pub since: Option<String>,
    /// Conversation.
    pub context: Option<ContextId>,
    /// Tenant.
    pub tenant: Option<TenantId>,
    /// Working directory.
    pub directory: Option<String>,
    /// Parent task.
    pub parent: Option<TaskId>,
    /// Workflow; includes the task of that id.
    pub workflow: Option<String>,
    /// State.
    pub state: Option<TaskState>,
    /// Only unfinished tasks.
    pub live_only: bool,
    /// Limit of results.
    pub limit: usize,
    /// Number of the newest matches to skip.
    pub offset: usize,
}

impl Default for HeadFilter {
    /// Matches all tasks.
    fn default() -> Self {
        Self {
            id_prefix: None,
            agent: None,
            since: None,
            context: None,
            tenant: None,
            directory: None,
            parent: None,
            workflow: None,
            state: None,
            live_only: false,
            limit: usize::MAX,
            offset: 0,
        }
    }
}

/// Filter for conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFilter {
    /// Prefix of the conversation's id.
    pub id_prefix: Option<String>,
    /// Id of the conversation.
    pub context: Option<ContextId>,
    /// Tenant; with a prefix, the default one if none is named.
    pub tenant: Option<TenantId>,
    /// Only conversations without an unfinished task, and without a status as new as this.
    pub idle_since: Option<String>,
    /// Working directory of the newest task.
    pub directory: Option<String>,
    /// Only conversations whose newest task is older than this task.
    pub after: Option<TaskId>,
    /// Limit of results.
    pub limit: usize,
    /// Number of the first matches to skip.
    pub offset: usize,
}

impl Default for ContextFilter {
    /// Matches all conversations.
    fn default() -> Self {
        let (id_prefix, context, tenant, idle_since) = (None, None, None, None);
        let (directory, after, limit, offset) = (None, None, usize::MAX, 0);
        Self { id_prefix, context, tenant, idle_since, directory, after, limit, offset }
    }
}

/// Numbers of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Unfinished tasks.
    pub live: u64,
    /// All stored tasks.
    pub total: u64,
}

impl TaskCounts {
    /// Sums the tasks of all agents.
    pub fn from_tallies(tallies: &[Tally]) -> Self {
        let sum = |counted: fn(&Tally) -> bool| {
            tallies.iter().filter(|tally| counted(tally)).map(|tally| tally.tasks).sum()
        };
        Self { live: sum(|tally| !tally.state.is_final()), total: sum(|_| true) }
    }
}

/// Number of an agent's tasks in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Agent.
    pub agent: AgentId,
    /// State.
    pub state: TaskState,
    /// Number of tasks.
    pub tasks: u64,
}
