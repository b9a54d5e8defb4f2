//! Source of an agent, which decides its origin class.

use a2a_hub_config::AgentConfig;
use a2a_hub_core::grant::confinement::Origin;
use a2a_hub_protocol::id::AgentId;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Default time of a flow, and of each of its questions: 30 days.
const FLOW_TIME_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Id of the bundled component that runs flows.
pub(crate) const FLOW_RUNNER: &str = "flow";

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
    /// A flow file: its path below the data directory, and its text.
    Flow(String, Arc<str>),
    /// A remote agent at this URL.
    Remote(String),
}

impl Source {
    /// Origin class of the agent for confinement defaults.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::BuiltIn | Self::Acp | Self::Native | Self::Flow(..) => Origin::BuiltIn,
            Self::File(_) | Self::Remote(_) => Origin::Plugin,
        }
    }

    /// Gives a flow time for its children, its client and its pauses, where the operator says
    /// nothing else; also the bundled agent that runs flow files of messages.
    pub(crate) fn relax(&self, id: &AgentId, config: &mut AgentConfig) {
        let is_runner = matches!(self, Self::BuiltIn) && id.as_str() == FLOW_RUNNER;
        if is_runner || matches!(self, Self::Flow(..)) {
            let default = AgentConfig::default();
            if config.timeout_ms == default.timeout_ms {
                config.timeout_ms = FLOW_TIME_MS;
            }
            if config.answer_timeout_ms == default.answer_timeout_ms {
                config.answer_timeout_ms = FLOW_TIME_MS;
            }
        }
    }

    /// Settings that the hub adds to those of the operator: the text of a flow file, and the name
    /// of its agent.
    pub(crate) fn settings(&self, id: &AgentId) -> BTreeMap<String, String> {
        match self {
            Self::Flow(_, text) => BTreeMap::from([
                ("flow".to_owned(), text.as_ref().to_owned()),
                ("flow_name".to_owned(), id.as_str().to_owned()),
            ]),
            Self::BuiltIn | Self::Acp | Self::Native | Self::File(_) | Self::Remote(_) => {
                BTreeMap::new()
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::Acp => f.write_str("acp"),
            Self::Native => f.write_str("native"),
            Self::File(name) | Self::Flow(name, _) | Self::Remote(name) => f.write_str(name),
        }
    }
}
