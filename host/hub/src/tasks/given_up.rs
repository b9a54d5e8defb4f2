//! Why a task ends although its agent could have gone on with it.

use a2a_hub_core::reason::FailureReason;

/// Why a task is given up that its agent could have gone on with.
#[derive(Clone, Copy)]
pub(super) enum GivenUp {
    /// The store did not take what happened, and nobody may hear what is not stored.
    Unstored,
    /// The hub itself broke.
    Broken,
}

impl GivenUp {
    /// The reason of the failure, for machines.
    pub(super) fn reason(self) -> FailureReason {
        match self {
            Self::Unstored => FailureReason::Storage,
            Self::Broken => FailureReason::Internal,
        }
    }

    /// The same in words, for people.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Unstored => "The hub could not store what the agent did; its log says why.",
            Self::Broken => "The hub itself broke at this task; its log says where.",
        }
    }
}
