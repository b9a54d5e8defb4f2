//! In-memory store, lost when it is dropped: for tests and trials.

mod agent_memory;
mod automation;
mod change_table;
mod changes;
mod context_memory;
mod journals;
mod notice_table;
mod notices;
mod people;
mod permission_rules;
mod postponements;
mod questions;
mod reviews;
mod search;
mod topic_store;
mod topics;
mod usage_entry;
mod value_entry;

use super::{
    BackupError, BegunRequest, ClosedQuestion, ClosedQuestionFilter, ContextFilter, Copied, Copies,
    Head, HeadFilter, HeadPage, LogSize, Outbox, Progress, PushFilter, StorageError, StoreHealth,
    StoredPush, StoredTask, Tally, TaskIndex, TaskLog, TenantRule,
    log::{self, Conversation},
};
use crate::{health::Judgement, notices::NoticeSignal, usage::TaskOrigin};
use a2a_hub_clock::schedule;
use a2a_hub_core::{
    access_control::Principal,
    context_memory::model::MemoryKey,
    identity::{Person, PersonName},
    notify::plan::NotifierState,
    plugin::installation::InstallationId,
    review::Review,
};
use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    id::{ContextId, PushConfigId, QuestionId, TaskId, TenantId},
    message::Message,
    operation::{ContextInfo, StorageCondition, TaskPageQuery},
    push::PushConfig,
    task::TaskState,
};
use a2a_hub_triggers::plan::TriggerState;
use change_table::MemoryChanges;
use context_memory::IndexedMemory;
use notice_table::NoticeTable;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    path::Path,
    sync::Arc,
};
use tokio::sync::watch;
use topics::TopicsOfTenant;
use usage_entry::MemoryUsage;
use value_entry::ValueEntry;

/// Store in memory, with an optional limit after which writes fail, for tests of failures.
#[derive(Debug)]
pub struct MemoryStorage {
    inner: Mutex<Stored>,
    max_events: u64,
    judgement: Judgement,
    notice_signal: NoticeSignal,
}

#[derive(Debug, Default)]
struct Stored {
    logs: BTreeMap<TaskId, MemoryLog>,
    changes: MemoryChanges,
    notices: NoticeTable,
    memories: BTreeMap<InstallationId, BTreeMap<String, ValueEntry>>,
    context_memories: BTreeMap<MemoryKey, IndexedMemory>,
    /// In the order in which they were first set.
    pushes: Vec<(PushConfig, Progress)>,
    schedules: BTreeMap<String, schedule::State>,
    permission_rules: BTreeMap<String, TenantRule>,
    reviews: BTreeMap<String, Review>,
    people: BTreeMap<PersonName, Person>,
    triggers: BTreeMap<String, TriggerState>,
    /// Usage of deleted tasks.
    deleted_usage: Vec<MemoryUsage>,
    /// Origins of tasks with deleted ancestors.
    origins: BTreeMap<TaskId, TaskOrigin>,
    notifiers: BTreeMap<String, NotifierState>,
    topics: BTreeMap<TenantId, TopicsOfTenant>,
    /// True if all writes are refused.
    refuses: bool,
    probes: u32,
}

#[derive(Debug)]
struct MemoryLog {
    head: Head,
    events: Vec<Arc<TaskEvent>>,
    askers: Vec<(u64, Principal)>,
    journal: Vec<String>,
    /// Times until which questions were set aside.
    postponed: Vec<(QuestionId, String)>,
}

impl MemoryStorage {
    /// Creates a store that fails after `max_events` events of a task.
    pub fn failing_after(max_events: u64) -> Self {
        let (inner, judgement, notice_signal) = Default::default();
        Self { inner, max_events, judgement, notice_signal }
    }

    /// Sets whether all writes are refused.
    pub fn refuse(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// Number of probes so far.
    pub fn probes(&self) -> u32 {
        self.lock().probes
    }

    /// Locks the content for a write.
    fn to_write(&self) -> Result<MutexGuard<'_, Stored>, StorageError> {
        let inner = self.lock();
        if inner.refuses {
            let (why, fix) = ("it was told to take nothing", "tell it to take everything");
            self.judgement.failed(why, fix);
            return Err(StorageError::Unavailable(format!("{why}; {fix}")));
        }
        self.judgement.wrote();
        Ok(inner)
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.inner.lock()
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::failing_after(u64::MAX)
    }
}

