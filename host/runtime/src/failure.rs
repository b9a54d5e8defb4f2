//! Failures of a guest's work, or of its requests to the hub.

use a2a_hub_core::failure_reason::FailureReason;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Failure between hub and guest, as `failure` of the contract, plus failures of a guest that only
/// the hub sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// The request is invalid, independent of its sender.
    #[error("{0}")]
    Invalid(String),
    /// Unsupported by the side that was asked.
    #[error("{0}")]
    Unsupported(String),
    /// Not granted by the operator.
    #[error("{0}")]
    Denied(String),
    /// The task was cancelled.
    #[error("the task was cancelled")]
    Cancelled,
    /// A time limit was exceeded.
    #[error("it took longer than it was given")]
    Timeout,
    /// Temporarily unavailable; a retry may work.
    #[error("{0}")]
    Unavailable(String),
    /// The hub starts or stops, or its store fails. This is no answer, so it is never recorded as
    /// one. A retry works once the hub is up.
    #[error("{0}")]
    HubNotUp(String),
    /// The hub runs as many agents as it can; not a failure of this agent.
    #[error(
        "start the agent: as many agents are running or wait for an answer as this hub holds (`max_tasks`); try again later, or see \
             `a2a-hub tasks --state input-required`"
    )]
    HubFull,
    /// A limit of the agent is used up.
    #[error("{0}")]
    Exhausted(String),
    /// Internal error of the side that was asked.
    #[error("{0}")]
    Internal(String),
    /// The guest's code panicked or trapped.
    #[error("the agent's code crashed: {0}")]
    Trapped(Crash),
    /// A replayed guest deviates from its journal.
    #[error("{0}")]
    Diverged(String),
}

/// Crash of an agent's code. Its `Display` text is `what` alone, which anyone may see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Kind of trap, or that the code panicked.
    pub what: String,
    /// Text of the panic. May contain secrets, and paths of the machine that built the agent, so it
    /// is only for the hub's log and the agent's author.
    pub panic: Option<String>,
}

impl Crash {
    /// Crash by a WebAssembly trap.
    pub fn trap(kind: impl Into<String>) -> Self {
        Self { what: kind.into(), panic: None }
    }

    /// Crash by a panic with this text.
    pub fn panic(text: impl Into<String>) -> Self {
        let kind = "it panicked; the hub's log has the panic's text".to_owned();
        Self { what: kind, panic: Some(text.into()) }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Failure {
    /// Text of the failure including a panic's text, for the agent's author.
    pub fn in_full(&self) -> String {
        if let Self::Trapped(Crash { panic: Some(text), .. }) = self {
            format!("the agent's code crashed: {text}")
        } else {
            self.to_string()
        }
    }

    /// Reason code of a failed task. None for a cancelled task, which has not failed.
    pub fn reason(&self) -> Option<FailureReason> {
        match self {
            Self::Invalid(_) => Some(FailureReason::InvalidRequest),
            Self::Unsupported(_) => Some(FailureReason::Unsupported),
            Self::Denied(_) => Some(FailureReason::Denied),
            Self::Cancelled => None,
            Self::Timeout => Some(FailureReason::Timeout),
            Self::Unavailable(_) | Self::HubNotUp(_) => Some(FailureReason::Unavailable),
            Self::HubFull => Some(FailureReason::HubFull),
            Self::Exhausted(_) => Some(FailureReason::LimitExceeded),
            Self::Internal(_) => Some(FailureReason::AgentError),
            Self::Trapped(_) => Some(FailureReason::AgentCrashed),
            Self::Diverged(_) => Some(FailureReason::ReplayDiverged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_hides_panic_text() {
        let text = "panicked at /build/agent/src/lib.rs:7:5:\nthe key is sk-123";
        let failure = Failure::Trapped(Crash::panic(text));
        let told = failure.to_string();
        assert_eq!(
            told,
            "the agent's code crashed: it panicked; the hub's log has the panic's text"
        );
        assert_eq!(failure.in_full(), format!("the agent's code crashed: {text}"));
        let trap = Failure::Trapped(Crash::trap("wasm trap: out of bounds memory access"));
        assert_eq!(trap.in_full(), trap.to_string());
    }
}
