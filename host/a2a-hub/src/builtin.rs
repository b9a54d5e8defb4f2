//! The agents inside this program, as the build script packed them, and how the programs that they drive are tried.

use a2a_hub_agents::BuiltIn;
use a2a_hub_core::grant::Trial;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::manifest;
use std::collections::BTreeMap;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Each agent's name and component; none if the program was built without `cargo xtask guests`.
pub const COMPONENTS: BuiltIn = BuiltIn(BUILTIN);

/// The agents that say how their programs are tried, and how.
pub fn trials() -> BTreeMap<AgentId, Trial> {
    let each = BUILTIN.iter().filter_map(|(name, component)| {
        let trial = manifest::read(component).ok()?.trial?;
        Some((AgentId::parse(*name).ok()?, trial))
    });
    each.collect()
}
