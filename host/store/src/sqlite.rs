//! Store in one SQLite file: one thread writes, a few connections read.

mod automation;
mod backup;
mod change_store;
mod changes;
mod context_memory;
mod db;
mod journals;
mod log;
mod memories;
mod notice_store;
mod notices;
mod notifiers;
mod people;
mod postponements;
mod pushes;
mod queries;
mod questions;
mod reviews;
mod schedules;
mod search;
mod search_store;
#[cfg(test)]
mod tests;
mod topics;

use super::{
    AgentMemory, BackupError, BegunRequest, ClosedQuestion, ClosedQuestionFilter, ContextFilter,
    ContextMemory, Copied, Copies, CursorUse, Head, HeadFilter, HeadPage, LogSize, MemoryShare,
    NewTopicMessage, Outbox, PermissionRules, Progress, PushFilter, RuleUse, RunJournal, Search,
    StorageError, StoreHealth, StoredPush, StoredTask, Tally, TaskIndex, TaskLog, TaskView,
    TenantRule, TopicQuery, TopicStore,
};
use crate::notices::NoticeSignal;
use a2a_hub_core::{
    access_control::Principal,
    context_memory::model::{Change, Item, MemoryCapacity, MemoryKey, WorkingMemory},
    plugin::installation::InstallationId,
    scheduling::memory_shares::MemoryHolder,
};
use a2a_hub_protocol::topics::{
    CursorName, PublishedMessage, TopicList, TopicName, TopicPage, TopicRules,
};
use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    id::{AgentId, ContextId, PushConfigId, TaskId, TenantId},
    message::Message,
    operation::{ContextInfo, StorageCondition, TaskPageQuery},
    push::PushConfig,
};
use automation::PERMISSION_RULES;
pub use backup::{Examined, back_up, check, examine, restore, retained_logs};
use db::{
    checkpointer::Checkpointer, per_runtime::Lanes, readers::Readers, write_queue::Length,
    writer::Writer,
};
pub use db::{losses::Loss, schema::LOCK_FILE};
use log::finished_tasks::{Forgotten, Lately, Worth};
use search::{
    index::{self, SearchIndex},
    usage_totals,
};
use std::{
    fs::File,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
};

/// Tasks deleted in one transaction; few, as a task may have 100,000 events, and other writers wait
/// meanwhile.
const FORGOTTEN_AT_ONCE: usize = 8;

/// Size in bytes from which a batch of events counts as bulk: some milliseconds of the writer and
/// the disk.
const BULK: usize = 256 << 10;

/// Store in a data directory, locked while it is open.
///
/// Dropping it waits for pending writes.
#[derive(Debug)]
pub struct SqliteStorage {
    // Fields are dropped in this order: the last connection tidies up the files, and must be the
    // one that can write.
    search: SearchIndex,
    readers: Arc<Readers>,
    writer: Writer,
    /// Only one bulk write of each runtime is queued at a time, so that a small write waits behind
    /// at most one of each.
    bulks: Lanes<Semaphore>,
    /// Cache of finished tasks.
    lately: Arc<Lately>,
    losses: Vec<Loss>,
    /// Id of the history of changes that began when the store was opened.
    history: Arc<str>,
    notice_signal: NoticeSignal,
    /// Data directory.
    dir: PathBuf,
    _lock: File,
}

impl SqliteStorage {
    /// Opens the store in `dir`, or creates one that only this user can read.
    pub fn open(dir: &Path) -> Result<Self, StorageError> {
        let lock = db::schema::lock(dir)?;
        let file = dir.join(db::schema::FILE);
        let (db, losses) = db::schema::open(&file)?;
        context_memory::table::abandon_all(&db)?;
        while context_memory::table::sweep(&db)? {}
        let history = changes::begin_or_warn(&db);
        let checkpointer = Checkpointer::start(db::schema::open_for_checkpoints(&file)?)?;
        let writer = Writer::start(db, checkpointer)?;
        let bulks = Lanes::new(Semaphore::new(1), Semaphore::new(1));
        let search = SearchIndex::start(dir, &file)?;
        let readers = Arc::new(Readers::new(file));
        let (lately, notice_signal) = Default::default();
        let dir = dir.to_owned();
        Ok(Self {
            search,
            readers,
            writer,
            bulks,
            lately,
            losses,
            history,
            notice_signal,
            dir,
            _lock: lock,
        })
    }

