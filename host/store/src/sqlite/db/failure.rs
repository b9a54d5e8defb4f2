//! Error of a statement, or refusal of a request.

use super::error;
use crate::StorageError;

/// Error of a statement, or refusal of a request.
#[derive(Debug)]
pub(in crate::sqlite) enum SqliteFailure {
    /// SQLite failed.
    Sql(rusqlite::Error),
    /// The request was refused.
    Refused(StorageError),
}

impl From<rusqlite::Error> for SqliteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StorageError> for SqliteFailure {
    fn from(error: StorageError) -> Self {
        Self::Refused(error)
    }
}

impl From<SqliteFailure> for StorageError {
    fn from(failure: SqliteFailure) -> Self {
        match failure {
            SqliteFailure::Sql(why) => error::because_of(&why),
            SqliteFailure::Refused(error) => error,
        }
    }
}
