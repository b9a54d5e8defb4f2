//! Endpoint and version of an official A2A request.

use a2a_hub_protocol::{id::AgentId, interface::Version, operation::Operation};

/// A client at an endpoint of official A2A.
#[derive(Clone, Debug)]
pub struct ClientContext {
    /// Agent of the endpoint; none for the hub's own.
    pub agent: Option<AgentId>,
    /// Version of A2A that the client speaks.
    pub version: Version,
    /// URIs of the extensions that the client requests.
    pub extensions: Vec<String>,
}

impl ClientContext {
    /// Addresses a message to the agent of the endpoint, whichever the message names.
    pub(super) fn address(&self, operation: &mut Operation) {
        if let (Operation::SendMessage(send) | Operation::StreamMessage(send), Some(agent)) =
            (operation, &self.agent)
        {
            send.agent = Some(agent.clone());
        }
    }
}
