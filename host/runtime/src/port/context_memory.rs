//! Port for an agent's context memory: its memory of the current conversation.

use crate::failure::Failure;
use a2a_hub_core::context_memory::{
    encoding::encoded_bytes,
    model::{Change, Item, WorkingMemory},
    retrieval::{query_words, words_of},
};
use parking_lot::{Mutex, MutexGuard};

/// Context memory of one agent in one conversation, within the granted bytes.
#[async_trait::async_trait]
pub trait ContextMemoryPort: Send + Sync {
    /// Reads the working memory.
    async fn working(&self) -> Result<WorkingMemory, Failure>;
    /// Applies valid changes, all or none; [`Failure::Exhausted`] if the granted size would be
    /// exceeded.
    async fn change(&self, changes: Vec<Change>) -> Result<(), Failure>;
    /// Up to `limit` items that match a text, best first.
    async fn recall(&self, query: &str, limit: usize) -> Result<Vec<Item>, Failure>;
}

/// Context memory for trial runs of an agent outside of a hub: kept in memory and dropped with this
/// value. Items match by whole words, newest first.
#[derive(Debug, Default)]
pub struct EphemeralMemory {
    inner: Mutex<(WorkingMemory, Vec<Item>)>,
    /// Size limit in bytes.
    max_bytes: usize,
}

impl EphemeralMemory {
    /// Creates an empty memory with this size limit.
    pub fn new(max_bytes: usize) -> Self {
        Self { inner: Mutex::default(), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, (WorkingMemory, Vec<Item>)> {
        self.inner.lock()
    }
}

#[async_trait::async_trait]
impl ContextMemoryPort for EphemeralMemory {
    async fn working(&self) -> Result<WorkingMemory, Failure> {
        Ok(self.lock().0.clone())
    }

    async fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let (mut working, mut items) = self.lock().clone();
        for change in changes {
            working.apply(&change);
            match change {
                Change::Remember(item) => {
                    items.retain(|known| known.id != item.id);
                    items.push(item);
                }
                Change::Forget(id) => items.retain(|known| known.id != id),
                Change::Goal(_)
                | Change::Thought(_)
                | Change::Decide(_)
                | Change::Variable { .. } => {}
            }
        }
        let would_hold = encoded_bytes(&(&working, &items));
        if would_hold > self.max_bytes {
            let why =
                format!("remember more: it would hold {would_hold} of {} bytes", self.max_bytes);
            return Err(Failure::Exhausted(why));
        }
        *self.lock() = (working, items);
        Ok(())
    }

    async fn recall(&self, query: &str, limit: usize) -> Result<Vec<Item>, Failure> {
        let terms = query_words(query);
        let fits = |item: &&Item| {
            terms.is_empty() || words_of(item).keys().any(|word| terms.contains(word))
        };
        Ok(self.lock().1.iter().rev().filter(fits).take(limit).cloned().collect())
    }
}
