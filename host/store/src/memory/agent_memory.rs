//! Agents' memories in memory: values by key, and context memories.

use super::{
    MemoryStorage, Stored,
    context_memory::{self, IndexedMemory},
    value_entry::ValueEntry,
};
use crate::{
    AgentMemory, ContextMemory, MemoryShare, Search, StorageError,
    context_memory::{HolderSizes, Size, require_within_limits},
};
use a2a_hub_core::{
    context_memory::model::{Change, Item, MemoryCapacity, MemoryKey, WorkingMemory},
    plugin::installation::InstallationId,
    scheduling::memory_shares::MemoryHolder,
};
use std::collections::BTreeMap;

/// Sizes of an owner's memory by holder.
fn holder_sizes(
    values: Option<&BTreeMap<String, ValueEntry>>,
    memories: &BTreeMap<MemoryKey, IndexedMemory>,
    owner: &InstallationId,
) -> HolderSizes {
    let mut sizes = HolderSizes::default();
    for (key, entry) in values.into_iter().flatten() {
        sizes.add(&entry.holder, Size { bytes: entry.bytes(key), items: 0 });
    }
    for (_, memory) in memories.iter().filter(|(scope, _)| scope.owner == *owner) {
        sizes.add(&memory.holder, memory.size());
    }
    sizes
}

#[async_trait::async_trait]
impl AgentMemory for MemoryStorage {
    async fn recall(
        &self,
        owner: &InstallationId,
        key: &str,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let inner = self.lock();
        let entry = inner.memories.get(owner).and_then(|memory| memory.get(key));
        Ok(entry.map(|entry| entry.value.clone()))
    }

    async fn remember_for(
        &self,
        owner: &InstallationId,
        key: &str,
        value: Vec<u8>,
        holder: &MemoryHolder,
        max_bytes: u64,
    ) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        let Stored { memories, context_memories, .. } = &mut *inner;
        let sizes = holder_sizes(memories.get(owner), context_memories, owner);
        let memory = memories.entry(owner.clone()).or_default();
        let old = memory.get(key);
        let of_old = old.map(|entry| Size { bytes: entry.bytes(key), items: 0 });
        let before = of_old.unwrap_or_default();
        let after = Size { bytes: (key.len() + value.len()) as u64, items: 0 };
        let all: u64 = memory.iter().map(|(key, entry)| entry.bytes(key)).sum();
        let contexts = context_memory::size(context_memories, owner).bytes;
        let would_hold = all - before.bytes + after.bytes + contexts;
        if would_hold > max_bytes {
            return Err(StorageError::Full { owner: owner.clone(), would_hold, max_bytes });
        }
        let old_holder = old.map(|entry| entry.holder.as_str());
        let capacity = MemoryCapacity { max_bytes, max_items: 0 };
        let new_holder = sizes.holder_after_write(old_holder, holder, (before, after), capacity)?;
        memory.insert(key.to_owned(), ValueEntry { value, holder: new_holder });
        Ok(())
    }

    async fn forget(&self, owner: &InstallationId, key: &str) -> Result<(), StorageError> {
        if let Some(memory) = self.to_write()?.memories.get_mut(owner) {
            memory.remove(key);
        }
        Ok(())
    }

    async fn keys(
        &self,
        owner: &InstallationId,
        prefix: &str,
    ) -> Result<Vec<String>, StorageError> {
        let inner = self.lock();
        let keys = inner.memories.get(owner).into_iter().flat_map(BTreeMap::keys);
        Ok(keys.filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}

#[async_trait::async_trait]
impl ContextMemory for MemoryStorage {
    async fn working(&self, scope: &MemoryKey) -> Result<WorkingMemory, StorageError> {
        Ok(self.lock().context_memories.get(scope).map(IndexedMemory::working).unwrap_or_default())
    }

    async fn change_for(
        &self,
        scope: &MemoryKey,
        changes: Vec<Change>,
        share: &MemoryShare,
        limits: MemoryCapacity,
    ) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        let Stored { context_memories, memories, .. } = &mut *inner;
        let sizes = holder_sizes(memories.get(&scope.owner), context_memories, &scope.owner);
        let old = context_memories.get(scope);
        let (old_holder, before) =
            (old.map(|old| old.holder.clone()), old.map(IndexedMemory::size));
        let before = before.unwrap_or_default();
        let mut memory = old.cloned().unwrap_or_default();
        memory.change(changes);
        let after = memory.size();
        let all_before = context_memory::size(context_memories, &scope.owner);
        let all = Size {
            bytes: (all_before.bytes + after.bytes).saturating_sub(before.bytes),
            items: (all_before.items + after.items).saturating_sub(before.items),
        };
        let values = memories.get(&scope.owner).into_iter().flatten();
        let values = values.map(|(key, entry)| entry.bytes(key)).sum();
        require_within_limits(scope, all_before, all, values, limits)?;
        let (old_holder, written) = (old_holder.as_deref(), (before, after));
        memory.holder =
            sizes.holder_after_write(old_holder, &share.holder, written, share.capacity)?;
        context_memories.insert(scope.clone(), memory);
        Ok(())
    }

    async fn search(&self, scope: &MemoryKey, search: Search) -> Result<Vec<Item>, StorageError> {
        let mut inner = self.lock();
        let Some(memory) = inner.context_memories.get_mut(scope) else { return Ok(Vec::new()) };
        Ok(memory.search(&search.query, search.limit, search.is_use))
    }

    async fn named(&self, scope: &MemoryKey, ids: Vec<String>) -> Result<Vec<Item>, StorageError> {
        Ok(self
            .lock()
            .context_memories
            .get(scope)
            .map(|memory| memory.named(&ids))
            .unwrap_or_default())
    }

    async fn abandon(&self, scope: &MemoryKey) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        if !inner.logs.values().any(|log| log.head.context == scope.context) {
            inner.context_memories.remove(scope);
        }
        Ok(())
    }

    async fn forget_context_memories(&self, owner: &InstallationId) -> Result<(), StorageError> {
        self.to_write()?.context_memories.retain(|scope, _| scope.owner != *owner);
        Ok(())
    }
}
