//! The other agents, as far as one agent may know of them.

use super::live_grant::LiveGrant;
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
    /// Whether the operator knows of it.
    pub is_vouched_for: bool,
    /// Its card, as it is published.
    pub card: Value,
}

/// Tells which agents there are now.
pub(super) type ListPeers = Arc<dyn Fn() -> Vec<Peer> + Send + Sync>;

/// The agents that `agent` may call.
pub(super) struct PeerDirectory {
    agent: AgentId,
    live: LiveGrant,
    list: ListPeers,
}

impl PeerDirectory {
    pub(super) fn new(agent: AgentId, live: LiveGrant, list: ListPeers) -> Self {
        Self { agent, live, list }
    }
}

impl DelegatePort for PeerDirectory {
    /// Without those that are known to be unwell: whoever calls them calls in vain. A stranger, which is in the plugins folder and
    /// was granted nothing, is told of only where the operator names it: what it says of itself stands in prompts.
    fn agents(&self) -> Vec<Value> {
        let held = self.live.now();
        let is_allowed = |peer: &Peer| {
            let is_named = held.agents.contains(peer.id.as_str());
            is_named || (peer.is_vouched_for && held.may_call(peer.id.as_str()))
        };
        let may_be_called = |peer: &Peer| {
            peer.id != self.agent && is_allowed(peer) && peer.health != HealthStatus::Unhealthy
        };
        (self.list)().into_iter().filter(may_be_called).map(|peer| peer.card).collect()
    }
}
