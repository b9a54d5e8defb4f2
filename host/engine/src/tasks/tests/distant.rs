//! Remote store: every call takes time, and some write replies are lost.

use a2a_hub_core::{access_control::Principal, review::Review, search::SearchTerms};
use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    id::{ContextId, QuestionId, TaskId, TenantId},
    message::Message,
    operation::{
        ContextInfo, ReadNotices, SearchQuery, StorageCondition, TaskPageQuery, UsageQuery,
        UsageReport,
    },
};
use a2a_hub_store::{
    BegunRequest, ChangeCursor, ChangeLog, ChangesAfter, ClosedQuestion, ClosedQuestionFilter,
    ContextFilter, FoundPage, Head, HeadFilter, HeadPage, LogSize, NoticeFilter, NoticeListener,
    NoticePage, NoticeStore, PermissionRules, QuestionPostponements, ReviewStore, RuleUse,
    RunJournal, SearchIndexState, StorageError, StoreHealth, StoredTask, Tally, TaskCounts,
    TaskIndex, TaskLog, TaskSearch, TenantRule, UsageStore, memory::MemoryStorage,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

/// Round-trip time of a call.
const LATENCY: Duration = Duration::from_millis(20);

/// One of this many writes loses its reply.
const LOST: u64 = 3;

/// A store, and the number of writes to it.
pub(super) struct Distant {
    there: Arc<MemoryStorage>,
    writes: AtomicU64,
}

impl Distant {
    pub(super) fn new(there: Arc<MemoryStorage>) -> Self {
        Self { there, writes: AtomicU64::new(0) }
    }

    /// Number of writes to existing tasks.
    pub(super) fn later_writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl TaskLog for Distant {
    async fn append_by(
        &self,
        task: &TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
        by: Option<&Principal>,
    ) -> Result<u64, StorageError> {
        sleep(LATENCY).await;
        let seq = self.there.append_by(task, expected, events, by).await?;
        // The reply to the first write is never lost: the client would be told that the task does
        // not exist.
        if expected > 0 && self.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOST) {
            return Err(StorageError::Unavailable("the connection was lost".to_owned()));
        }
        Ok(seq)
    }

    async fn events(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SequencedEvent>, StorageError> {
        sleep(LATENCY).await;
        self.there.events(task, after, limit).await
    }

    async fn askers(&self, task: &TaskId) -> Result<Vec<(u64, Principal)>, StorageError> {
        sleep(LATENCY).await;
        self.there.askers(task).await
    }

    async fn task(&self, task: &TaskId) -> Result<Option<StoredTask>, StorageError> {
        sleep(LATENCY).await;
        self.there.task(task).await
    }

    async fn forget_tasks(&self, tasks: Vec<TaskId>) -> Result<usize, StorageError> {
        sleep(LATENCY).await;
        self.there.forget_tasks(tasks).await
    }
}

#[async_trait::async_trait]
impl ChangeLog for Distant {
    async fn latest_change(&self) -> Result<ChangeCursor, StorageError> {
        sleep(LATENCY).await;
        self.there.latest_change().await
    }

    async fn changes(
        &self,
        after: &ChangeCursor,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<ChangesAfter, StorageError> {
        sleep(LATENCY).await;
        self.there.changes(after, tenant, limit).await
    }
}

#[async_trait::async_trait]
impl TaskIndex for Distant {
    async fn head(&self, task: &TaskId) -> Result<Option<Head>, StorageError> {
        sleep(LATENCY).await;
        self.there.head(task).await
    }

    async fn has_tenants(&self) -> Result<bool, StorageError> {
        sleep(LATENCY).await;
        self.there.has_tenants().await
    }

    async fn heads(&self, filter: HeadFilter) -> Result<Vec<Head>, StorageError> {
        sleep(LATENCY).await;
        self.there.heads(filter).await
    }

    async fn requests(&self, since: &str, limit: usize) -> Result<Vec<BegunRequest>, StorageError> {
        sleep(LATENCY).await;
        self.there.requests(since, limit).await
    }

    async fn closed_questions(
        &self,
        filter: ClosedQuestionFilter,
    ) -> Result<Vec<ClosedQuestion>, StorageError> {
        sleep(LATENCY).await;
        self.there.closed_questions(filter).await
    }

    async fn page(&self, query: &TaskPageQuery) -> Result<HeadPage, StorageError> {
        sleep(LATENCY).await;
        self.there.page(query).await
    }

    async fn contexts(&self, filter: ContextFilter) -> Result<Vec<ContextInfo>, StorageError> {
        sleep(LATENCY).await;
        self.there.contexts(filter).await
    }

    async fn finished(
        &self,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError> {
        sleep(LATENCY).await;
        self.there.finished(before, limit).await
    }

    async fn finished_of_tenant(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<TaskId>, StorageError> {
        sleep(LATENCY).await;
        self.there.finished_of_tenant(tenant, limit).await
    }

    async fn log_sizes(&self) -> Result<Vec<LogSize>, StorageError> {
        sleep(LATENCY).await;
        self.there.log_sizes().await
    }

    async fn conversation(
        &self,
        context: &ContextId,
        limit: usize,
    ) -> Result<Vec<Message>, StorageError> {
        sleep(LATENCY).await;
        self.there.conversation(context, limit).await
    }

    async fn counts(&self) -> Result<TaskCounts, StorageError> {
        sleep(LATENCY).await;
        self.there.counts().await
    }

    async fn tally(&self) -> Result<Vec<Tally>, StorageError> {
        sleep(LATENCY).await;
        self.there.tally().await
    }

    async fn size(&self) -> Result<u64, StorageError> {
        sleep(LATENCY).await;
        self.there.size().await
    }
}

#[async_trait::async_trait]
impl QuestionPostponements for Distant {
    async fn postpone_question(
        &self,
        task: &TaskId,
        id: &QuestionId,
        until: &str,
    ) -> Result<bool, StorageError> {
        sleep(LATENCY).await;
        self.there.postpone_question(task, id, until).await
    }

    async fn postponed_until(
        &self,
        task: &TaskId,
        id: &QuestionId,
    ) -> Result<Option<String>, StorageError> {
        sleep(LATENCY).await;
        self.there.postponed_until(task, id).await
    }
}

#[async_trait::async_trait]
impl RunJournal for Distant {
    async fn record(
        &self,
        task: &TaskId,
        expected: u64,
        entry: String,
    ) -> Result<(), StorageError> {
        sleep(LATENCY).await;
        self.there.record(task, expected, entry).await
    }

    async fn recorded(&self, task: &TaskId) -> Result<Vec<String>, StorageError> {
        sleep(LATENCY).await;
        self.there.recorded(task).await
    }
}

#[async_trait::async_trait]
impl StoreHealth for Distant {
    async fn probe(&self) -> Result<(), StorageError> {
        sleep(LATENCY).await;
        self.there.probe().await
    }

    fn backlog(&self) -> usize {
        self.there.backlog()
    }

    fn condition(&self) -> watch::Receiver<StorageCondition> {
        self.there.condition()
    }
}

#[async_trait::async_trait]
impl TaskSearch for Distant {
    async fn search_tasks(
        &self,
        terms: &SearchTerms,
        query: &SearchQuery,
    ) -> Result<FoundPage, StorageError> {
        sleep(LATENCY).await;
        self.there.search_tasks(terms, query).await
    }

    fn search_index(&self) -> SearchIndexState {
        self.there.search_index()
    }
}

#[async_trait::async_trait]
impl UsageStore for Distant {
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StorageError> {
        sleep(LATENCY).await;
        self.there.usage(query).await
    }
}

#[async_trait::async_trait]
impl NoticeStore for Distant {
    async fn notices(&self, filter: NoticeFilter) -> Result<NoticePage, StorageError> {
        sleep(LATENCY).await;
        self.there.notices(filter).await
    }

    async fn mark_notices_read(
        &self,
        tenant: &TenantId,
        which: ReadNotices,
        by: &Principal,
    ) -> Result<u64, StorageError> {
        sleep(LATENCY).await;
        self.there.mark_notices_read(tenant, which, by).await
    }

    fn set_notice_listener(&self, listener: NoticeListener) {
        self.there.set_notice_listener(listener);
    }
}

#[async_trait::async_trait]
impl ReviewStore for Distant {
    async fn reviews(&self, task: &TaskId, owner: &str) -> Result<Vec<Review>, StorageError> {
        self.there.reviews(task, owner).await
    }

    async fn set_review(&self, review: &Review) -> Result<(), StorageError> {
        sleep(LATENCY).await;
        self.there.set_review(review).await
    }

    async fn forget_review(&self, review: &Review) -> Result<(), StorageError> {
        self.there.forget_review(review).await
    }
}

#[async_trait::async_trait]
impl PermissionRules for Distant {
    async fn permission_rules(&self) -> Result<Vec<(String, TenantRule)>, StorageError> {
        self.there.permission_rules().await
    }

    async fn set_permission_rule(&self, rule: &TenantRule) -> Result<(), StorageError> {
        sleep(LATENCY).await;
        self.there.set_permission_rule(rule).await
    }

    async fn forget_permission_rule(&self, id: &str) -> Result<(), StorageError> {
        self.there.forget_permission_rule(id).await
    }

    async fn permission_rule_uses(&self, tenant: &TenantId) -> Result<Vec<RuleUse>, StorageError> {
        self.there.permission_rule_uses(tenant).await
    }
}
