//! Agents bundled with the executable, so that one file is the whole installation.

use a2a_hub_protocol::id::AgentId;

/// Bundled components: the id and the bytes of each agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn(pub &'static [(&'static str, &'static [u8])]);

impl BuiltIn {
    /// Bundled component of the agent `id`, if any.
    pub(super) fn component(self, id: &AgentId) -> Option<&'static [u8]> {
        let one = self.0.iter().find(|(name, _)| *name == id.as_str());
        one.map(|(_, component)| *component)
    }

    /// Bytes of all bundled components.
    pub fn bytes(self) -> Vec<&'static [u8]> {
        self.0.iter().map(|(_, component)| *component).collect()
    }

    /// Ids of all bundled agents.
    pub(super) fn ids(self) -> impl Iterator<Item = AgentId> {
        self.0.iter().filter_map(|(name, _)| AgentId::parse(*name).ok())
    }
}
