//! Error of an operation, in the protocol's terms.

use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_runtime::Failure;
use a2a_hub_store::StorageError;
use serde_json::json;

/// Error of an operation, in the protocol's terms.
///
/// A separate type, as both [`A2aError`] and the errors that convert to it come from other crates.
#[derive(Debug)]
pub struct HubError {
    error: A2aError,
    is_passing: bool,
}

impl HubError {
    /// The error as the protocol defines it.
    pub fn error(&self) -> &A2aError {
        &self.error
    }

    /// True if only the store prevents the operation, which works again once the store is repaired.
    pub fn is_passing(&self) -> bool {
        self.is_passing
    }
}

impl From<HubError> for A2aError {
    fn from(why: HubError) -> Self {
        why.error
    }
}

impl From<A2aError> for HubError {
    fn from(error: A2aError) -> Self {
        Self { error, is_passing: false }
    }
}

/// The client gets a general text; the details go to the log, for the operator.
impl From<StorageError> for HubError {
    fn from(why: StorageError) -> Self {
        tracing::error!(%why, "the store failed");
        let is_passing = matches!(why, StorageError::Unavailable(_));
        let message = if is_passing {
            "the hub cannot use its store now; `a2a-hub status` says why, and once that is mended it works again by itself"
        } else {
            "the hub cannot use its store; its log (hub.log in the data directory) says why"
        };
        let error =
            A2aError::new(ErrorKind::Internal, message).with(json!({ "reason": "storage" }));
        Self { error, is_passing }
    }
}

/// Error for the client that named a directory in which the agent may not work.
pub(crate) fn refused_directory(why: &Failure) -> A2aError {
    if let Failure::Internal(_) = why {
        A2aError::internal()
    } else {
        A2aError::new(ErrorKind::InvalidParams, why.to_string())
    }
}
