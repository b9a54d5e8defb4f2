//! Changes of all tasks, as the store in memory lists them.

use super::{MemoryStorage, change_table::MemoryChanges};
use crate::{
    ChangeCursor, ChangeLog, ChangePage, ChangesAfter, StorageError, TaskChange, changes::judge,
};
use a2a_hub_protocol::id::TenantId;

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
        let MemoryChanges { history, latest, changes } = &inner.changes;
        let end = (after.history == *history).then_some(*latest);
        if let Err(loss) = judge(after.number, end, changes.front().map(|oldest| oldest.number)) {
            return Ok(ChangesAfter::Lost(loss));
        }
        let later = changes.iter().filter(|change| change.number > after.number);
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
