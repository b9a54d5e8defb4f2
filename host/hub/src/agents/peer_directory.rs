//! The other agents, as far as one agent may know of them.

use super::{Agents, Shared};
use a2a_hub_core::grant::EffectiveGrant;
use a2a_hub_protocol::{id::AgentId, operation::HealthStatus};
use a2a_hub_runtime::port::delegate::DelegatePort;
use serde_json::Value;
use std::sync::{Arc, Weak};

/// The agents that `agent` may call.
pub(super) struct PeerDirectory {
    agent: AgentId,
    held: Arc<EffectiveGrant>,
    /// Weak, for it owns the agent that owns this.
    all: Weak<Shared>,
}

impl PeerDirectory {
    pub(super) fn new(agent: AgentId, held: Arc<EffectiveGrant>, all: Weak<Shared>) -> Self {
        Self { agent, held, all }
    }
}

impl DelegatePort for PeerDirectory {
    /// Without those that are known to be unwell: whoever calls them calls in vain.
    fn agents(&self) -> Vec<Value> {
        let Some(shared) = self.all.upgrade() else { return Vec::new() };
        let known = Agents { shared }.all();
        let others = known.iter().filter(|other| {
            other.id != self.agent
                && self.held.may_call(other.id.as_str())
                && other.health().status != HealthStatus::Unhealthy
        });
        others.map(|other| other.card.published(Some(&other.id))).collect()
    }
}
