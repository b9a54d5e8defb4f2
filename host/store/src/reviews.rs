//! Reviews of the changes of tasks. They are deleted with their tasks.

use crate::StorageError;
use a2a_hub_core::review::Review;
use a2a_hub_protocol::id::TaskId;

/// Reviews, by their tasks.
#[async_trait::async_trait]
pub trait ReviewStore: Send + Sync {
    /// Reviews of a task by this owner, oldest first.
    async fn reviews(&self, task: &TaskId, owner: &str) -> Result<Vec<Review>, StorageError>;

    /// Stores a review durably, in place of one with the same id. A review of a task that is not
    /// stored any more is dropped.
    async fn set_review(&self, review: &Review) -> Result<(), StorageError>;

    /// Deletes a review, if it exists.
    async fn forget_review(&self, review: &Review) -> Result<(), StorageError>;
}
