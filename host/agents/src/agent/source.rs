//! Source of an agent, which decides its origin class.

use a2a_hub_core::grant::confinement::Origin;
use std::fmt;

/// Source of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A component bundled with the hub's executable.
    BuiltIn,
    /// The bundled component for programs of the Agent Client Protocol, as the configuration's key
    /// `acp` says.
    Acp,
    /// A function of the program that embeds the hub.
    Native,
    /// A file of the plugins folder.
    File(String),
    /// A remote agent at this URL.
    Remote(String),
}

impl Source {
    /// Origin class of the agent for confinement defaults.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::BuiltIn | Self::Acp | Self::Native => Origin::BuiltIn,
            Self::File(_) | Self::Remote(_) => Origin::Plugin,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::Acp => f.write_str("acp"),
            Self::Native => f.write_str("native"),
            Self::File(name) | Self::Remote(name) => f.write_str(name),
        }
    }
}
