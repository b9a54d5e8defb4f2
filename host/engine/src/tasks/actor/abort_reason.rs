//! Failures of the hub that end a task.

use a2a_hub_core::failure_reason::FailureReason;

/// Failure of the hub that ends a task, although its agent could have continued.
#[derive(Clone, Copy)]
pub(in crate::tasks) enum AbortReason {
    /// The store did not accept events, and events that are not stored must not be seen.
    Unstored,
    /// The actor panicked.
    Broken,
}

impl AbortReason {
    /// Reason code, for machines.
    pub(in crate::tasks) fn reason(self) -> FailureReason {
        match self {
            Self::Unstored => FailureReason::Storage,
            Self::Broken => FailureReason::Internal,
        }
    }

    /// Description, for people.
    pub(in crate::tasks) fn text(self) -> &'static str {
        match self {
            Self::Unstored => "The hub could not store what the agent did; its log says why.",
            Self::Broken => "The hub itself broke at this task; its log says where.",
        }
    }
}
