//! Machine-readable reasons of failed tasks: the member `reason` in the task's metadata.
//! `docs/reference/failure-reasons.md` documents each for authors of agents; a test compares both
//! lists.

/// Reason of a failed task, if the hub determines it. An agent may report its own reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The agent returned `invalid`: the request is invalid for every caller.
    InvalidRequest,
    /// The agent returned `unsupported`: it cannot do that.
    Unsupported,
    /// The agent returned `denied`: the operator did not grant a permission that it needs.
    Denied,
    /// The agent returned `unavailable`, or a remote agent could not be reached: a later attempt
    /// may succeed.
    Unavailable,
    /// The agent exceeded a limit.
    LimitExceeded,
    /// The task took too long, or a wait of the agent timed out.
    Timeout,
    /// The agent returned `internal`: an error of the agent itself.
    AgentError,
    /// The agent's code panicked, or trapped in WebAssembly.
    AgentCrashed,
    /// The hub's limit of running agents was reached.
    HubFull,
    /// The hub was stopped gracefully while the agent was at work.
    HubStopped,
    /// The hub ended abruptly while the agent was at work, or the agent no longer exists.
    HubRestarted,
    /// The agent was replayed after a restart of the hub, and its calls differ from the recorded
    /// ones.
    ReplayDiverged,
    /// The hub's store did not accept the agent's results.
    Storage,
    /// An error of the hub.
    Internal,
}

impl FailureReason {
    /// Every reason, as listed in `docs/reference/failure-reasons.md`.
    pub const ALL: [Self; 14] = [
        Self::InvalidRequest,
        Self::Unsupported,
        Self::Denied,
        Self::Unavailable,
        Self::LimitExceeded,
        Self::Timeout,
        Self::AgentError,
        Self::AgentCrashed,
        Self::HubFull,
        Self::HubStopped,
        Self::HubRestarted,
        Self::ReplayDiverged,
        Self::Storage,
        Self::Internal,
    ];

    /// Stable word in the task's metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Unavailable => "unavailable",
            Self::LimitExceeded => "limit_exceeded",
            Self::Timeout => "timeout",
            Self::AgentError => "agent_error",
            Self::AgentCrashed => "agent_crashed",
            Self::HubFull => "hub_full",
            Self::HubStopped => "hub_stopped",
            Self::HubRestarted => "hub_restarted",
            Self::ReplayDiverged => "replay_diverged",
            Self::Storage => "storage",
            Self::Internal => "internal",
        }
    }

    /// Parses the output of [`FailureReason::name`].
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// True for a reason of an adapter that means: a vendor's quota or rate limit is used up.
    pub fn is_of_quota(reason: &str) -> bool {
        reason == "rate_limited"
    }

    /// True for a reason of an adapter that concerns the agent's account, and not the task.
    pub fn is_of_account(reason: &str) -> bool {
        Self::is_of_quota(reason) || reason == "not_logged_in"
    }

    /// True if the agent, or something that it depends on, caused the failure: the circuit breaker
    /// counts these. Other failures are caused by the client, the operator, the hub, or nobody.
    pub fn is_agents_fault(self) -> bool {
        match self {
            Self::Unavailable | Self::AgentError | Self::AgentCrashed => true,
            Self::InvalidRequest
            | Self::Unsupported
            | Self::Denied
            | Self::LimitExceeded
            | Self::Timeout
            | Self::HubFull
            | Self::HubStopped
            | Self::HubRestarted
            | Self::ReplayDiverged
            | Self::Storage
            | Self::Internal => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Words in the first column of the table of reasons.
    fn told() -> BTreeSet<&'static str> {
        let page = include_str!("../../../docs/reference/failure-reasons.md");
        let (_, table) = page.split_once("| `reason` |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn reference_lists_every_reason() {
        // A task that waits for its client also has a reason, although it did not fail.
        let known = FailureReason::ALL.map(FailureReason::name).into_iter().chain(["recovery"]);
        assert_eq!(known.collect::<BTreeSet<_>>(), told());
    }

    /// Adapters have their own reasons; one of them is also a reason of the hub.
    #[test]
    fn adapters_spell_agent_error_like_hub() {
        let adapters = include_str!("../../../sdk/src/cli/reason.rs");
        let spelled = format!("Self::AgentError => {:?}", FailureReason::AgentError.name());
        assert!(adapters.contains(&spelled), "{spelled}");
    }

    #[test]
    fn reason_round_trips_through_name() {
        for reason in FailureReason::ALL {
            assert_eq!(FailureReason::named(reason.name()), Some(reason));
        }
        assert_eq!(FailureReason::named("told-to"), None);
    }
}