impl Stored {
    /// True if a task may be deleted: it is over, and so are all its ancestors.
    fn may_go(&self, head: &Head) -> bool {
        let parent_of = |head: &&Head| self.logs.get(head.parent.as_ref()?).map(|log| &log.head);
        iter::successors(Some(head), parent_of).all(|head| head.state.is_final())
    }
}

impl MemoryLog {
    /// Principal that began the task; none if the log has none.
    fn begun_by(&self) -> Option<&Principal> {
        self.askers.first().filter(|(seq, _)| *seq == 1).map(|(_, by)| by)
    }

    /// Size of the events as JSON.
    fn bytes(&self) -> u64 {
        let json = |event: &Arc<TaskEvent>| serde_json::to_vec(event.as_ref());
        let sizes = self.events.iter().map(|event| json(event).map_or(0, |json| json.len()));
        sizes.sum::<usize>() as u64
    }

    fn fold(&self) -> Result<StoredTask, StorageError> {
        let mut task = log::fold(&self.head.task, None, self.events.iter().map(Arc::as_ref))?;
        task.context_id.clone_from(&self.head.context);
        Ok(StoredTask { agent: self.head.agent.clone(), seq: self.head.seq, task })
    }
}

#[async_trait::async_trait]
impl TaskLog for MemoryStorage {
    async fn append_by(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
        by: Option<&Principal>,
    ) -> Result<u64, StorageError> {
        let mut inner = self.to_write()?;
        let known = inner.logs.get(task).map(|log| log.head.clone());
        let head = log::extend(known, task, expected, &events)?;
        let seq = head.seq;
        if seq > self.max_events {
            let why = format!("it was told to fail after {} events", self.max_events);
            return Err(StorageError::Unavailable(why));
        }
        let before = inner.logs.get(task).map(|log| log.head.state);
        let Stored { logs, notices, changes, .. } = &mut *inner;
        changes.add(&head, before, &events);
        let log = logs.entry(task.clone()).or_insert_with(|| MemoryLog {
            head: head.clone(),
            events: Vec::new(),
            askers: Vec::new(),
            journal: Vec::new(),
            postponed: Vec::new(),
        });
        log.head = head;
        if log.head.state.is_final() {
            log.journal.clear();
        }
        let requested = if expected == 0 { 1..=1 } else { expected + 1..=seq };
        log.askers.extend(requested.filter_map(|seq| Some((seq, by.cloned()?))));
        log.events.extend(events);
        let has_new = notices.add(&log.head, &log.events, log.begun_by(), expected);
        let noticed = has_new.then(|| log.head.context.tenant().clone());
        drop(inner);
        noticed.into_iter().for_each(|tenant| self.notice_signal.notify(&tenant));
        Ok(seq)
    }

    async fn askers(&self, task: &TaskId) -> Result<Vec<(u64, Principal)>, StorageError> {
        Ok(self.lock().logs.get(task).map(|log| log.askers.clone()).unwrap_or_default())
    }

