//! Context memory of an agent in one context, persisted by the store.

use super::{
    live_grant::{LiveGrant, revoked},
    memory::{failure, is_full},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    context_memory::model::{Change, Item, MemoryCapacity, MemoryKey, WorkingMemory},
    plugin::installation::InstallationId,
    scheduling::memory_shares::MemoryHolder,
};
use a2a_hub_protocol::id::ContextId;
use a2a_hub_runtime::{Failure, port::context_memory::ContextMemoryPort};
use a2a_hub_store::{Memories, MemoryShare, Search, StorageError};
use std::{collections::BTreeSet, sync::Arc};

/// Denominator of the share of an agent's capacity that others may fill with memory that they hand
/// over; the rest is reserved for the agent.
const HANDED_OVER: u64 = 2;

/// Context memory of one installation of an agent in one context, within its effective grant and
/// the share of the caller.
#[derive(Clone)]
pub struct GrantedMemory {
    key: MemoryKey,
    holder: MemoryHolder,
    capacity: MemoryCapacity,
    live: LiveGrant,
    storage: Arc<dyn Memories>,
}

impl GrantedMemory {
    pub(crate) fn new(
        owner: InstallationId,
        (context, holder): (ContextId, MemoryHolder),
        capacity: MemoryCapacity,
        live: LiveGrant,
        storage: Arc<dyn Memories>,
    ) -> Self {
        let key = MemoryKey { context, owner };
        Self { key, holder, capacity, live, storage }
    }

    /// Remaining capacity. Fails once the grant is revoked.
    fn capacity(&self) -> Result<MemoryCapacity, Failure> {
        let grant = self.live.now();
        let bytes = grant.memory_bytes.ok_or_else(|| revoked("use what it has in mind"))?;
        let max_items = self.capacity.max_items.min(grant.memory_items);
        Ok(MemoryCapacity { max_bytes: self.capacity.max_bytes.min(bytes), max_items })
    }

    /// Share of the caller in this capacity.
    fn share(&self, capacity: MemoryCapacity) -> MemoryShare {
        MemoryShare { holder: self.holder.clone(), capacity }
    }

    /// Memory that may be handed over, narrowed by a query: the working memory, and items, best
    /// first.
    pub async fn offered(
        &self,
        query: Option<&str>,
        message: &str,
        names: &[String],
    ) -> Result<(WorkingMemory, Vec<Item>), Failure> {
        self.capacity()?;
        let working = self.working().await?;
        let search = |query: &str| {
            let query = query.to_owned();
            self.storage.search(&self.key, Search { query, limit: usize::MAX, is_use: false })
        };
        let named = self.storage.named(&self.key, names.to_vec()).await;
        let mut items = named.map_err(|why| failure(&why))?;
        items.extend(search(query.unwrap_or(message)).await.map_err(|why| failure(&why))?);
        if query.is_none() {
            items.extend(search("").await.map_err(|why| failure(&why))?);
        }
        let mut ids = BTreeSet::new();
        items.retain(|item| ids.insert(item.id.clone()));
        self.capacity()?;
        Ok((working, items))
    }

    /// Stores memory that another agent hands over: all of it, or nothing if it does not fit, with
    /// the reason.
    pub async fn take_in(&self, changes: Vec<Change>) -> Result<Option<String>, StorageError> {
        let capacity = match self.capacity() {
            Ok(capacity) => capacity,
            Err(why) => return Ok(Some(why.to_string())),
        };
        let handover_limit = MemoryCapacity {
            max_bytes: capacity.max_bytes / HANDED_OVER,
            max_items: capacity.max_items / HANDED_OVER,
        };
        let share = self.share(capacity);
        match self.storage.change_for(&self.key, changes, &share, handover_limit).await {
            Ok(()) => Ok(None),
            Err(full) if is_full(&full) => {
                Ok(Some(format!("others may fill half of what it may keep: {full}")))
            }
            Err(why) => Err(why),
        }
    }

    /// Deletes memory that was taken in for a context that did not begin.
    pub async fn abandon(&self) {
        if let Err(why) = self.storage.abandon(&self.key).await {
            tracing::warn!(%why, "cannot delete handed-over memory of a task that did not start, it is deleted at the next start");
        }
    }
}

#[async_trait::async_trait]
impl ContextMemoryPort for GrantedMemory {
    async fn working(&self) -> Result<WorkingMemory, Failure> {
        self.capacity()?;
        let working = self.storage.working(&self.key).await.map_err(|why| failure(&why))?;
        // The grant may have been revoked during the read.
        self.capacity()?;
        Ok(working)
    }

    async fn change(&self, mut changes: Vec<Change>) -> Result<(), Failure> {
        let capacity = self.capacity()?;
        for change in &mut changes {
            match change {
                Change::Thought(thought) => thought.at = Some(clock::now()),
                Change::Decide(decision) => decision.at = Some(clock::now()),
                Change::Goal(_)
                | Change::Variable { .. }
                | Change::Remember(_)
                | Change::Forget(_) => {}
            }
        }
        let share = self.share(capacity);
        let write = self.storage.change_for(&self.key, changes, &share, capacity);
        write.await.map_err(|why| failure(&why))
    }

    async fn recall(&self, query: &str, limit: usize) -> Result<Vec<Item>, Failure> {
        self.capacity()?;
        let search = Search { query: query.to_owned(), limit, is_use: true };
        let found = self.storage.search(&self.key, search).await;
        let found = found.map_err(|why| failure(&why))?;
        self.capacity()?;
        Ok(found)
    }
}
