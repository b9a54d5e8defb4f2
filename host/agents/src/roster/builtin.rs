//! The agents that travel inside the program, so that one file is the whole install.

use a2a_hub_protocol::id::AgentId;

/// Components that a program carries: each agent's name, and its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn(pub &'static [(&'static str, &'static [u8])]);

impl BuiltIn {
    /// The component of the agent called `id`, if it travels inside the program.
    pub(super) fn component(self, id: &AgentId) -> Option<&'static [u8]> {
        let one = self.0.iter().find(|(name, _)| *name == id.as_str());
        one.map(|(_, component)| *component)
    }

    /// The components themselves.
    pub fn bytes(self) -> Vec<&'static [u8]> {
        self.0.iter().map(|(_, component)| *component).collect()
    }

    /// The names of them all.
    pub(super) fn ids(self) -> impl Iterator<Item = AgentId> {
        self.0.iter().filter_map(|(name, _)| AgentId::parse(*name).ok())
    }
}
