//! Permissions of the program behind an agent to act without asking.

use serde::{Deserialize, Serialize};

/// Actions that the program behind an agent may do without asking, in increasing order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// Reading; other actions are refused without asking.
    ReadOnly,
    /// No changes: it asks the client each time.
    #[default]
    Ask,
    /// Reading, and changing files in the working directory; it asks for other actions.
    Edit,
    /// Everything that the hub's user may do.
    Full,
}

impl Permissions {
    /// All levels, in increasing order.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::Edit, Self::Full];

    /// Parses a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }

    /// Word in the configuration, also passed to the agent.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::ReadOnly => "read-only",
            Self::Edit => "edit",
            Self::Full => "full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_protocol_metadata() {
        let known = a2a_hub_protocol::hub_metadata::PERMISSIONS;
        assert_eq!(Permissions::ALL.map(Permissions::word), known);
    }
}
