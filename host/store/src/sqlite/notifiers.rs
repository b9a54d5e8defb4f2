//! States of notifiers in SQL, as the store offers them.

use super::{SqliteStorage, automation::NOTIFIERS};
use crate::{NotifierStates, StorageError};
use a2a_hub_core::notify::plan::NotifierState;

#[async_trait::async_trait]
impl NotifierStates for SqliteStorage {
    async fn notifiers(&self) -> Result<Vec<(String, NotifierState)>, StorageError> {
        self.readers.read(|db| NOTIFIERS.list(db)).await
    }

    async fn set_notifier(&self, name: &str, state: &NotifierState) -> Result<(), StorageError> {
        let (name, state) = (name.to_owned(), state.clone());
        self.writer.write(move |db| NOTIFIERS.set(db, &name, &state)).await
    }

    async fn forget_notifier(&self, name: &str) -> Result<(), StorageError> {
        let name = name.to_owned();
        self.writer.write(move |db| NOTIFIERS.forget(db, &name)).await
    }
}