    /// Losses found when the store was opened.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Caches folded tasks for the next reader. A failure loses nothing.
    fn store_folds(&self, folds: Vec<log::events::Fold>) {
        if !folds.is_empty() {
            self.writer.offer(move |db| log::events::store_folds(db, &folds));
        }
    }
}

#[async_trait::async_trait]
impl TaskLog for SqliteStorage {
    async fn append_by(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
        by: Option<&Principal>,
    ) -> Result<u64, StorageError> {
        let is_indexed = index::concerns(&events);
        let addition = log::events::Addition::new(task.clone(), expected, events, by)?;
        let bytes = addition.bytes();
        let _alone = if bytes > BULK { self.bulks.of_caller().acquire().await.ok() } else { None };
        let length = Length::from_size(addition.events(), bytes);
        let appended = self.writer.write_of(length, move |db| addition.append(db)).await?;
        if is_indexed {
            self.search.follow([task.clone()]);
        }
        appended.noticed.into_iter().for_each(|tenant| self.notice_signal.notify(&tenant));
        Ok(appended.seq)
    }

    async fn events(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SequencedEvent>, StorageError> {
        let task = task.clone();
        self.readers.read(move |db| log::events::events(db, &task, after, limit)).await
    }

    async fn askers(&self, task: &TaskId) -> Result<Vec<(u64, Principal)>, StorageError> {
        let task = task.clone();
        self.readers.read(move |db| log::events::askers(db, &task, 0..=u64::MAX)).await
    }

    async fn askers_within(
        &self,
        task: &TaskId,
        range: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, Principal)>, StorageError> {
        let task = task.clone();
        self.readers.read(move |db| log::events::askers(db, &task, range)).await
    }

    async fn task(&self, task: &TaskId) -> Result<Option<StoredTask>, StorageError> {
        let task = task.clone();
        let found = self.readers.read(move |db| log::events::task(db, &task)).await?;
        Ok(found.map(|(stored, fold)| {
            self.store_folds(fold.into_iter().collect());
            stored
        }))
    }

    async fn view(&self, task: &TaskId) -> Result<Option<TaskView>, StorageError> {
        if let Some(known) = self.lately.find(task) {
            return Ok(Some(TaskView::Finished(known)));
        }
        let (id, forgotten) = (task.clone(), self.lately.forgotten());
        let found = self.readers.read(move |db| log::finished_tasks::view(db, &id)).await?;
        let Some((view, worth)) = found else { return Ok(None) };
        if let TaskView::Finished(finished) = &view {
            self.lately.cache(task, finished, forgotten);
        }
        match worth {
            Worth::Nothing => {}
            Worth::Text(finished) => {
                let id = task.clone();
                self.writer.offer(move |db| log::finished_tasks::store_text(db, &id, &finished));
            }
            Worth::Fold(fold) => self.store_folds(vec![fold]),
        }
        Ok(Some(view))
    }

    async fn forget_tasks(&self, tasks: Vec<TaskId>) -> Result<usize, StorageError> {
        let mut forgotten = 0;
        // Before the deletion of any: the origin of a task is found by its ancestors.
        let mut origins = self.search.origins(tasks.clone()).await;
        for few in tasks.chunks(FORGOTTEN_AT_ONCE) {
            let known = few.iter().filter_map(|id| origins.remove_entry(id)).collect();
            let of_few = few.to_vec();
            let read = move |db: &_| usage_totals::of_tasks(db, &of_few, known);
            let usage = self.readers.read(read).await?;
            let (lately, search) = (Arc::clone(&self.lately), self.search.queue());
            let few = Forgotten { lately, search, tasks: few.to_vec() };
            // Moved into the result, so it is dropped after the commit, even if the caller is gone.
            let forget = move |db: &_| {
                log::retention::forget(db, &few.tasks, usage).map(|known| (known, few))
            };
            forgotten += self.writer.write_of(Length::Long, forget).await?.0;
        }
        while self.writer.write_of(Length::Long, context_memory::table::sweep).await? {}
        while self.writer.write_of(Length::Long, log::events::shrink).await? {}
        Ok(forgotten)
    }
}

#[async_trait::async_trait]
impl TaskIndex for SqliteStorage {
    async fn head(&self, task: &TaskId) -> Result<Option<Head>, StorageError> {
        let task = task.clone();
        self.readers.read(move |db| log::events::head(db, &task)).await
    }

