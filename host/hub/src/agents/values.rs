//! The values one agent remembers, kept by the store.

use crate::storage::{Storage, StorageError};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::{Failure, capability::memory::MemoryPort};
use std::sync::Arc;

/// One agent's values, within the bytes it holds.
pub(super) struct Values {
    agent: AgentId,
    max_bytes: u64,
    storage: Arc<dyn Storage>,
}

impl Values {
    pub(super) fn new(agent: AgentId, max_bytes: u64, storage: Arc<dyn Storage>) -> Self {
        Self { agent, max_bytes, storage }
    }
}

#[async_trait::async_trait]
impl MemoryPort for Values {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.storage.recall(&self.agent, key).await.map_err(failure)
    }

    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure> {
        self.storage.remember(&self.agent, key, value, self.max_bytes).await.map_err(failure)
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.storage.forget(&self.agent, key).await.map_err(failure)
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.storage.keys(&self.agent, prefix).await.map_err(failure)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "to a guest the store works or does not")]
fn failure(why: StorageError) -> Failure {
    match why {
        StorageError::Full { .. } => Failure::Exhausted(why.to_string()),
        _ => Failure::Unavailable(why.to_string()),
    }
}
