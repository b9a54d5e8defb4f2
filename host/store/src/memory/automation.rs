//! States of schedules, triggers and notifiers, in memory.

use super::MemoryStorage;
use crate::{NotifierStates, ScheduleStates, StorageError, TriggerStates};
use a2a_hub_clock::schedule;
use a2a_hub_core::notify::plan::NotifierState;
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

#[async_trait::async_trait]
impl NotifierStates for MemoryStorage {
    async fn notifiers(&self) -> Result<Vec<(String, NotifierState)>, StorageError> {
        Ok(self.lock().notifiers.clone().into_iter().collect())
    }

    async fn set_notifier(&self, name: &str, state: &NotifierState) -> Result<(), StorageError> {
        self.to_write()?.notifiers.insert(name.to_owned(), state.clone());
        Ok(())
    }

    async fn forget_notifier(&self, name: &str) -> Result<(), StorageError> {
        self.to_write()?.notifiers.remove(name);
        Ok(())
    }
}
