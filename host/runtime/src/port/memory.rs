//! Port for small values that outlive an agent's run.

use crate::failure::Failure;

/// Longest key, in bytes.
pub const MAX_KEY: usize = 256;

/// Values of one agent, within the granted bytes.
#[async_trait::async_trait]
pub trait MemoryPort: Send + Sync {
    /// Reads the value of `key`.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure>;
    /// Stores `value` under `key`; [`Failure::Exhausted`] if the granted size would be exceeded.
    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure>;
    /// Deletes the value of `key`.
    async fn delete(&self, key: &str) -> Result<(), Failure>;
    /// Keys that begin with `prefix`, sorted.
    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure>;
}
