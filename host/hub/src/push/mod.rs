//! Push notifications: where the news of tasks are sent, and how they get there.

use crate::storage::{PushFilter, Storage, StorageError};
use a2a_hub_protocol::{
    id::{PushConfigId, TaskId},
    push::{OfferedPush, PushConfig},
};
use std::sync::Arc;

/// How many places the news of one task are sent to. Each is sent every event, so that more would let one task flood
/// the network.
const MAX_CONFIGS: usize = 16;

/// Where the news of all tasks are sent. Cheap to clone.
#[derive(Clone)]
pub struct Pushes {
    storage: Arc<dyn Storage>,
}

/// Why the news of a task are not sent somewhere.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// There is no such task.
    #[error("send the news of task `{0}`: there is none")]
    NoTask(TaskId),
    /// The task has no such config.
    #[error("find the push config `{id}` of task `{task}`: it has none of that name")]
    NoConfig {
        /// The task.
        task: TaskId,
        /// The name asked for.
        id: PushConfigId,
    },
    /// The task has enough of them.
    #[error("send the news of task `{0}` to one more place: {MAX_CONFIGS} are enough; delete one")]
    TooMany(TaskId),
    /// The store refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Pushes {
    /// Those that are in the store.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// Sends the news of a task somewhere from now on: all that comes after event `sent`.
    pub async fn set(
        &self,
        task: TaskId,
        offered: OfferedPush,
        sent: u64,
    ) -> Result<PushConfig, PushError> {
        let config = offered.of(task.clone());
        let known = self.of_task(&task).await?;
        // Two at once may both find room: that there is a limit matters, not where.
        if known.len() >= MAX_CONFIGS && known.iter().all(|known| known.id != config.id) {
            return Err(PushError::TooMany(task));
        }
        if self.storage.set_push(config.clone(), sent).await? {
            Ok(config)
        } else {
            Err(PushError::NoTask(task))
        }
    }

    /// A config of a task; its first, if none is named.
    pub async fn get(
        &self,
        task: &TaskId,
        id: Option<&PushConfigId>,
    ) -> Result<PushConfig, PushError> {
        let wanted = |config: &PushConfig| id.is_none_or(|id| config.id == *id);
        let found = self.of_task(task).await?.into_iter().find(wanted);
        found.ok_or_else(|| {
            let id = id.cloned().unwrap_or_else(|| PushConfigId::new(task.as_str()));
            PushError::NoConfig { task: task.clone(), id }
        })
    }

    /// The configs of a task, in the order in which they were set first.
    pub async fn of_task(&self, task: &TaskId) -> Result<Vec<PushConfig>, StorageError> {
        let its = PushFilter { task: Some(task.clone()), ..PushFilter::default() };
        Ok(self.storage.pushes(its).await?.into_iter().map(|push| push.config).collect())
    }

    /// Sends nothing there any more. One that is not there is deleted already.
    pub async fn delete(&self, task: &TaskId, id: &PushConfigId) -> Result<(), StorageError> {
        self.storage.delete_push(task, id).await
    }
}
