//! Agents bundled with the executable, so that one file is the whole installation.

use a2a_hub_protocol::id::AgentId;

/// Bundled components: the id and the bytes of each agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn(pub &'static [(&'static str, &'static [u8])]);

/// Component of which the hub makes an agent for each key `acp` of the configuration. By itself it
/// is no agent.
const ACP: &str = "acp";

impl BuiltIn {
    /// Bundled component of the agent `id`, if any.
    pub(super) fn component(self, id: &AgentId) -> Option<&'static [u8]> {
        self.named(id.as_str()).filter(|_| id.as_str() != ACP)
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
        let agents = self.0.iter().filter(|(name, _)| *name != ACP);
        agents.filter_map(|(name, _)| AgentId::parse(*name).ok())
    }
}
