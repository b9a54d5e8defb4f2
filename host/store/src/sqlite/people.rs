//! People in SQL, as the store offers them.

use super::{SqliteStorage, automation::PEOPLE};
use crate::{PeopleStore, StorageError};
use a2a_hub_core::identity::{Person, PersonName};

#[async_trait::async_trait]
impl PeopleStore for SqliteStorage {
    async fn people(&self) -> Result<Vec<Person>, StorageError> {
        let people = self.readers.read(|db| PEOPLE.list(db)).await?;
        Ok(people.into_iter().map(|(_, person)| person).collect())
    }

    async fn set_person(&self, person: &Person) -> Result<(), StorageError> {
        let person = person.clone();
        self.writer.write(move |db| PEOPLE.set(db, person.name.as_str(), &person)).await
    }

    async fn remove_person(
        &self,
        name: &PersonName,
        changed: &[Person],
    ) -> Result<(), StorageError> {
        let (name, changed) = (name.clone(), changed.to_vec());
        let change = move |db: &_| {
            changed.iter().try_for_each(|one| PEOPLE.set(db, one.name.as_str(), one))?;
            PEOPLE.forget(db, name.as_str())
        };
        self.writer.write(change).await
    }
}
