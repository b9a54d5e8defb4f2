//! Where an agent keeps what it has in mind in the conversation of its task.

use crate::failure::Failure;
use a2a_hub_core::context_memory::{
    encoding::encoded_bytes,
    model::{Change, Item, WorkingMemory},
    retrieval::{query_words, words_of},
};
use parking_lot::{Mutex, MutexGuard};

/// The hub's side: what one agent has in mind in one conversation, within the bytes it was granted.
#[async_trait::async_trait]
pub trait ContextMemoryPort: Send + Sync {
    /// The working memory.
    async fn working(&self) -> Result<WorkingMemory, Failure>;
    /// Makes changes that are sound, all or none; [`Failure::Exhausted`] once what is granted is used up.
    async fn change(&self, changes: Vec<Change>) -> Result<(), Failure>;
    /// Up to `limit` items that a text recalls, best first.
    async fn recall(&self, query: &str, limit: usize) -> Result<Vec<Item>, Failure>;
}

/// What an agent has in mind that is tried, and not on a hub: it is forgotten when this is dropped. Items are recalled by whole words,
/// the newest first.
#[derive(Debug, Default)]
pub struct FleetingMind {
    kept: Mutex<(WorkingMemory, Vec<Item>)>,
    /// Bytes that it may keep.
    max_bytes: usize,
}

impl FleetingMind {
    /// One with room for so many bytes.
    pub fn of(max_bytes: usize) -> Self {
        Self { kept: Mutex::default(), max_bytes }
    }

    fn kept(&self) -> MutexGuard<'_, (WorkingMemory, Vec<Item>)> {
        self.kept.lock()
    }
}

#[async_trait::async_trait]
impl ContextMemoryPort for FleetingMind {
    async fn working(&self) -> Result<WorkingMemory, Failure> {
        Ok(self.kept().0.clone())
    }

    async fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let (mut working, mut items) = self.kept().clone();
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
        *self.kept() = (working, items);
        Ok(())
    }

    async fn recall(&self, query: &str, limit: usize) -> Result<Vec<Item>, Failure> {
        let asked = query_words(query);
        let fits = |item: &&Item| {
            asked.is_empty() || words_of(item).keys().any(|word| asked.contains(word))
        };
        Ok(self.kept().1.iter().rev().filter(fits).take(limit).cloned().collect())
    }
}
