//! Agents' memories: values by key, and context memories.

use crate::StorageError;
use a2a_hub_core::{
    context_memory::model::{Change, Item, MemoryCapacity, MemoryKey, WorkingMemory},
    plugin::installation::InstallationId,
    scheduling::memory_shares::MemoryHolder,
};

/// Agents' memories: small values by key, separate for each installation of an agent.
#[async_trait::async_trait]
pub trait AgentMemory: Send + Sync {
    /// Value of `key` in an installation's memory.
    async fn recall(
        &self,
        owner: &InstallationId,
        key: &str,
    ) -> Result<Option<Vec<u8>>, StorageError>;

    /// Stores `value` under `key` durably, unless all keys and values would exceed `max_bytes`, or
    /// those of `holder` its share of them. A larger value belongs to `holder` from now on.
    async fn remember_for(
        &self,
        owner: &InstallationId,
        key: &str,
        value: Vec<u8>,
        holder: &MemoryHolder,
        max_bytes: u64,
    ) -> Result<(), StorageError>;

    /// Stores a value for the operator, who has all of the memory.
    async fn remember(
        &self,
        owner: &InstallationId,
        key: &str,
        value: Vec<u8>,
        max_bytes: u64,
    ) -> Result<(), StorageError> {
        self.remember_for(owner, key, value, &MemoryHolder::default(), max_bytes).await
    }

    /// Deletes `key` from an installation's memory, if it exists.
    async fn forget(&self, owner: &InstallationId, key: &str) -> Result<(), StorageError>;

    /// Keys of an installation that begin with `prefix`, in byte order.
    async fn keys(&self, owner: &InstallationId, prefix: &str)
    -> Result<Vec<String>, StorageError>;
}

/// Context memories: a working memory and searchable items for each agent and conversation.
#[async_trait::async_trait]
pub trait ContextMemory: Send + Sync {
    /// Working memory under a key; empty without an entry.
    async fn working(&self, scope: &MemoryKey) -> Result<WorkingMemory, StorageError>;

    /// Applies changes in order: all durably, or none if the owner's total would exceed `limits`,
    /// or the holder's share its part of the capacity. A memory that grows belongs to that holder
    /// from now on, as a whole.
    async fn change_for(
        &self,
        scope: &MemoryKey,
        changes: Vec<Change>,
        share: &MemoryShare,
        limits: MemoryCapacity,
    ) -> Result<(), StorageError>;

    /// Applies changes for the operator, who has all of the memory.
    async fn change(
        &self,
        scope: &MemoryKey,
        changes: Vec<Change>,
        limits: MemoryCapacity,
    ) -> Result<(), StorageError> {
        let share = MemoryShare { holder: MemoryHolder::default(), capacity: limits };
        self.change_for(scope, changes, &share, limits).await
    }

    /// Items under a key that match a search, best first.
    async fn search(&self, scope: &MemoryKey, search: Search) -> Result<Vec<Item>, StorageError>;

    /// The existing ones of these items under a key, in that order.
    async fn named(&self, scope: &MemoryKey, ids: Vec<String>) -> Result<Vec<Item>, StorageError>;

    /// Deletes the memory under a key whose conversation has no tasks: nobody will read it.
    async fn abandon(&self, scope: &MemoryKey) -> Result<(), StorageError>;

    /// Deletes all context memories of an installation.
    async fn forget_context_memories(&self, owner: &InstallationId) -> Result<(), StorageError>;
}

/// Share of an agent's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Holder of the share.
    pub holder: MemoryHolder,
    /// Capacity that is divided.
    pub capacity: MemoryCapacity,
}

/// Search for items under a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Text to match; without words in it, the newest items match.
    pub query: String,
    /// Limit of results.
    pub limit: usize,
    /// True if the results are used together, which associates them.
    pub is_use: bool,
}
