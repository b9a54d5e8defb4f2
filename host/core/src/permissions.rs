//! What the program behind an agent may do without asking.

use serde::{Deserialize, Serialize};

/// What the program behind an agent may do without asking: the least first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// Reading; the rest is refused without asking.
    ReadOnly,
    /// Nothing that changes anything: it asks the client each time.
    #[default]
    Ask,
    /// Reading, and changing files in the working directory; it asks for the rest.
    Edit,
    /// Everything that the hub's user may.
    Full,
}

impl Permissions {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::Edit, Self::Full];

    /// What is written so, if anything is.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }

    /// As it is written in the configuration, and told to the agent.
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
    fn words_are_those_of_metadata() {
        let known = a2a_hub_protocol::hub_metadata::PERMISSIONS;
        assert_eq!(Permissions::ALL.map(Permissions::word), known);
    }
}
