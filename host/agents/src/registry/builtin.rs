//! Agents bundled with the executable, so that one file is the whole installation.

use crate::agent::SCRIPT;
use a2a_hub_protocol::id::AgentId;

/// Bundled components: the id and the bytes of each agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn(pub &'static [(&'static str, &'static [u8])]);

/// Component of which the hub makes an agent for each key `acp` of the configuration. By itself it
/// is no agent.
const ACP: &str = "acp";

/// Components that are no agents by themselves: the hub makes agents of them where they are needed.
const TEMPLATE_COMPONENTS: [&str; 2] = [ACP, SCRIPT];

impl BuiltIn {
    /// Bundled component of the agent `id`, if any.
    pub(super) fn component(self, id: &AgentId) -> Option<&'static [u8]> {
        self.named(id.as_str()).filter(|_| !TEMPLATE_COMPONENTS.contains(&id.as_str()))
    }

    /// True if no agent of another source may have this id.
    pub(super) fn reserves(self, id: &AgentId) -> bool {
        self.component(id).is_some() || self.is_script(id)
    }

    /// True if this is the id of the agent that runs the programs of flows.
    pub(super) fn is_script(self, id: &AgentId) -> bool {
        id.as_str() == SCRIPT && self.script().is_some()
    }

    /// Bundled component that runs the programs of flows.
    pub(super) fn script(self) -> Option<&'static [u8]> {
        self.named(SCRIPT)
    }

    /// Bundled component for programs of the Agent Client Protocol.
    pub(super) fn acp(self) -> Option<&'static [u8]> {
        self.named(ACP)
    }

    fn named(self, name: &str) -> Option<&'static [u8]> {
        let one = self.0.iter().find(|(it, _)| *it == name);
        one.map(|(_, component)| *component)
    }

    /// Bytes of all bundled components.
    pub fn bytes(self) -> Vec<&'static [u8]> {
        self.0.iter().map(|(_, component)| *component).collect()
    }

    /// Ids of all bundled agents.
    pub(super) fn ids(self) -> impl Iterator<Item = AgentId> {
        let agents = self.0.iter().filter(|(name, _)| !TEMPLATE_COMPONENTS.contains(name));
        agents.filter_map(|(name, _)| AgentId::parse(*name).ok())
    }
}
