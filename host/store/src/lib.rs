//! Where task logs, the memories of guests and where notifications are sent outlive the process.
//!
//! A task's log is the truth, and [`TaskLog::append`] the only way to write one; heads, tasks and conversations are read
//! from logs. No module above may assume that a log is kept on this machine.

mod condition;
mod context_memory;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod log;
pub mod memory;
mod pushes;
pub mod sqlite;

pub use condition::{Readiness, until_usable};
pub use log::fold;
pub use pushes::{DeliveryFailure, Progress, PushFilter, StoredPush};

use a2a_hub_core::{
    access::Principal,
    context_memory::model::{Change, Item, MemoryPlace, MemoryRoom, WorkingMemory},
    installation::InstallationId,
    task::IllegalEvent,
};
use a2a_hub_protocol::{
    dialect::FinishedTask,
    event::{SequencedEvent, TaskEvent},
    id::{AgentId, ContextId, PushConfigId, TaskId, TenantId},
    message::Message,
    operation::{ContextInfo, StorageCondition, TaskPageQuery},
    push::PushConfig,
    task::{Task, TaskState},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::watch;

/// Task logs: the truth about each task, and the only way to write it.
///
/// A log may be kept elsewhere: whoever writes says what it knows of, and is told when somebody else wrote first (optimistic
/// concurrency). A write that was asked for may happen although nobody waits for its answer any more.
#[async_trait::async_trait]
pub trait TaskLog: Send + Sync {
    /// Adds events to the end of a task's log and returns the number of the last: all of them, durably, or none.
    ///
    /// `expected` is the number of the last event that the caller knows of (optimistic concurrency). If the log is elsewhere,
    /// somebody else wrote first and nothing is added. With 0 the task must be new, and its first event its creation. Nothing is added to
    /// the log of a final task. With each event stands by whom it was asked for; what an agent, a clock or the hub brought
    /// about was asked for by nobody. Of events that begin a log, `by` asked for the first.
    async fn append_by(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
        by: Option<&Principal>,
    ) -> Result<u64, StorageError>;

    /// The same for events that nobody asked for.
    async fn append(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
    ) -> Result<u64, StorageError> {
        self.append_by(task, expected, events, None).await
    }

    /// The numbers of a task's events that somebody asked for, and by whom, oldest first.
    async fn askers(&self, task: &TaskId) -> Result<Vec<(u64, Principal)>, StorageError>;

    /// Up to `limit` events of a task that come after number `after`, oldest first; none if the task is unknown.
    async fn events(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SequencedEvent>, StorageError>;

    /// What a task's log comes to.
    async fn task(&self, task: &TaskId) -> Result<Option<StoredTask>, StorageError>;

    /// A task as it is to be told: one that is over may be there as text.
    async fn look(&self, task: &TaskId) -> Result<Option<Looked>, StorageError> {
        Ok(self.task(task).await?.map(|stored| Looked::Task(Box::new(stored))))
    }

    /// Forgets those of these tasks that are over, with their logs and configs, and returns how many it knew. Those that are not over
    /// stay as they are, and so do all tasks below one that is not over: that one counts them, and its agent may ask for them.
    async fn forget_tasks(&self, tasks: Vec<TaskId>) -> Result<usize, StorageError>;
}

/// A request that began a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it is known by ([`Created::request`](a2a_hub_protocol::event::Created::request)).
    pub fingerprint: String,
    /// The task that it began.
    pub task: TaskId,
    /// When (RFC 3339).
    pub made: String,
}

/// What is found of tasks without their names: lists, conversations, counts. It is read from the logs.
#[async_trait::async_trait]
pub trait TaskIndex: Send + Sync {
    /// A task in one line.
    async fn head(&self, task: &TaskId) -> Result<Option<Head>, StorageError>;

    /// The agent and the conversation of a task.
    async fn whose(&self, task: &TaskId) -> Result<Option<(AgentId, ContextId)>, StorageError> {
        Ok(self.head(task).await?.map(|head| (head.agent, head.context)))
    }

    /// Whether there is a task of another than the default tenant.
    async fn has_tenants(&self) -> Result<bool, StorageError>;

    /// The tasks that match, in one line each, newest first: by id, which is the order of their creation.
    async fn heads(&self, filter: HeadFilter) -> Result<Vec<Head>, StorageError>;

    /// A page of the tasks that match, in one line each, the one with the latest status first.
    async fn page(&self, query: &TaskPageQuery) -> Result<HeadPage, StorageError>;

    /// The conversations that match, the one with the newest task first.
    async fn contexts(&self, filter: ContextFilter) -> Result<Vec<ContextInfo>, StorageError>;

    /// Up to `limit` tasks that are over and may be forgotten, for no task above them goes on, oldest first; with `before`, only those
    /// whose latest status is older.
    async fn finished(
        &self,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError>;

    /// The latest `limit` messages of a conversation's final tasks, oldest first: each task's history and what its agent
    /// said at the end. Tasks come in the order of their creation.
    async fn conversation(
        &self,
        context: &ContextId,
        limit: usize,
    ) -> Result<Vec<Message>, StorageError>;

    /// What the requests were known by that began tasks since then (RFC 3339), oldest first; of the latest `limit` tasks of those that
    /// changed since. A log that cannot be read has none.
    async fn requests(&self, since: &str, limit: usize) -> Result<Vec<Request>, StorageError>;

    /// How many tasks there are, by agent and state; nothing of what there is none of.
    async fn tally(&self) -> Result<Vec<Tally>, StorageError>;

    /// How many tasks there are.
    async fn counts(&self) -> Result<Counts, StorageError> {
        Ok(Counts::of(&self.tally().await?))
    }

    /// The bytes that everything stored takes up. What was forgotten takes none, although its place may be kept.
    async fn size(&self) -> Result<u64, StorageError>;
}

/// Where the notifications of tasks are sent, and how far that has come (a transactional outbox: what is to be sent is what
/// the task's log holds beyond).
#[async_trait::async_trait]
pub trait Outbox: Send + Sync {
    /// Keeps where a task's notifications are sent, durably, and returns whether the task is known. A config of that name is
    /// replaced and goes on where it was, as if nothing had failed; a new one begins after event `sent`.
    async fn set_push(&self, config: PushConfig, sent: u64) -> Result<bool, StorageError>;

    /// The configs that match: by task, oldest first, and those of one task in the order in which they were set first.
    async fn pushes(&self, filter: PushFilter) -> Result<Vec<StoredPush>, StorageError>;

    /// Writes down how the deliveries of a config go, unless it is gone. What was sent stays sent.
    async fn push_went(
        &self,
        task: &TaskId,
        id: &PushConfigId,
        progress: Progress,
    ) -> Result<(), StorageError>;

    /// Forgets a config, if it is there.
    async fn delete_push(&self, task: &TaskId, id: &PushConfigId) -> Result<(), StorageError>;
}

/// What agents remember: small values by key, for each agent by itself.
#[async_trait::async_trait]
pub trait AgentMemory: Send + Sync {
    /// What an installation of an agent remembers under `key`.
    async fn recall(
        &self,
        owner: &InstallationId,
        key: &str,
    ) -> Result<Option<Vec<u8>>, StorageError>;

    /// Has an installation remember `value` under `key` in place of what was there, durably, unless its keys and values would
    /// then come to more than `max_bytes`.
    async fn remember(
        &self,
        owner: &InstallationId,
        key: &str,
        value: Vec<u8>,
        max_bytes: u64,
    ) -> Result<(), StorageError>;

    /// Has an installation forget `key`, if it knew it.
    async fn forget(&self, owner: &InstallationId, key: &str) -> Result<(), StorageError>;

    /// The keys an installation remembers that begin with `prefix`, sorted by their bytes.
    async fn keys(&self, owner: &InstallationId, prefix: &str)
    -> Result<Vec<String>, StorageError>;
}

/// What agents have in mind in their conversations: for each place a working memory, and items that are found by their words.
#[async_trait::async_trait]
pub trait ContextMemory: Send + Sync {
    /// The working memory of a place; an empty one if there is none.
    async fn working(&self, place: &MemoryPlace) -> Result<WorkingMemory, StorageError>;

    /// Makes changes at a place, in their order: all of them, durably, or none. They are not made if all that the owner keeps would
    /// then come to more than there is room for.
    async fn change(
        &self,
        place: &MemoryPlace,
        changes: Vec<Change>,
        room: MemoryRoom,
    ) -> Result<(), StorageError>;

    /// The items of a place that a search brings up, best first.
    async fn search(&self, place: &MemoryPlace, search: Search) -> Result<Vec<Item>, StorageError>;

    /// Those of these items that there are at a place, in that order.
    async fn named(&self, place: &MemoryPlace, ids: Vec<String>)
    -> Result<Vec<Item>, StorageError>;

    /// Forgets all at a place whose conversation has no tasks: nobody will come for it.
    async fn abandon(&self, place: &MemoryPlace) -> Result<(), StorageError>;

    /// Forgets all that an installation has in mind, in all conversations.
    async fn forget_mind(&self, owner: &InstallationId) -> Result<(), StorageError>;
}

/// What is searched for among the items of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The text that recalls them; without words in it, the newest are brought up.
    pub query: String,
    /// At most so many.
    pub limit: usize,
    /// Whether those that are brought up are used together, which associates them.
    pub is_use: bool,
}

/// What agents were answered whose runs are replayed: for each task the journal of its latest run, as long as the task is not over.
/// An entry is text, which the store does not look into.
#[async_trait::async_trait]
pub trait RunJournal: Send + Sync {
    /// Adds an entry to the journal of a task, durably, behind the `expected` entries that the caller knows of; otherwise nothing is
    /// added. With 0 it is the first entry of another run, and what the journal held is forgotten.
    async fn record(&self, task: &TaskId, expected: u64, entry: String)
    -> Result<(), StorageError>;

    /// The entries of a task's journal, in their order; none if there is no journal, or the task is over.
    async fn recorded(&self, task: &TaskId) -> Result<Vec<String>, StorageError>;
}

/// Whether a store can store, judged by its writes.
#[async_trait::async_trait]
pub trait StoreHealth: Send + Sync {
    /// Writes something, durably, that changes nothing: whether it can store, now.
    async fn probe(&self) -> Result<(), StorageError>;

    /// How many changes wait to be written.
    fn backlog(&self) -> usize;

    /// Whether it can store, judged by its writes: it fails from the first that failed on, until one was made some time after
    /// the last that failed. One that nobody writes to does not change its mind; whoever looks after it does that.
    fn condition(&self) -> watch::Receiver<StorageCondition>;
}

/// Logs, what is found in them, the journals of runs, and whether there is more to come: what the engine's tasks need.
pub trait TaskStore: TaskLog + TaskIndex + RunJournal + StoreHealth {}

impl<S: TaskLog + TaskIndex + RunJournal + StoreHealth> TaskStore for S {}

/// What a copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// How many tasks are in it.
    pub counts: Counts,
    /// How many bytes its file has.
    pub bytes: u64,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("find {}: there is no store yet; `a2a-hub start` makes one", .0.display())]
    Absent(PathBuf),
    /// The store is in memory, and no file of it can be made.
    #[error("copy the store: this hub keeps what it has in memory only")]
    InMemory,
    /// A copy takes nobody's place.
    #[error("write {}: there is such a file; name another", .0.display())]
    Taken(PathBuf),
    /// The store cannot be read, or the copy cannot be written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// A store that can be copied to a file while it is used.
