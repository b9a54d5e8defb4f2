//! People, in memory.

use super::MemoryStorage;
use crate::{PeopleStore, StorageError};
use a2a_hub_core::identity::{Person, PersonName};

#[async_trait::async_trait]
impl PeopleStore for MemoryStorage {
    async fn people(&self) -> Result<Vec<Person>, StorageError> {
        Ok(self.lock().people.values().cloned().collect())
    }

    async fn set_person(&self, person: &Person) -> Result<(), StorageError> {
        self.to_write()?.people.insert(person.name.clone(), person.clone());
        Ok(())
    }

    async fn remove_person(
        &self,
        name: &PersonName,
        changed: &[Person],
    ) -> Result<(), StorageError> {
        let mut stored = self.to_write()?;
        let changed = changed.iter().map(|person| (person.name.clone(), person.clone()));
        stored.people.extend(changed);
        stored.people.remove(name);
        Ok(())
    }
}
