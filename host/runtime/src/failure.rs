//! Why a guest's work, or something it asked of the hub, was not done.

use a2a_hub_core::reason::FailureReason;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A refusal between hub and guest, as `failure` of the contract; and how a guest can break, which only the hub can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// The request makes no sense, whoever asks.
    #[error("{0}")]
    Invalid(String),
    /// This side cannot do that.
    #[error("{0}")]
    Unsupported(String),
    /// The operator did not grant it.
    #[error("{0}")]
    Denied(String),
    /// The task was cancelled.
    #[error("the task was cancelled")]
    Cancelled,
    /// It took longer than it was given.
    #[error("it took longer than it was given")]
    Timeout,
    /// Not now; trying again later may work.
    #[error("{0}")]
    Unavailable(String),
    /// The hub starts or stops, or its store fails: no answer, so never recorded as one. Trying again works once the hub is up.
    #[error("{0}")]
    HubNotUp(String),
    /// The hub runs as many agents as it can; no fault of this one.
    #[error(
        "start the agent: as many agents are running or wait for an answer as this hub holds (`max_tasks`); try again later, or see \
             `a2a-hub tasks --state input-required`"
    )]
    HubFull,
    /// A limit of the agent is used up.
    #[error("{0}")]
    Exhausted(String),
    /// A fault of this side.
    #[error("{0}")]
    Internal(String),
    /// The guest's code broke: it panicked or did what WebAssembly forbids.
    #[error("the agent's code broke: {0}")]
    Trapped(Crash),
    /// The guest does not do again what its journal says it did.
    #[error("{0}")]
    Diverged(String),
}

/// How an agent's code broke. Anybody may be shown it as text, which is `what` alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// The kind of trap, or that it panicked.
    pub what: String,
    /// The panic's own text. It may hold secrets, and paths of the machine that built the agent: it is for the hub's log and for the
    /// agent's author.
    pub panic: Option<String>,
}

impl Crash {
    /// WebAssembly ended the code: it did what is forbidden.
    pub fn trap(what: impl Into<String>) -> Self {
        Self { what: what.into(), panic: None }
    }

    /// The code panicked with this text.
    pub fn panic(text: impl Into<String>) -> Self {
        let what = "it panicked; the hub's log has the panic's text".to_owned();
        Self { what, panic: Some(text.into()) }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Failure {
    /// The failure with a panic's own text, for the author of the agent.
    pub fn in_full(&self) -> String {
        if let Self::Trapped(Crash { panic: Some(text), .. }) = self {
            format!("the agent's code broke: {text}")
        } else {
            self.to_string()
        }
    }

    /// The reason that a failed task tells. None for a task that was cancelled: it did not fail.
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
    fn panic_text_is_for_the_author_only() {
        let text = "panicked at /build/agent/src/lib.rs:7:5:\nthe key is sk-123";
        let failure = Failure::Trapped(Crash::panic(text));
        let told = failure.to_string();
        assert_eq!(told, "the agent's code broke: it panicked; the hub's log has the panic's text");
        assert_eq!(failure.in_full(), format!("the agent's code broke: {text}"));
        let trap = Failure::Trapped(Crash::trap("wasm trap: out of bounds memory access"));
        assert_eq!(trap.in_full(), trap.to_string());
    }
}