#[async_trait::async_trait]
pub trait Copies: Send + Sync {
    /// Copies all of it, as it is at one moment, to the new file `to`, which only this user may read.
    async fn back_up(&self, to: &Path) -> Result<Copied, BackupError>;
}

/// All that a hub keeps. Every store passes the tests in `contract`.
pub trait Storage: TaskStore + Outbox + Memories + Copies {}

impl<S: TaskStore + Outbox + Memories + Copies> Storage for S {}

/// What agents remember: values by key, and what they have in mind in their conversations.
pub trait Memories: AgentMemory + ContextMemory {}

impl<S: AgentMemory + ContextMemory> Memories for S {}

/// A task as its log tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTask {
    /// The agent whose task it is.
    pub agent: AgentId,
    /// The number of the last event in it.
    pub seq: u64,
    /// The task after that event.
    pub task: Task,
}

/// A task as it is to be told.
#[derive(Clone, Debug)]
pub enum Looked {
    /// It is over, and there as text.
    Finished(Arc<FinishedTask>),
    /// As its log tells it.
    Task(Box<StoredTask>),
}

impl Looked {
    /// The agent whose task it is.
    pub fn agent(&self) -> &AgentId {
        match self {
            Self::Finished(task) => task.agent(),
            Self::Task(stored) => &stored.agent,
        }
    }
}

