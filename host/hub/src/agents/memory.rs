//! The values one agent remembers, kept by the store.

use super::live_grant::{LiveGrant, revoked};
use a2a_hub_core::installation::InstallationId;
use a2a_hub_runtime::{Failure, port::memory::MemoryPort};
use a2a_hub_store::{AgentMemory, StorageError};
use std::sync::Arc;

/// The values of one installation of an agent, within the bytes it holds.
pub(super) struct BoundedMemory {
    owner: InstallationId,
    max_bytes: u64,
    live: LiveGrant,
    storage: Arc<dyn AgentMemory>,
}

impl BoundedMemory {
    pub(super) fn new(
        owner: InstallationId,
        max_bytes: u64,
        live: LiveGrant,
        storage: Arc<dyn AgentMemory>,
    ) -> Self {
        Self { owner, max_bytes, live, storage }
    }

    /// The bytes that there still are; refused once the operator took them away.
    fn bytes(&self) -> Result<u64, Failure> {
        let bytes = self.live.now().memory_bytes.ok_or_else(|| revoked("remember values"))?;
        Ok(bytes.min(self.max_bytes))
    }
}

#[async_trait::async_trait]
impl MemoryPort for BoundedMemory {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.bytes()?;
        let value = self.storage.recall(&self.owner, key).await.map_err(|why| failure(&why))?;
        // It may have been taken away while the store looked.
        self.bytes()?;
        Ok(value)
    }

    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure> {
        let max_bytes = self.bytes()?;
        self.storage.remember(&self.owner, key, value, max_bytes).await.map_err(|why| failure(&why))
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.bytes()?;
        self.storage.forget(&self.owner, key).await.map_err(|why| failure(&why))
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.bytes()?;
        self.storage.keys(&self.owner, prefix).await.map_err(|why| failure(&why))
    }
}

/// What a guest is told: its memory is full, or the store does not work.
pub(super) fn failure(why: &StorageError) -> Failure {
    if matches!(why, StorageError::Full { .. } | StorageError::FullOfItems { .. }) {
        Failure::Exhausted(why.to_string())
    } else {
        Failure::Unavailable(why.to_string())
    }
}
