//! Journals of replayable runs, in memory.

use super::MemoryStorage;
use crate::{RunJournal, StorageError};
use a2a_hub_core::task::state::IllegalEvent;
use a2a_hub_protocol::id::TaskId;

#[async_trait::async_trait]
impl RunJournal for MemoryStorage {
    async fn record(
        &self,
        task: &TaskId,
        expected: u64,
        entry: String,
    ) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        let Some(log) = inner.logs.get_mut(task) else {
            return Err(StorageError::Uncreated(task.clone()));
        };
        if log.head.state.is_final() {
            return Err(IllegalEvent::Over(log.head.state).into());
        }
        let found = log.journal.len() as u64;
        if expected == 0 {
            log.journal.clear();
        } else if found != expected {
            return Err(StorageError::Conflict { task: task.clone(), expected, found });
        }
        log.journal.push(entry);
        Ok(())
    }

    async fn recorded(&self, task: &TaskId) -> Result<Vec<String>, StorageError> {
        Ok(self.lock().logs.get(task).map(|log| log.journal.clone()).unwrap_or_default())
    }
}
