//! Machine-readable failure reasons of adapters: the `reason` in a failed task's metadata.
//! `docs/reference/failure-reasons.md` documents each for clients.

/// Failure reason of a task whose agent drives a vendor's program. The hub adds further reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The vendor's API refused the request or failed.
    ApiError,
    /// The rate limit or the quota of the vendor's API was exceeded.
    RateLimited,
    /// The vendor's API was overloaded.
    Overloaded,
    /// The stream of the answer was interrupted.
    BrokenStream,
    /// The program was interrupted.
    Interrupted,
    /// The model, or a policy, refused the request.
    Refused,
    /// The token limit of the model was reached.
    MaxTokens,
    /// The program's limit on turns was reached.
    MaxTurns,
    /// The program's limit on costs was reached.
    MaxBudget,
    /// The program is not installed.
    NotInstalled,
    /// The program, or the vendor's API, is not logged in, and the request to log in was not met.
    NotLoggedIn,
    /// The program failed in another way. The hub reports a fault of the agent itself with the same
    /// reason.
    AgentError,
}

impl FailureReason {
    /// Every reason.
    pub const ALL: [Self; 12] = [
        Self::ApiError,
        Self::RateLimited,
        Self::Overloaded,
        Self::BrokenStream,
        Self::Interrupted,
        Self::Refused,
        Self::MaxTokens,
        Self::MaxTurns,
        Self::MaxBudget,
        Self::NotInstalled,
        Self::NotLoggedIn,
        Self::AgentError,
    ];

    /// Stable name of the reason in the task's metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiError => "api_error",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::BrokenStream => "broken_stream",
            Self::Interrupted => "interrupted",
            Self::Refused => "refused",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurns => "max_turns",
            Self::MaxBudget => "max_budget",
            Self::NotInstalled => "not_installed",
            Self::NotLoggedIn => "not_logged_in",
            Self::AgentError => "agent_error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn reference_lists_every_reason() {
        let page = include_str!("../../../docs/reference/failure-reasons.md");
        let (_, table) = page.split_once("| reason of an adapter |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let told: BTreeSet<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(told, FailureReason::ALL.map(FailureReason::name).into());
    }
}
