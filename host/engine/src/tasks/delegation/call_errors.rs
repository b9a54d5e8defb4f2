//! Errors of delegation calls, for the calling guest and for callers over the wire.

use crate::error::HubError;
use a2a_hub_core::task::tree_budget::NoChild;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_runtime::Failure;
use a2a_hub_store::StorageError;

/// Error of a call that the tree of tasks rejects: a budget is used up, or the tree is closed.
pub(in crate::tasks) fn no_child(why: &NoChild) -> Failure {
    match why {
        NoChild::Exhausted { .. } => Failure::Exhausted(why.to_string()),
        NoChild::Closed(_) => Failure::Cancelled,
    }
}

/// Error of a call that the hub refuses. A temporary error becomes [`Failure::HubNotUp`].
pub(in crate::tasks) fn refused(why: impl Into<HubError>) -> Failure {
    let why = why.into();
    if why.is_passing() {
        return Failure::HubNotUp(why.error().message.clone());
    }
    failure(why.error())
}

/// Error of a call that fails in the store.
pub(in crate::tasks) fn failed(action: &str, why: &StorageError) -> Failure {
    let message = format!("{action}: {why}");
    if matches!(why, StorageError::Unavailable(_)) {
        Failure::HubNotUp(message)
    } else {
        Failure::Internal(message)
    }
}

/// Converts the error for a caller over the wire.
pub(in crate::tasks) fn refused_to(why: Failure) -> HubError {
    let (kind, message) = match why {
        Failure::Invalid(message) => (ErrorKind::InvalidParams, message),
        Failure::Denied(message) => (ErrorKind::PermissionDenied, message),
        Failure::Timeout => (ErrorKind::Timeout, why.to_string()),
        Failure::Unsupported(_)
        | Failure::Cancelled
        | Failure::Unavailable(_)
        | Failure::HubNotUp(_)
        | Failure::HubFull
        | Failure::Exhausted(_)
        | Failure::Internal(_)
        | Failure::Diverged(_)
        | Failure::Trapped(_) => (ErrorKind::AgentUnavailable, why.to_string()),
    };
    A2aError::new(kind, message).into()
}

fn failure(why: &A2aError) -> Failure {
    let message = why.message.clone();
    if why.kind == ErrorKind::Timeout {
        Failure::Timeout
    } else if why.kind == ErrorKind::InvalidParams {
        Failure::Invalid(message)
    } else {
        Failure::Unavailable(message)
    }
}
