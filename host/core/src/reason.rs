//! Why a task failed, for machines: the `reason` in the metadata of a failed task. `docs/reference/failure-reasons.md` tells each to those
//! who write agents, and a test holds the two together.

/// Why a task failed, where it is the hub that says so. An agent may give reasons of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The agent returned `invalid`: the request makes no sense, whoever asks.
    InvalidRequest,
    /// The agent returned `unsupported`: it cannot do that.
    Unsupported,
    /// The agent returned `denied`: the operator did not grant what it needs.
    Denied,
    /// The agent returned `unavailable`, or an agent elsewhere could not be reached: trying again later may work.
    Unavailable,
    /// The agent passed a limit.
    LimitExceeded,
    /// The task, or a wait that the agent gave up on, took too long.
    Timeout,
    /// The agent returned `internal`: a fault of its own.
    AgentError,
    /// The agent's code panicked, or did what WebAssembly forbids.
    AgentCrashed,
    /// As many agents were running as the hub holds.
    HubFull,
    /// The hub was stopped in order while the agent was at work.
    HubStopped,
    /// The hub ended without a word while the agent was at work, or the agent is not there any more.
    HubRestarted,
    /// The agent runs again after a restart of the hub, and does not do what it did before.
    ReplayDiverged,
    /// The hub's store did not take what the agent did.
    Storage,
    /// A fault of the hub.
    Internal,
}

impl FailureReason {
    /// Every reason, as `docs/reference/failure-reasons.md` lists them.
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

    /// The stable word that stands in the task's metadata.
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

    /// The reason that [`FailureReason::name`] calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether the failure is the agent's fault, or that of what the agent needs, which its circuit breaker counts. All
    /// others are the client's doing, the operator's, the hub's, or nobody's.
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

    /// The words in the first cells of the table of reasons.
    fn told() -> BTreeSet<&'static str> {
        let page = include_str!("../../../docs/reference/failure-reasons.md");
        let (_, table) = page.split_once("| `reason` |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn reference_names_every_reason_and_no_other() {
        // A task that waits for its client has a reason, too, though it did not fail.
        let known = FailureReason::ALL.map(FailureReason::name).into_iter().chain(["recovery"]);
        assert_eq!(known.collect::<BTreeSet<_>>(), told());
    }

    /// Adapters fail for reasons of their own, one of which is the hub's as well.
    #[test]
    fn adapters_spell_a_fault_of_the_agent_as_the_hub_does() {
        let adapters = include_str!("../../../sdk/src/cli/reason.rs");
        let spelled = format!("Self::AgentError => {:?}", FailureReason::AgentError.name());
        assert!(adapters.contains(&spelled), "{spelled}");
    }

    #[test]
    fn a_reason_is_known_by_its_name() {
        for reason in FailureReason::ALL {
            assert_eq!(FailureReason::named(reason.name()), Some(reason));
        }
        assert_eq!(FailureReason::named("told-to"), None);
    }
}