/// A task in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The id of the task.
    pub task: TaskId,
    /// The conversation it belongs to.
    pub context: ContextId,
    /// The agent whose task it is.
    pub agent: AgentId,
    /// The state that the task is in.
    pub state: TaskState,
    /// The number of the last event in its log.
    pub seq: u64,
    /// The timestamp of its first status.
    pub created: String,
    /// The timestamp of its latest status.
    pub updated: String,
    /// Where its client said last that the work is to be done, unless that is longer than any path.
    pub directory: Option<String>,
    /// The task whose agent gave this one to another agent; none if a client gave it.
    pub parent: Option<TaskId>,
    /// The workflow that it belongs to, if it belongs to one.
    pub workflow: Option<String>,
}

/// A page of heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadPage {
    /// As many as it may hold.
    pub heads: Vec<Head>,
    /// How many there are on all pages.
    pub total: u64,
}

/// Which heads to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadFilter {
    /// Only those whose name begins so.
    pub id_prefix: Option<String>,
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only those whose status changed then or later: RFC 3339 in UTC with milliseconds.
    pub since: Option<String>,
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those of this tenant.
    pub tenant: Option<TenantId>,
    /// Only those that are to be done in this directory.
    pub directory: Option<String>,
    /// Only those that the agent at work on this task gave to other agents.
    pub parent: Option<TaskId>,
    /// Only those of this workflow, and the task of that id.
    pub workflow: Option<String>,
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Only those that are not over.
    pub live_only: bool,
    /// At most so many.
    pub limit: usize,
    /// Leaving out so many of the newest that match.
    pub offset: usize,
}

