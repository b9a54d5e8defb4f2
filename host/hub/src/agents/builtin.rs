//! The agents that travel inside the hub's binary, so that one file is the whole install.

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Each agent's name and component; none if the hub was built without `cargo xtask guests`.
pub(super) const COMPONENTS: &[(&str, &[u8])] = BUILTIN;
