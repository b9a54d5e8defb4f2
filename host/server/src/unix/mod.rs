//! The unix socket endpoint, and the switch to MCP or ACP on a connection.

pub(super) mod protocol_upgrade;
pub(super) mod socket;
mod starting;