    async fn events(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SequencedEvent>, StorageError> {
        let inner = self.lock();
        let Some(log) = inner.logs.get(task) else { return Ok(Vec::new()) };
        let numbered = (1..).zip(&log.events).filter(|(seq, _)| *seq > after).take(limit);
        Ok(numbered
            .map(|(seq, event)| SequencedEvent {
                task: task.clone(),
                context: log.head.context.clone(),
                seq,
                event: TaskEvent::clone(event),
            })
            .collect())
    }

    async fn task(&self, task: &TaskId) -> Result<Option<StoredTask>, StorageError> {
        self.lock().logs.get(task).map(MemoryLog::fold).transpose()
    }

    async fn forget_tasks(&self, tasks: Vec<TaskId>) -> Result<usize, StorageError> {
        let mut inner = self.lock();
        let before = inner.logs.len();
        let may_go = |id: &&TaskId| inner.logs.get(*id).is_some_and(|log| inner.may_go(&log.head));
        let going: BTreeSet<_> = tasks.iter().filter(may_go).collect();
        let usage: Vec<_> = going.iter().filter_map(|id| inner.usage_of(id)).collect();
        inner.deleted_usage.extend(usage);
        let orphans = inner.origins_in_trees(&going);
        inner.origins.extend(orphans);
        let Stored { logs, notices, pushes, reviews, context_memories, .. } = &mut *inner;
        let mut contexts = Vec::new();
        logs.retain(|id, log| {
            let goes = going.contains(id);
            contexts.extend(goes.then(|| log.head.context.clone()));
            !goes
        });
        contexts.retain(|context| !logs.values().any(|log| log.head.context == *context));
        context_memories.retain(|scope, _| !contexts.contains(&scope.context));
        pushes.retain(|(config, _)| logs.contains_key(&config.task));
        notices.retain_tasks(|task| logs.contains_key(task));
        reviews.retain(|_, review| logs.contains_key(&review.task));
        Ok(before - logs.len())
    }
}

#[async_trait::async_trait]
impl TaskIndex for MemoryStorage {
    async fn head(&self, task: &TaskId) -> Result<Option<Head>, StorageError> {
        Ok(self.lock().logs.get(task).map(|log| log.head.clone()))
    }

    async fn has_tenants(&self) -> Result<bool, StorageError> {
        let inner = self.lock();
        Ok(inner.logs.values().any(|log| !log.head.context.tenant().is_default()))
    }

    async fn heads(&self, filter: HeadFilter) -> Result<Vec<Head>, StorageError> {
        let matches = |head: &&Head| {
            filter.id_prefix.as_ref().is_none_or(|prefix| head.task.as_str().starts_with(prefix))
                && filter.agent.as_ref().is_none_or(|agent| head.agent == *agent)
                && filter.since.as_ref().is_none_or(|since| head.updated >= *since)
                && filter.context.as_ref().is_none_or(|context| head.context == *context)
                && filter.tenant.as_ref().is_none_or(|tenant| head.context.tenant() == tenant)
                && filter.directory.as_ref().is_none_or(|it| head.directory.as_ref() == Some(it))
                && filter.parent.as_ref().is_none_or(|it| head.parent.as_ref() == Some(it))
                && filter
                    .workflow
                    .as_ref()
                    .is_none_or(|it| head.workflow.as_ref() == Some(it) || head.task.as_str() == it)
                && filter.state.is_none_or(|state| head.state == state)
                && !(filter.live_only && head.state.is_final())
        };
        let inner = self.lock();
        let newest_first = inner.logs.values().rev().map(|log| &log.head);
        let page = newest_first.filter(matches).skip(filter.offset).take(filter.limit);
        Ok(page.cloned().collect())
    }

    async fn requests(&self, since: &str, limit: usize) -> Result<Vec<BegunRequest>, StorageError> {
        let inner = self.lock();
        let latest = inner.logs.values().rev().filter(|log| log.head.updated.as_str() >= since);
        let latest = latest.take(limit).filter(|log| log.head.created.as_str() >= since);
        let mut requests: Vec<_> = latest
            .filter_map(|log| {
                let TaskEvent::Created(created) = log.events.first()?.as_ref() else { return None };
                Some(BegunRequest {
                    fingerprint: created.request.clone()?,
                    task: log.head.task.clone(),
                    by: log.begun_by().cloned(),
                    created: log.head.created.clone(),
                })
            })
            .collect();
        requests.reverse();
        Ok(requests)
    }

    async fn closed_questions(
        &self,
        filter: ClosedQuestionFilter,
    ) -> Result<Vec<ClosedQuestion>, StorageError> {
        let inner = self.lock();
        let logs = inner.logs.values().map(|log| (&log.head, &log.events[..], &log.askers[..]));
        Ok(questions::closed(logs, &filter))
    }