    async fn heads(&self, filter: HeadFilter) -> Result<Vec<Head>, StorageError> {
        self.readers.read(move |db| log::events::heads(db, &filter)).await
    }

    async fn requests(&self, since: &str, limit: usize) -> Result<Vec<BegunRequest>, StorageError> {
        let since = since.to_owned();
        self.readers.read(move |db| log::events::requests(db, &since, limit)).await
    }

    async fn closed_questions(
        &self,
        filter: ClosedQuestionFilter,
    ) -> Result<Vec<ClosedQuestion>, StorageError> {
        self.readers.read(move |db| questions::closed(db, &filter)).await
    }

    async fn page(&self, query: &TaskPageQuery) -> Result<HeadPage, StorageError> {
        let query = query.clone();
        self.readers.read(move |db| queries::tasks_page::page(db, &query)).await
    }

    async fn contexts(&self, filter: ContextFilter) -> Result<Vec<ContextInfo>, StorageError> {
        self.readers.read(move |db| queries::contexts::list(db, &filter)).await
    }

    async fn finished(
        &self,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError> {
        let before = before.map(str::to_owned);
        let find = move |db: &_| log::retention::finished(db, before.as_deref(), None, limit);
        self.readers.read(find).await
    }

    async fn finished_of_tenant(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError> {
        let tenant = tenant.clone();
        let find = move |db: &_| log::retention::finished(db, None, Some(&tenant), limit);
        self.readers.read(find).await
    }

    async fn log_sizes(&self) -> Result<Vec<LogSize>, StorageError> {
        self.readers.read(log::retention::sizes).await
    }

    async fn conversation(
        &self,
        context: &ContextId,
        limit: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let context = context.clone();
        let read = move |db: &_| log::events::conversation(db, &context, limit);
        let (messages, folds) = self.readers.read(read).await?;
        self.store_folds(folds);
        Ok(messages)
    }

    async fn whose(&self, task: &TaskId) -> Result<Option<(AgentId, ContextId)>, StorageError> {
        if let Some(known) = self.lately.find(task) {
            return Ok(Some((known.agent().clone(), known.context().clone())));
        }
        Ok(self.head(task).await?.map(|head| (head.agent, head.context)))
    }

    async fn has_tenants(&self) -> Result<bool, StorageError> {
        self.readers.read(log::events::has_tenants).await
    }

    async fn tally(&self) -> Result<Vec<Tally>, StorageError> {
        self.readers.read(log::events::tally).await
    }

    async fn size(&self) -> Result<u64, StorageError> {
        self.readers.read(log::events::size).await
    }
}

#[async_trait::async_trait]
impl RunJournal for SqliteStorage {
    async fn record(
        &self,
        task: &TaskId,
        expected: u64,
        entry: String,
    ) -> Result<(), StorageError> {
        let (task, length) = (task.clone(), Length::from_size(1, entry.len()));
        let record = move |db: &_| journals::record(db, &task, expected, &entry);
        self.writer.write_of(length, record).await
    }

    async fn recorded(&self, task: &TaskId) -> Result<Vec<String>, StorageError> {
        let task = task.clone();
        self.readers.read(move |db| journals::recorded(db, &task)).await
    }
}

#[async_trait::async_trait]
impl PermissionRules for SqliteStorage {
    async fn permission_rules(&self) -> Result<Vec<(String, TenantRule)>, StorageError> {
        self.readers.read(|db| PERMISSION_RULES.list(db)).await
    }

    async fn set_permission_rule(&self, rule: &TenantRule) -> Result<(), StorageError> {
        let rule = rule.clone();
        self.writer.write(move |db| PERMISSION_RULES.set(db, &rule.rule.id, &rule)).await
    }

    async fn forget_permission_rule(&self, id: &str) -> Result<(), StorageError> {
        let id = id.to_owned();
        self.writer.write(move |db| PERMISSION_RULES.forget(db, &id)).await
    }

    async fn permission_rule_uses(&self, tenant: &TenantId) -> Result<Vec<RuleUse>, StorageError> {
        let tenant = tenant.clone();
        self.readers.read(move |db| questions::rule_uses(db, &tenant)).await
    }
}

#[async_trait::async_trait]
impl TopicStore for SqliteStorage {
    async fn publish_message(
        &self,
        tenant: &TenantId,
        message: NewTopicMessage,
        rules: TopicRules,
    ) -> Result<PublishedMessage, StorageError> {
        let (tenant, written) = (tenant.clone(), topics::written(&message)?);
        let length = Length::from_size(1, written.len());
        let publish =
            move |db: &_| topics::publish(db, tenant.as_str(), &message, &written, &rules);
        self.writer.write_of(length, publish).await
    }

    async fn read_topics(
        &self,
        tenant: &TenantId,
        query: TopicQuery,
    ) -> Result<TopicPage, StorageError> {
        let tenant = tenant.clone();
        self.readers.read(move |db| topics::read(db, tenant.as_str(), &query)).await
    }

    async fn topic_position(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        let tenant = tenant.clone();
        self.readers.read(move |db| topics::position(db, tenant.as_str())).await
    }

    async fn list_topics(&self, tenant: &TenantId) -> Result<TopicList, StorageError> {
        let tenant = tenant.clone();
        self.readers.read(move |db| topics::list(db, tenant.as_str())).await
    }

    async fn delete_topic(
        &self,
        tenant: &TenantId,
        topic: &TopicName,
    ) -> Result<bool, StorageError> {
        let (tenant, topic) = (tenant.clone(), topic.clone());
        let remove = move |db: &_| topics::remove(db, tenant.as_str(), &topic);
        let Some(removed) = self.writer.write(remove).await? else { return Ok(false) };
        while self.writer.write_of(Length::Long, move |db| topics::sweep(db, removed)).await? {}
        Ok(true)
    }

    async fn use_cursor(&self, tenant: &TenantId, cursor: CursorUse) -> Result<u64, StorageError> {
        let tenant = tenant.clone();
        self.writer.write(move |db| topics::use_cursor(db, tenant.as_str(), &cursor)).await
    }

    async fn delete_cursors(
        &self,
        tenant: &TenantId,
        name: &CursorName,
    ) -> Result<bool, StorageError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.writer.write(move |db| topics::delete_cursors(db, tenant.as_str(), &name)).await
    }

    async fn expire_messages(&self, before_ms: u64) -> Result<(), StorageError> {
        self.writer.write_of(Length::Long, move |db| topics::expire(db, before_ms)).await
    }
}

#[async_trait::async_trait]
impl Outbox for SqliteStorage {
    async fn set_push(&self, config: PushConfig, sent: u64) -> Result<bool, StorageError> {
        self.writer.write(move |db| pushes::set(db, &config, sent)).await
    }

