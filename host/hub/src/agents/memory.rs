//! The values one agent remembers, kept by the store.

use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{Failure, port::memory::MemoryPort};
use a2a_hub_store::{AgentMemory, StorageError};
use std::sync::Arc;

/// One agent's values, within the bytes it holds.
pub(super) struct BoundedMemory {
    agent: AgentId,
    max_bytes: u64,
    storage: Arc<dyn AgentMemory>,
}

impl BoundedMemory {
    pub(super) fn new(agent: AgentId, max_bytes: u64, storage: Arc<dyn AgentMemory>) -> Self {
        Self { agent, max_bytes, storage }
    }
}

#[async_trait::async_trait]
impl MemoryPort for BoundedMemory {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.storage.recall(&self.agent, key).await.map_err(|why| failure(&why))
    }

    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure> {
        self.storage
            .remember(&self.agent, key, value, self.max_bytes)
            .await
            .map_err(|why| failure(&why))
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.storage.forget(&self.agent, key).await.map_err(|why| failure(&why))
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.storage.keys(&self.agent, prefix).await.map_err(|why| failure(&why))
    }
}

/// What a guest is told: its memory is full, or the store does not work.
fn failure(why: &StorageError) -> Failure {
    if matches!(why, StorageError::Full { .. }) {
        Failure::Exhausted(why.to_string())
    } else {
        Failure::Unavailable(why.to_string())
    }
}
