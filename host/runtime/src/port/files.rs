//! Where an agent writes files for its programs.

use crate::failure::Failure;

/// The hub's side: a directory of one instance, which goes when this is dropped.
#[async_trait::async_trait]
pub trait FilesPort: Send + Sync {
    /// Writes a file that is not there yet, and returns its absolute path. `name` is as [`file_name::unused`](a2a_hub_core::file_name::unused) makes one.
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<String, Failure>;
}
