//! People whom the operator let in, with their keys, by their names.

use crate::StorageError;
use a2a_hub_core::identity::{Person, PersonName};

/// People of a hub.
#[async_trait::async_trait]
pub trait PeopleStore: Send + Sync {
    /// All people, by their names.
    async fn people(&self) -> Result<Vec<Person>, StorageError>;

    /// Stores a person durably, in place of one with the same name.
    async fn set_person(&self, person: &Person) -> Result<(), StorageError>;

    /// Deletes the person of this name, if the store has one, and stores changed others. Both are
    /// one transaction: a killed hub has made all changes or none.
    async fn remove_person(
        &self,
        name: &PersonName,
        changed: &[Person],
    ) -> Result<(), StorageError>;
}
