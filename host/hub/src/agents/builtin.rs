//! The agents that travel inside the hub's binary, so that one file is the whole install.

use a2a_hub_core::grant::Trial;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::manifest;
use std::collections::BTreeMap;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Each agent's name and component; none if the hub was built without `cargo xtask guests`.
pub(super) const COMPONENTS: &[(&str, &[u8])] = BUILTIN;

/// The component of the agent called `id`, if it travels inside the hub.
pub(super) fn component(id: &AgentId) -> Option<&'static [u8]> {
    let one = COMPONENTS.iter().find(|(name, _)| *name == id.as_str());
    one.map(|(_, component)| *component)
}

/// The agents that say how their programs are tried, and how.
pub fn trials() -> BTreeMap<AgentId, Trial> {
    let each = COMPONENTS.iter().filter_map(|(name, component)| {
        let trial = manifest::read(component).ok()?.trial?;
        Some((AgentId::parse(*name).ok()?, trial))
    });
    each.collect()
}
