//! Agents embedded in this program, as the build script packed them, and the trials of their
//! programs.

use a2a_hub_agents::BuiltIn;
use a2a_hub_core::grant::Trial;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::component::manifest;
use std::collections::BTreeMap;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Name and component of each agent; empty if the program was built without `cargo xtask guests`.
pub const COMPONENTS: BuiltIn = BuiltIn(BUILTIN);

/// Returns the trials of the built-in agents that declare one.
pub fn trials() -> BTreeMap<AgentId, Trial> {
    let each = BUILTIN.iter().filter_map(|(name, component)| {
        let trial = manifest::read(component).ok()?.trial?;
        Some((AgentId::parse(*name).ok()?, trial))
    });
    each.collect()
}