    async fn page(&self, query: &TaskPageQuery) -> Result<HeadPage, StorageError> {
        let matches = |head: &&Head| {
            query.agent.as_ref().is_none_or(|agent| head.agent == *agent)
                && query.context.as_ref().is_none_or(|context| head.context == *context)
                && query.tenant.as_ref().is_none_or(|tenant| head.context.tenant() == tenant)
                && query.state.is_none_or(|state| head.state == state)
                && query.since.as_ref().is_none_or(|since| head.updated >= *since)
        };
        let sort_key = |head: &Head| (head.updated.clone(), head.task.clone());
        let inner = self.lock();
        let mut found: Vec<_> = inner.logs.values().map(|log| &log.head).filter(matches).collect();
        found.sort_by_key(|head| std::cmp::Reverse(sort_key(head)));
        let total = found.len() as u64;
        let after = query.after.clone().map(|after| (after.updated, after.id));
        let rest =
            found.into_iter().filter(|head| after.as_ref().is_none_or(|it| sort_key(head) < *it));
        Ok(HeadPage { heads: rest.take(query.size).cloned().collect(), total })
    }

    async fn contexts(&self, filter: ContextFilter) -> Result<Vec<ContextInfo>, StorageError> {
        let inner = self.lock();
        let mut found: Vec<(&TaskId, ContextInfo)> = Vec::new();
        for log in inner.logs.values() {
            let head = &log.head;
            match found.iter_mut().find(|(_, info)| info.id == head.context) {
                Some((newest, info)) => {
                    *newest = &head.task;
                    log::join(info, head);
                }
                None => found.push((&head.task, log::context_of(head))),
            }
        }
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        let is_live = |info: &ContextInfo| {
            let mut heads = inner.logs.values().map(|log| &log.head);
            heads.any(|head| head.context == info.id && !head.state.is_final())
        };
        let of_prefix = || filter.id_prefix.as_ref().map(|_| TenantId::default());
        let tenant = filter.tenant.clone().or_else(of_prefix);
        let matches = |info: &ContextInfo| {
            filter.context.as_ref().is_none_or(|context| info.id == *context)
                && tenant.as_ref().is_none_or(|tenant| info.id.tenant() == tenant)
                && filter.id_prefix.as_ref().is_none_or(|it| info.id.as_str().starts_with(it))
                && filter
                    .idle_since
                    .as_ref()
                    .is_none_or(|time| info.updated_at < *time && !is_live(info))
                && (filter.directory.is_none() || info.working_directory == filter.directory)
                && filter.after.as_ref().is_none_or(|after| info.last_task_id < *after)
        };
        let matching = found.into_iter().map(|(_, info)| info).filter(matches);
        Ok(matching.skip(filter.offset).take(filter.limit).collect())
    }

