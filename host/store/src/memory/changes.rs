//! Changes of all tasks in memory.

use super::MemoryStorage;
use crate::{
    ChangeCursor, ChangeLog, ChangePage, ChangesAfter, Head, MAX_CHANGES, Moves, StorageError,
    TaskChange, changes::judge,
};
use a2a_hub_clock as clock;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{TaskId, TenantId},
    task::TaskState,
};
use std::{collections::VecDeque, sync::Arc};

/// Changes of a store in memory.
#[derive(Debug)]
pub(super) struct MemoryChanges {
    history: String,
    latest: u64,
    kept: VecDeque<TaskChange>,
}

impl Default for MemoryChanges {
    fn default() -> Self {
        Self { history: TaskId::fresh().as_str().to_owned(), latest: 0, kept: VecDeque::new() }
    }
}

impl MemoryChanges {
    /// Adds the change of an append that led to `head`.
    pub(super) fn add(
        &mut self,
        head: &Head,
        before: Option<TaskState>,
        events: &[Arc<TaskEvent>],
    ) {
        if events.is_empty() {
            return;
        }
        self.latest += 1;
        self.kept.push_back(TaskChange {
            number: self.latest,
            task: head.task.clone(),
            context: head.context.clone(),
            agent: head.agent.clone(),
            seq: head.seq,
            at_ms: clock::now_ms(),
            moves: Moves::of(before, events),
        });
        if self.kept.len() as u64 > MAX_CHANGES {
            self.kept.pop_front();
        }
    }
}

#[async_trait::async_trait]
impl ChangeLog for MemoryStorage {
    async fn latest_change(&self) -> Result<ChangeCursor, StorageError> {
        let inner = self.lock();
        let MemoryChanges { history, latest, .. } = &inner.changes;
        Ok(ChangeCursor { history: history.clone(), number: *latest })
    }

    async fn changes(
        &self,
        after: &ChangeCursor,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<ChangesAfter, StorageError> {
        let inner = self.lock();
        let MemoryChanges { history, latest, kept } = &inner.changes;
        let end = (after.history == *history).then_some(*latest);
        if let Err(loss) = judge(after.number, end, kept.front().map(|oldest| oldest.number)) {
            return Ok(ChangesAfter::Lost(loss));
        }
        let later = kept.iter().filter(|change| change.number > after.number);
        let examined: Vec<_> = later.take(limit).collect();
        let number = examined.last().map_or(after.number, |last| last.number);
        let is_last = examined.len() < limit;
        let is_listed = |change: &&&TaskChange| {
            inner.logs.contains_key(&change.task)
                && tenant.is_none_or(|tenant| change.context.tenant() == tenant)
        };
        let changes = examined.iter().filter(is_listed).map(|change| (*change).clone()).collect();
        let next = ChangeCursor { history: history.clone(), number };
        Ok(ChangesAfter::Page(ChangePage { changes, next, is_last }))
    }
}
