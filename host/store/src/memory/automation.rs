//! States of schedules and triggers, in memory.

use super::MemoryStorage;
use crate::{ScheduleStates, StorageError, TriggerStates};
use a2a_hub_clock::schedule;
use a2a_hub_triggers::plan::TriggerState;

#[async_trait::async_trait]
impl ScheduleStates for MemoryStorage {
    async fn schedules(&self) -> Result<Vec<(String, schedule::State)>, StorageError> {
        Ok(self.lock().schedules.clone().into_iter().collect())
    }

    async fn set_schedule(&self, name: &str, state: &schedule::State) -> Result<(), StorageError> {
        self.to_write()?.schedules.insert(name.to_owned(), state.clone());
        Ok(())
    }

    async fn forget_schedule(&self, name: &str) -> Result<(), StorageError> {
        self.to_write()?.schedules.remove(name);
        Ok(())
    }
}

#[async_trait::async_trait]
impl TriggerStates for MemoryStorage {
    async fn triggers(&self) -> Result<Vec<(String, TriggerState)>, StorageError> {
        Ok(self.lock().triggers.clone().into_iter().collect())
    }

    async fn set_trigger(&self, name: &str, state: &TriggerState) -> Result<(), StorageError> {
        self.to_write()?.triggers.insert(name.to_owned(), state.clone());
        Ok(())
    }

    async fn forget_trigger(&self, name: &str) -> Result<(), StorageError> {
        self.to_write()?.triggers.remove(name);
        Ok(())
    }
}
