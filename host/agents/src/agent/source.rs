//! Where an agent came from, and so whose it is.

use a2a_hub_core::tier::Origin;
use std::fmt;

/// Where an agent came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The hub itself: it travels inside the program.
    BuiltIn,
    /// The very program that holds the hub.
    Native,
    /// A file of the plugins folder.
    File(String),
    /// Elsewhere, at this URL.
    Remote(String),
}

impl Source {
    /// Whose the agent is.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::BuiltIn | Self::Native => Origin::BuiltIn,
            Self::File(_) | Self::Remote(_) => Origin::Plugin,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::Native => f.write_str("native"),
            Self::File(name) | Self::Remote(name) => f.write_str(name),
        }
    }
}