    async fn pushes(&self, filter: PushFilter) -> Result<Vec<StoredPush>, StorageError> {
        self.readers.read(move |db| pushes::list(db, &filter)).await
    }

    async fn push_went(
        &self,
        task: &TaskId,
        id: &PushConfigId,
        progress: Progress,
    ) -> Result<(), StorageError> {
        let (task, id) = (task.clone(), id.clone());
        self.writer.write(move |db| pushes::went(db, &task, &id, &progress)).await
    }

    async fn delete_push(&self, task: &TaskId, id: &PushConfigId) -> Result<(), StorageError> {
        let (task, id) = (task.clone(), id.clone());
        self.writer.write(move |db| pushes::delete(db, &task, &id)).await
    }
}

#[async_trait::async_trait]
impl AgentMemory for SqliteStorage {
    async fn recall(
        &self,
        owner: &InstallationId,
        key: &str,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let (owner, key) = (owner.clone(), key.to_owned());
        self.readers.read(move |db| memories::recall(db, &owner, &key)).await
    }

    async fn remember_for(
        &self,
        owner: &InstallationId,
        key: &str,
        value: Vec<u8>,
        holder: &MemoryHolder,
        max_bytes: u64,
    ) -> Result<(), StorageError> {
        let (owner, key, holder) = (owner.clone(), key.to_owned(), holder.clone());
        let length = Length::from_size(1, value.len());
        let write =
            move |db: &_| memories::remember(db, (&owner, &key), &value, &holder, max_bytes);
        self.writer.write_of(length, write).await
    }

