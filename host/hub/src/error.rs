//! Why the hub does not carry out an operation, told as the protocol has it.

use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_store::StorageError;

/// Why an operation is not carried out, in the protocol's own words.
///
/// A type of its own, for the errors that it is made of come from several crates, and so does [`A2aError`].
#[derive(Debug)]
pub struct HubError(A2aError);

impl From<HubError> for A2aError {
    fn from(why: HubError) -> Self {
        why.0
    }
}

impl From<A2aError> for HubError {
    fn from(why: A2aError) -> Self {
        Self(why)
    }
}

/// The details are for the operator, and go to the log.
impl From<StorageError> for HubError {
    fn from(why: StorageError) -> Self {
        tracing::error!(%why, "the store failed");
        let why = "the hub cannot use its store; its log (hub.log in the data directory) says why";
        Self(A2aError::new(ErrorKind::Internal, why))
    }
}
