//! Reviews, in memory.

use super::MemoryStorage;
use crate::{ReviewStore, StorageError};
use a2a_hub_core::review::Review;
use a2a_hub_protocol::id::TaskId;

#[async_trait::async_trait]
impl ReviewStore for MemoryStorage {
    async fn reviews(&self, task: &TaskId, owner: &str) -> Result<Vec<Review>, StorageError> {
        let inner = self.lock();
        let of = |review: &&Review| review.task == *task && review.owner == owner;
        Ok(inner.reviews.values().filter(of).cloned().collect())
    }

    async fn set_review(&self, review: &Review) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        if inner.logs.contains_key(&review.task) {
            inner.reviews.insert(review.id.clone(), review.clone());
        }
        Ok(())
    }

    async fn forget_review(&self, review: &Review) -> Result<(), StorageError> {
        self.to_write()?.reviews.remove(&review.id);
        Ok(())
    }
}
