//! Why the task of an adapter failed, for machines: the `reason` in its metadata. `docs/reference/failure-reasons.md` tells clients of each.

/// Why a task failed whose agent drives a vendor's program. The hub gives reasons of its own beside these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The vendor's API refused, or broke.
    ApiError,
    /// The vendor's API was asked too often, or a quota is used up.
    RateLimited,
    /// The vendor's API had no room.
    Overloaded,
    /// The answer broke off.
    BrokenStream,
    /// Somebody interrupted the program.
    Interrupted,
    /// The model, or a policy, would not do it.
    Refused,
    /// The model's limit of tokens was reached.
    MaxTokens,
    /// The program's limit of turns was reached.
    MaxTurns,
    /// The program's limit of costs was reached.
    MaxBudget,
    /// The program is not there.
    NotInstalled,
    /// The program, or the vendor's API, does not know who asks, and nobody logged in when asked to.
    NotLoggedIn,
    /// The program failed otherwise. The hub gives the same reason where an agent has a fault of its own.
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

    /// The stable word that stands in the task's metadata.
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