impl Default for HeadFilter {
    /// All of them.
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

/// Which conversations to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFilter {
    /// Only those whose name begins so.
    pub id_prefix: Option<String>,
    /// Only the conversation with this id.
    pub context: Option<ContextId>,
    /// Only those of this tenant: with a prefix, of the default one if none is named.
    pub tenant: Option<TenantId>,
    /// Only those none of whose tasks is live, or has a status as new as this.
    pub idle_since: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Leaving out so many of the first that match.
    pub offset: usize,
}

impl Default for ContextFilter {
    /// All of them.
    fn default() -> Self {
        let (id_prefix, context, tenant, idle_since) = (None, None, None, None);
        Self { id_prefix, context, tenant, idle_since, limit: usize::MAX, offset: 0 }
    }
}

/// How many tasks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that are not over.
    pub live: u64,
    /// All tasks that are stored.
    pub total: u64,
}

impl Counts {
    /// What the tasks of all agents come to.
    pub fn of(tallies: &[Tally]) -> Self {
        let sum = |counted: fn(&Tally) -> bool| {
            tallies.iter().filter(|tally| counted(tally)).map(|tally| tally.tasks).sum()
        };
        Self { live: sum(|tally| !tally.state.is_final()), total: sum(|_| true) }
    }
}

/// How many tasks of an agent are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The agent whose tasks are counted.
    pub agent: AgentId,
    /// The state that they are in.
    pub state: TaskState,
    /// How many tasks of that agent are in that state.
    pub tasks: u64,
}

