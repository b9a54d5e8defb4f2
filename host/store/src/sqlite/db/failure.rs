//! Error of a statement, or refusal of a request.

use super::error;
use crate::StorageError;

/// Error of a statement, or refusal of a request.
#[derive(Debug)]
pub(in crate::sqlite) enum Failure {
    /// SQLite failed.
    Sql(rusqlite::Error),
    /// The request was refused.
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
            Failure::Sql(why) => error::because_of(&why),
            Failure::Refused(error) => error,
        }
    }
}
