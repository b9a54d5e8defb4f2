//! Port for files that an agent writes for its programs.

use crate::failure::Failure;

/// Directory of one instance, removed when this is dropped.
#[async_trait::async_trait]
pub trait FilesPort: Send + Sync {
    /// Writes a new file, and returns its absolute path. `name` comes from
    /// [`file_name::unused`](a2a_hub_core::text::file_name::unused).
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<String, Failure>;
}
