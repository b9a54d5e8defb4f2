//! Where a client of official A2A asks, and how it speaks.

use a2a_hub_protocol::{id::AgentId, interface::Version};

/// A client at an endpoint of official A2A.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Whose endpoint it is; the hub's own if none is named.
    pub agent: Option<AgentId>,
    /// The version of A2A that it speaks.
    pub version: Version,
    /// URIs of the extensions that it asks for.
    pub extensions: Vec<String>,
}
