//! Source of an agent, which decides its origin class.

use super::flow_file::FlowFile;
use a2a_hub_config::AgentConfig;
use a2a_hub_core::grant::confinement::AgentOrigin;
use a2a_hub_protocol::id::AgentId;
use std::{collections::BTreeMap, fmt};

/// Default time of a flow, and of each of its questions: 30 days.
const FLOW_TIME_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Id of the bundled component that runs flows.
pub(crate) const FLOW_RUNNER: &str = "flow";

/// Source of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentSource {
    /// A component bundled with the hub's executable.
    BuiltIn,
    /// The bundled component for programs of the Agent Client Protocol, as the configuration's key
    /// `acp` says.
    Acp,
    /// A function of the program that embeds the hub.
    Native,
    /// A file of the plugins folder.
    File(String),
    /// A flow file.
    Flow(FlowFile),
    /// The bundled component that runs the programs of trusted flows.
    Script,
    /// A remote agent at this URL.
    Remote(String),
}

impl AgentSource {
    /// Flow file of the agent, if it is one.
    pub(crate) fn flow(&self) -> Option<&FlowFile> {
        if let Self::Flow(flow) = self { Some(flow) } else { None }
    }

    /// True if the agent runs a flow file: its own one, or those in messages of clients.
    pub(crate) fn runs_flows(&self, id: &AgentId) -> bool {
        self.flow().is_some() || (matches!(self, Self::BuiltIn) && id.as_str() == FLOW_RUNNER)
    }

    /// True if lists of agents for people leave the agent out: it works for other commands, or its
    /// flow file says so.
    pub(crate) fn is_unlisted(&self, id: &AgentId) -> bool {
        match self {
            Self::Script => true,
            Self::Flow(flow) => flow.needs.is_unlisted(),
            Self::BuiltIn => id.as_str() == FLOW_RUNNER,
            Self::Acp | Self::Native | Self::File(_) | Self::Remote(_) => false,
        }
    }

    /// Origin class of the agent for confinement defaults.
    pub(crate) fn origin(&self) -> AgentOrigin {
        match self {
            Self::BuiltIn | Self::Acp | Self::Native | Self::Flow(..) => AgentOrigin::BuiltIn,
            // Its programs often run what agents wrote: they are confined as those of plug-ins.
            Self::File(_) | Self::Remote(_) | Self::Script => AgentOrigin::Plugin,
        }
    }

    /// Gives a flow time for its children, its client and its pauses, where the operator says
    /// nothing else; also the bundled agent that runs flow files of messages.
    pub(crate) fn relax(&self, id: &AgentId, config: &mut AgentConfig) {
        if self.runs_flows(id) {
            let default = AgentConfig::default();
            if config.timeout_ms == default.timeout_ms {
                config.timeout_ms = FLOW_TIME_MS;
            }
            if config.answer_timeout_ms == default.answer_timeout_ms {
                config.answer_timeout_ms = FLOW_TIME_MS;
            }
        }
        if let Self::Flow(flow) = self {
            flow.needs.apply_budget(config);
        }
    }

    /// Settings that the hub adds to those of the operator: the text of a flow file, and the name
    /// of its agent.
    pub(crate) fn settings(&self, id: &AgentId) -> BTreeMap<String, String> {
        match self {
            Self::Flow(flow) => BTreeMap::from([
                ("flow".to_owned(), flow.text.as_ref().to_owned()),
                ("flow_name".to_owned(), id.as_str().to_owned()),
            ]),
            Self::BuiltIn
            | Self::Acp
            | Self::Native
            | Self::Script
            | Self::File(_)
            | Self::Remote(_) => BTreeMap::new(),
        }
    }
}

impl fmt::Display for AgentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn | Self::Script => f.write_str("built-in"),
            Self::Acp => f.write_str("acp"),
            Self::Native => f.write_str("native"),
            Self::File(name) | Self::Remote(name) => f.write_str(name),
            Self::Flow(flow) => f.write_str(&flow.file),
        }
    }
}