/// Why a store could not do as asked. Nothing was written, except as [`StorageError::Unavailable`] says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The store cannot be reached, or will not write: why, and what mends that. A write that fails so may have happened all
    /// the same, where the store is elsewhere and only its answer was lost: read before writing once more.
    #[error("use the store: {0}")]
    Unavailable(String),
    /// Somebody else wrote to the log first.
    #[error(
        "append to task {task} after event {expected}: its log is at {found}; read it again and decide anew"
    )]
    Conflict {
        /// The task whose log it is.
        task: TaskId,
        /// Where the writer thought it was.
        expected: u64,
        /// Where it is; 0 if there is none.
        found: u64,
    },
    /// The log does not allow the event.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// A log must begin with the creation of its own task.
    #[error("begin the log of task {0} with anything but its creation")]
    Uncreated(TaskId),
    /// What is stored makes no sense.
    #[error("read {what}: {why}; restore the data directory from a backup, or move it away")]
    Corrupt {
        /// What was read, such as a task by its id.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Whoever wrote to a database did not close it in order, and its log is not there.
    #[error(
        "read {file}: it was not closed in order, and its log is not beside it, so that what was stored last is missing; put {log} \
         there, or make copies with `a2a-hub backup`",
        file = .file.display(), log = .log.display()
    )]
    LogMissing {
        /// The file of the database.
        file: PathBuf,
        /// The log that it had.
        log: PathBuf,
    },
    /// A log is there without the database that it belongs to.
    #[error(
        "open {file}: the database is missing or empty, and its log {log} holds changes to it; put the database back beside its log, \
         or restore a copy with `a2a-hub restore FILE`; to begin anew without both, `mv {log} {log}.cut`",
        file = .file.display(), log = .log.display()
    )]
    DatabaseMissing {
        /// The file of the database.
        file: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// The log of a database was cut short or damaged.
    #[error(
        "open {file}: its log {log} was cut short or damaged, so that what was stored last is missing{also}; put the whole log back, \
         {otherwise}",
        file = .file.display(), log = .log.display(),
        also = if *is_usable { "" } else { ", and the database holds a part of it, so that the two do not fit" },
        otherwise = if *is_usable {
            "or go on without that: `a2a-hub start` keeps the log and says so".to_owned()
        } else {
            let log = log.display();
            format!("restore a copy with `a2a-hub restore FILE`, or go on with the database alone: `mv {log} {log}.cut`")
        }
    )]
    LogCut {
        /// The file of the database.
        file: PathBuf,
        /// The log.
        log: PathBuf,
        /// Whether what is left of the log fits the database.
        is_usable: bool,
    },
    /// An agent's memory would outgrow what the operator grants.
    #[error(
        "remember more for {owner}: it would hold {would_hold} of the {max_bytes} bytes it is granted; \
         forget something, or grant more"
    )]
    Full {
        /// The installation whose memory it is.
        owner: InstallationId,
        /// What its keys and values would have come to.
        would_hold: u64,
        /// What they may come to.
        max_bytes: u64,
    },
    /// An agent's items would be more than the operator grants.
    #[error(
        "remember more for {owner}: it would hold {would_hold} of the {max_items} items it is granted; forget some, or grant more"
    )]
    FullOfItems {
        /// The installation whose memory it is.
        owner: InstallationId,
        /// How many there would have been.
        would_hold: u64,
        /// How many there may be.
        max_items: u64,
    },
    /// The store was written by a newer hub.
    #[error(
        "open {path}: its format is number {found}, and this hub knows none above {known}; run the newer hub", path = .path.display()
    )]
    Newer {
        /// The file of the database.
        path: PathBuf,
        /// The number of the file's format.
        found: u32,
        /// The newest this hub knows.
        known: u32,
    },
    /// Another hub uses the data directory.
    #[error(
        "lock {path}: another hub{who} uses this data directory; stop it, or choose another directory",
        path = .path.display(), who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The file that the other hub has locked.
        path: PathBuf,
        /// The other hub's process, if it said so.
        pid: Option<u32>,
    },
}
