//! Why a statement came to nothing, or the store would not do what was asked.

use super::fault;
use crate::StorageError;

/// Why a statement, or what was asked with it, came to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// SQLite failed.
    Sql(rusqlite::Error),
    /// The answer is no.
    Refused(StorageError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::Refused(error)
    }
}

impl From<Failure> for StorageError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sql(why) => fault::because_of(&why),
            Failure::Refused(error) => error,
        }
    }
}