    async fn forget(&self, owner: &InstallationId, key: &str) -> Result<(), StorageError> {
        let (owner, key) = (owner.clone(), key.to_owned());
        self.writer.write(move |db| memories::forget(db, &owner, &key)).await
    }

    async fn keys(
        &self,
        owner: &InstallationId,
        prefix: &str,
    ) -> Result<Vec<String>, StorageError> {
        let (owner, prefix) = (owner.clone(), prefix.to_owned());
        self.readers.read(move |db| memories::keys(db, &owner, &prefix)).await
    }
}

#[async_trait::async_trait]
impl ContextMemory for SqliteStorage {
    async fn working(&self, scope: &MemoryKey) -> Result<WorkingMemory, StorageError> {
        let scope = scope.clone();
        self.readers.read(move |db| context_memory::table::working(db, &scope)).await
    }

    async fn change_for(
        &self,
        scope: &MemoryKey,
        changes: Vec<Change>,
        share: &MemoryShare,
        limits: MemoryCapacity,
    ) -> Result<(), StorageError> {
        let (scope, share) = (scope.clone(), share.clone());
        // An item has one row for each of its words.
        let change =
            move |db: &_| context_memory::table::change(db, &scope, changes, &share, limits);
        self.writer.write_of(Length::Long, change).await
    }

    async fn search(&self, scope: &MemoryKey, search: Search) -> Result<Vec<Item>, StorageError> {
        let scope = scope.clone();
        let read = move |db: &_| context_memory::table::search(db, &scope, &search);
        let (found, used) = self.readers.read(read).await?;
        if used.len() > 1 {
            self.writer.offer(move |db| context_memory::table::associate(db, &used));
        }
        Ok(found)
    }

    async fn named(&self, scope: &MemoryKey, ids: Vec<String>) -> Result<Vec<Item>, StorageError> {
        let scope = scope.clone();
        self.readers.read(move |db| context_memory::table::named(db, &scope, &ids)).await
    }

    async fn abandon(&self, scope: &MemoryKey) -> Result<(), StorageError> {
        let scope = scope.clone();
        self.writer.write(move |db| context_memory::table::abandon(db, &scope)).await?;
        while self.writer.write_of(Length::Long, context_memory::table::sweep).await? {}
        Ok(())
    }

    async fn forget_context_memories(&self, owner: &InstallationId) -> Result<(), StorageError> {
        let owner = owner.clone();
        self.writer.write(move |db| context_memory::table::forget(db, &owner)).await?;
        while self.writer.write_of(Length::Long, context_memory::table::sweep).await? {}
        Ok(())
    }
}

#[async_trait::async_trait]
impl StoreHealth for SqliteStorage {
    async fn probe(&self) -> Result<(), StorageError> {
        self.writer.write(db::schema::touch).await
    }

    fn backlog(&self) -> usize {
        self.writer.backlog()
    }

    fn condition(&self) -> watch::Receiver<StorageCondition> {
        self.writer.condition()
    }
}

#[async_trait::async_trait]
impl Copies for SqliteStorage {
    async fn back_up(&self, to: &Path) -> Result<Copied, BackupError> {
        let (dir, to) = (self.dir.clone(), to.to_owned());
        let copied = spawn_blocking(move || back_up(&dir, &to)).await;
        copied.map_err(|why| StorageError::Unavailable(why.to_string()))?
    }
}
