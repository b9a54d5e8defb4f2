//! Our errors as the protocol tells them: the one place that maps them.

use crate::storage::StorageError;
use a2a_hub_protocol::error::{A2aError, ErrorKind};

/// What a client is told of a store that failed. The details are for the operator, and go to the log.
pub fn from_storage(why: &StorageError) -> A2aError {
    tracing::error!(%why, "the store failed");
    A2aError::new(
        ErrorKind::Internal,
        "the hub cannot use its store; its log (hub.log in the data directory) says why",
    )
}
