//! Error about a component that is held back: its differences, and the commands for the operator.

use a2a_hub_protocol::{id::AgentId, operation::HeldBack};

/// A component that awaits the operator's approval.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "held back: `{agent}` was granted to another component (SHA-256 {}), and this one ({}) waits for your word; {}; {}; \
     `a2a-hub plugin diff {agent}` tells what it asks for, and `a2a-hub plugin grant {agent}` lets it in",
    short(&held.granted),
    short(&held.sha256),
    if held.serves { "the one that was granted serves on" } else { "no copy of the one that was granted is kept" },
    if held.changes.is_empty() { "nothing is known to differ in what it asks for".to_owned() } else { first(&held.changes) },
)]
pub struct PendingApprovalError {
    /// Agent whose file contains the component.
    pub agent: AgentId,
    /// Digests of the new and the granted component, and their differences.
    pub held: HeldBack,
}

/// Most differences in one message.
const MAX_LISTED: usize = 6;

/// The first differences, and the number of the others.
fn first(changes: &[String]) -> String {
    let listed = changes.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match changes.len().saturating_sub(MAX_LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Prefix of a digest that distinguishes it.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_back_message_names_changes_and_remedy() {
        let held = |serves, changes: &[&str]| PendingApprovalError {
            agent: AgentId::parse("notes").unwrap(),
            held: HeldBack {
                sha256: "bb".repeat(32),
                granted: "aa".repeat(32),
                serves,
                changes: changes.iter().map(|&line| line.to_owned()).collect(),
            },
        };
        insta::assert_snapshot!(held(true, &["+ run `sh`", "- run `git`"]), @"held back: `notes` was granted to another component (SHA-256 aaaaaaaaaaaa), and this one (bbbbbbbbbbbb) waits for your word; the one that was granted serves on; + run `sh`, - run `git`; `a2a-hub plugin diff notes` tells what it asks for, and `a2a-hub plugin grant notes` lets it in");
        insta::assert_snapshot!(held(false, &[]), @"held back: `notes` was granted to another component (SHA-256 aaaaaaaaaaaa), and this one (bbbbbbbbbbbb) waits for your word; no copy of the one that was granted is kept; nothing is known to differ in what it asks for; `a2a-hub plugin diff notes` tells what it asks for, and `a2a-hub plugin grant notes` lets it in");
    }
}
