//! The other agents, as far as one agent may know of them.

use a2a_hub_core::grant::EffectiveGrant;
use a2a_hub_protocol::{id::AgentId, operation::HealthStatus};
use a2a_hub_runtime::port::delegate::DelegatePort;
use serde_json::Value;
use std::sync::Arc;

/// An agent of this hub, as another one sees it.
pub(super) struct Peer {
    /// Its name on this hub.
    pub id: AgentId,
    /// How it was when it was asked last.
    pub health: HealthStatus,
    /// Its card, as it is published.
    pub card: Value,
}

/// Tells which agents there are now.
pub(super) type ListPeers = Arc<dyn Fn() -> Vec<Peer> + Send + Sync>;

/// The agents that `agent` may call.
pub(super) struct PeerDirectory {
    agent: AgentId,
    held: Arc<EffectiveGrant>,
    list: ListPeers,
}

impl PeerDirectory {
    pub(super) fn new(agent: AgentId, held: Arc<EffectiveGrant>, list: ListPeers) -> Self {
        Self { agent, held, list }
    }
}

impl DelegatePort for PeerDirectory {
    /// Without those that are known to be unwell: whoever calls them calls in vain.
    fn agents(&self) -> Vec<Value> {
        let may_be_called = |peer: &Peer| {
            peer.id != self.agent
                && self.held.may_call(peer.id.as_str())
                && peer.health != HealthStatus::Unhealthy
        };
        (self.list)().into_iter().filter(may_be_called).map(|peer| peer.card).collect()
    }
}
