//! Rules for context memories that all stores share: sizes, and limits.

use crate::StorageError;
use a2a_hub_core::{
    bm25::WordCounts,
    context_memory::{
        encoding::encoded_bytes,
        model::{
            Change, ITEM_OVERHEAD, Item, MemoryCapacity, MemoryKey, WORD_OVERHEAD, WorkingMemory,
        },
        retrieval::words_of,
    },
    scheduling::{
        memory_shares::MemoryHolder,
        resources::{ShareReached, SharedResource},
    },
};
use std::collections::BTreeMap;

/// Total size of an owner's context memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) items: u64,
}

/// Sizes of an owner's memory by holder: values by key, and context memories.
#[derive(Clone, Debug, Default)]
pub(crate) struct HolderSizes(BTreeMap<String, Size>);

impl HolderSizes {
    /// Holder of something after a write of `writer`. Refuses a write beyond the writer's share;
    /// `self` are the sizes before it, `before` and `after` those of what is written.
    pub(crate) fn holder_after_write(
        mut self,
        old: Option<&str>,
        writer: &MemoryHolder,
        (before, after): (Size, Size),
        capacity: MemoryCapacity,
    ) -> Result<String, ShareReached> {
        let holder = holder_after(old, writer, (before, after)).to_owned();
        if let Some(old) = old {
            self.remove(old, before);
        }
        self.add(&holder, after);
        self.require_share(writer, (before, after), capacity)?;
        Ok(holder)
    }

    pub(crate) fn add(&mut self, holder: &str, size: Size) {
        let all = self.0.entry(holder.to_owned()).or_default();
        all.bytes = all.bytes.saturating_add(size.bytes);
        all.items = all.items.saturating_add(size.items);
    }

    fn remove(&mut self, holder: &str, size: Size) {
        let all = self.0.entry(holder.to_owned()).or_default();
        all.bytes = all.bytes.saturating_sub(size.bytes);
        all.items = all.items.saturating_sub(size.items);
    }

    /// Refuses a write beyond a share; `self` are the sizes after it. `before` and `after` are the
    /// sizes of what is written: a write that makes neither its bytes nor its items more is never
    /// refused.
    fn require_share(
        &self,
        holder: &MemoryHolder,
        (before, after): (Size, Size),
        capacity: MemoryCapacity,
    ) -> Result<(), ShareReached> {
        if after.bytes > before.bytes {
            let units = self.0.iter().map(|(holder, size)| (holder.as_str(), size.bytes));
            holder.require_share(SharedResource::MemoryBytes, capacity.max_bytes, units)?;
        }
        if after.items > before.items {
            let units = self.0.iter().map(|(holder, size)| (holder.as_str(), size.items));
            holder.require_share(SharedResource::MemoryItems, capacity.max_items, units)?;
        }
        Ok(())
    }
}

/// Holder of something after a write: the writer, if it grew.
fn holder_after<'h>(
    old: Option<&'h str>,
    writer: &'h MemoryHolder,
    (before, after): (Size, Size),
) -> &'h str {
    let has_grown = after.bytes > before.bytes || after.items > before.items;
    old.filter(|_| !has_grown).unwrap_or(writer.as_str())
}

/// An item with its words.
#[derive(Clone, Debug)]
pub(crate) struct Indexed {
    pub(crate) item: Item,
    /// Words by which it is found, with their counts.
    pub(crate) counts: WordCounts,
}

impl Indexed {
    pub(crate) fn new(item: Item) -> Self {
        let counts = words_of(&item);
        Self { item, counts }
    }

    /// Number of words, with repetitions.
    pub(crate) fn length(&self) -> u64 {
        self.counts.values().map(|times| u64::from(*times)).sum()
    }

    /// Charged size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let Item { id, kind, data, metadata } = &self.item;
        let about = metadata.as_ref().map_or(0, encoded_bytes);
        let content_bytes = id.len() + kind.len() + encoded_bytes(data) + about;
        content_bytes as u64 + ITEM_OVERHEAD + self.counts.len() as u64 * WORD_OVERHEAD
    }
}

/// Charged size of a working memory in bytes.
pub(crate) fn bytes_of(working: &WorkingMemory) -> u64 {
    if working.is_empty() { 0 } else { encoded_bytes(working) as u64 + ITEM_OVERHEAD }
}

/// Final version of each changed item, by id, in the order of writing; none for a deleted item.
pub(crate) fn of_items(changes: Vec<Change>) -> Vec<(String, Option<Indexed>)> {
    let mut last = BTreeMap::new();
    for (number, change) in changes.into_iter().enumerate() {
        match change {
            Change::Remember(item) => {
                last.insert(item.id.clone(), (number, Some(item)));
            }
            Change::Forget(id) => {
                last.insert(id, (number, None));
            }
            Change::Goal(_) | Change::Thought(_) | Change::Decide(_) | Change::Variable { .. } => {}
        }
    }
    let mut written: Vec<_> = last.into_iter().collect();
    written.sort_by_key(|(_, (number, _))| *number);
    written.into_iter().map(|(id, (_, item))| (id, item.map(Indexed::new))).collect()
}

/// Refuses a change that exceeds the limits. A change that reduces the size is never refused.
pub(crate) fn require_within_limits(
    scope: &MemoryKey,
    before: Size,
    after: Size,
    values: u64,
    limits: MemoryCapacity,
) -> Result<(), StorageError> {
    let (owner, would_hold) = (scope.owner.clone(), after.bytes + values);
    if after.bytes > before.bytes && would_hold > limits.max_bytes {
        return Err(StorageError::Full { owner, would_hold, max_bytes: limits.max_bytes });
    }
    if after.items > before.items && after.items > limits.max_items {
        let (would_hold, max_items) = (after.items, limits.max_items);
        return Err(StorageError::FullOfItems { owner, would_hold, max_items });
    }
    Ok(())
}
