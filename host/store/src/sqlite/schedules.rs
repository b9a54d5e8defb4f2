//! States of schedules and triggers, as the store offers them.

use super::{
    SqliteStorage,
    automation::{SCHEDULES, TRIGGERS},
};
use crate::{ScheduleStates, StorageError, TriggerStates};
use a2a_hub_clock::schedule;
use a2a_hub_triggers::plan::TriggerState;

#[async_trait::async_trait]
impl ScheduleStates for SqliteStorage {
    async fn schedules(&self) -> Result<Vec<(String, schedule::State)>, StorageError> {
        self.readers.read(|db| SCHEDULES.list(db)).await
    }

    async fn set_schedule(&self, name: &str, state: &schedule::State) -> Result<(), StorageError> {
        let (name, state) = (name.to_owned(), state.clone());
        self.writer.write(move |db| SCHEDULES.set(db, &name, &state)).await
    }

    async fn forget_schedule(&self, name: &str) -> Result<(), StorageError> {
        let name = name.to_owned();
        self.writer.write(move |db| SCHEDULES.forget(db, &name)).await
    }
}

#[async_trait::async_trait]
impl TriggerStates for SqliteStorage {
    async fn triggers(&self) -> Result<Vec<(String, TriggerState)>, StorageError> {
        self.readers.read(|db| TRIGGERS.list(db)).await
    }

    async fn set_trigger(&self, name: &str, state: &TriggerState) -> Result<(), StorageError> {
        let (name, state) = (name.to_owned(), state.clone());
        self.writer.write(move |db| TRIGGERS.set(db, &name, &state)).await
    }

    async fn forget_trigger(&self, name: &str) -> Result<(), StorageError> {
        let name = name.to_owned();
        self.writer.write(move |db| TRIGGERS.forget(db, &name)).await
    }
}
