//! Where an agent keeps small values that outlive it.

use crate::failure::Failure;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 256;

/// The hub's side: the values of one agent, within the bytes it was granted.
#[async_trait::async_trait]
pub trait MemoryPort: Send + Sync {
    /// The value kept under `key`.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure>;
    /// Keeps `value` under `key`; [`Failure::Exhausted`] once the granted bytes are used up.
    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure>;
    /// Forgets what is kept under `key`.
    async fn delete(&self, key: &str) -> Result<(), Failure>;
    /// The keys that begin with `prefix`, sorted.
    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure>;
}