    async fn finished(
        &self,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError> {
        let inner = self.lock();
        let heads = inner.logs.values().map(|log| &log.head);
        let over = heads.filter(|head| inner.may_go(head));
        let old = over.filter(|head| before.is_none_or(|time| head.updated.as_str() < time));
        Ok(old.take(limit).map(|head| head.task.clone()).collect())
    }

    async fn finished_of_tenant(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError> {
        let inner = self.lock();
        let heads = inner.logs.values().map(|log| &log.head);
        let its = heads.filter(|head| head.context.tenant() == tenant && inner.may_go(head));
        Ok(its.take(limit).map(|head| head.task.clone()).collect())
    }

    async fn log_sizes(&self) -> Result<Vec<LogSize>, StorageError> {
        let mut sizes = BTreeMap::<TenantId, (u64, u64)>::new();
        for log in self.lock().logs.values() {
            let (tasks, bytes) = sizes.entry(log.head.context.tenant().clone()).or_default();
            *tasks += 1;
            *bytes += log.bytes();
        }
        let sizes = sizes.into_iter();
        Ok(sizes.map(|(tenant, (tasks, bytes))| LogSize { tenant, tasks, bytes }).collect())
    }

    async fn conversation(
        &self,
        context: &ContextId,
        limit: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let mut conversation = Conversation::new(limit);
        for log in self.lock().logs.values().rev() {
            if conversation.is_enough() {
                break;
            }
            if log.head.context == *context && log.head.state.is_final() {
                conversation.add(log.fold()?.task);
            }
        }
        Ok(conversation.oldest_first())
    }

    async fn tally(&self) -> Result<Vec<Tally>, StorageError> {
        let mut tallied = BTreeMap::new();
        for MemoryLog { head, .. } in self.lock().logs.values() {
            *tallied.entry((head.agent.clone(), head.state.name())).or_default() += 1;
        }
        let known = |((agent, state), tasks)| {
            Some(Tally { agent, state: TaskState::from_name(state)?, tasks })
        };
        Ok(tallied.into_iter().filter_map(known).collect())
    }

    async fn size(&self) -> Result<u64, StorageError> {
        // Approximates the size in SQLite.
        Ok(self.lock().logs.values().map(MemoryLog::bytes).sum())
    }
}

#[async_trait::async_trait]
impl Outbox for MemoryStorage {
    async fn set_push(&self, config: PushConfig, sent: u64) -> Result<bool, StorageError> {
        let mut inner = self.to_write()?;
        if !inner.logs.contains_key(&config.task) {
            return Ok(false);
        }
        let same = |known: &PushConfig| (&known.task, &known.id) == (&config.task, &config.id);
        match inner.pushes.iter_mut().find(|(known, _)| same(known)) {
            Some((known, progress)) => {
                *known = config;
                progress.failure = None;
            }
            None => inner.pushes.push((config, Progress { sent, failure: None })),
        }
        Ok(true)
    }

    async fn pushes(&self, filter: PushFilter) -> Result<Vec<StoredPush>, StorageError> {
        let inner = self.lock();
        let mut found = Vec::new();
        for (config, progress) in &inner.pushes {
            let Some(MemoryLog { head, .. }) = inner.logs.get(&config.task) else { continue };
            let is_open = progress.sent < head.seq || !head.state.is_final();
            if filter.task.as_ref().is_none_or(|task| config.task == *task)
                && filter.tenant.as_ref().is_none_or(|tenant| head.context.tenant() == tenant)
                && (is_open || !filter.open_only)
                && (progress.is_dead() || !filter.dead_only)
            {
                let (config, progress) = (config.clone(), progress.clone());
                found.push(StoredPush { config, progress, last: head.seq });
            }
        }
        // The sort is stable, so configs of one task keep their order.
        found.sort_by(|one, other| one.config.task.cmp(&other.config.task));
        found.truncate(filter.limit);
        Ok(found)
    }

    async fn push_went(
        &self,
        task: &TaskId,
        id: &PushConfigId,
        progress: Progress,
    ) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        let same = |known: &PushConfig| (&known.task, &known.id) == (task, id);
        if let Some((_, known)) = inner.pushes.iter_mut().find(|(known, _)| same(known)) {
            *known = Progress { sent: progress.sent.max(known.sent), ..progress };
        }
        Ok(())
    }

    async fn delete_push(&self, task: &TaskId, id: &PushConfigId) -> Result<(), StorageError> {
        self.to_write()?.pushes.retain(|(known, _)| (&known.task, &known.id) != (task, id));
        Ok(())
    }
}

#[async_trait::async_trait]
impl StoreHealth for MemoryStorage {
    async fn probe(&self) -> Result<(), StorageError> {
        self.lock().probes += 1;
        self.to_write().map(drop)
    }

    fn backlog(&self) -> usize {
        0
    }

    fn condition(&self) -> watch::Receiver<StorageCondition> {
        self.judgement.listen()
    }
}

#[async_trait::async_trait]
impl Copies for MemoryStorage {
    async fn back_up(&self, _: &Path) -> Result<Copied, BackupError> {
        Err(BackupError::InMemory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{self, chunk, created, status};

    #[tokio::test]
    async fn memory_store_passes_contract_suite() {
        contract::suite(MemoryStorage::default).await;
    }

    #[tokio::test]
    async fn writes_fail_after_event_limit() {
        let storage = MemoryStorage::failing_after(3);
        let task = TaskId::fresh();
        let begin = vec![created(&task, "c"), status(TaskState::Working, 1, None), chunk("x")];
        assert_eq!(storage.append(&task, 0, begin).await, Ok(3));
        let refused = storage.append(&task, 3, vec![chunk("y")]).await;
        assert!(matches!(refused, Err(StorageError::Unavailable(_))));
    }
}
