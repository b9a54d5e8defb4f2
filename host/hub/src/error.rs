//! Why the hub does not carry out an operation, told as the protocol has it.

use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_store::StorageError;
use serde_json::json;

/// Why an operation is not carried out, in the protocol's own words.
///
/// A type of its own, for the errors that it is made of come from several crates, and so does [`A2aError`].
#[derive(Debug)]
pub struct HubError {
    told: A2aError,
    is_passing: bool,
}

impl HubError {
    /// The refusal as the protocol has it.
    pub fn told(&self) -> &A2aError {
        &self.told
    }

    /// Whether only the store keeps the operation from being carried out, and it works again once that is mended.
    pub fn is_passing(&self) -> bool {
        self.is_passing
    }
}

impl From<HubError> for A2aError {
    fn from(why: HubError) -> Self {
        why.told
    }
}

impl From<A2aError> for HubError {
    fn from(told: A2aError) -> Self {
        Self { told, is_passing: false }
    }
}

/// The details are for the operator, and go to the log.
impl From<StorageError> for HubError {
    fn from(why: StorageError) -> Self {
        tracing::error!(%why, "the store failed");
        let is_passing = matches!(why, StorageError::Unavailable(_));
        let told = if is_passing {
            "the hub cannot use its store now; `a2a-hub status` says why, and once that is mended it works again by itself"
        } else {
            "the hub cannot use its store; its log (hub.log in the data directory) says why"
        };
        let told = A2aError::new(ErrorKind::Internal, told).with(json!({ "reason": "storage" }));
        Self { told, is_passing }
    }
}
