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
        return Failure::HubNotUp(why.told().message.clone());
    }
    failure(why.told())
}

/// Error of a call that fails in the store.
pub(in crate::tasks) fn failed(what: &str, why: &StorageError) -> Failure {
    let told = format!("{what}: {why}");
    if matches!(why, StorageError::Unavailable(_)) {
        Failure::HubNotUp(told)
    } else {
        Failure::Internal(told)
    }
}

/// Converts the error for a caller over the wire.
pub(in crate::tasks) fn refused_to(why: Failure) -> HubError {
    let (kind, said) = match why {
        Failure::Invalid(said) => (ErrorKind::InvalidParams, said),
        Failure::Denied(said) => (ErrorKind::Authentication, said),
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
    A2aError::new(kind, said).into()
}

fn failure(why: &A2aError) -> Failure {
    let said = why.message.clone();
    if why.kind == ErrorKind::Timeout {
        Failure::Timeout
    } else if why.kind == ErrorKind::InvalidParams {
        Failure::Invalid(said)
    } else {
        Failure::Unavailable(said)
    }
}
