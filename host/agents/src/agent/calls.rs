//! What an agent at work knows of other agents, and whom of them it may call.

use super::Agent;
use a2a_hub_protocol::{
    id::AgentId,
    operation::{AgentQuery, FoundAgents},
};
use a2a_hub_runtime::Failure;
use serde_json::Value;
use std::collections::BTreeSet;

impl Agent {
    /// Whether it may call other agents at all.
    pub fn delegates(&self) -> bool {
        self.peers.is_some()
    }

    /// Whether its programs may work there.
    pub fn may_work_in(&self, directory: &str) -> bool {
        self.programs.directory(Some(directory)).is_ok()
    }

    /// The cards of the agents that it may call.
    pub fn peers(&self) -> Vec<Value> {
        self.peers.as_ref().map(|peers| peers.cards()).unwrap_or_default()
    }

    /// Those of the agents that it may call which fit a question.
    pub async fn find_peers(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        match &self.peers {
            Some(peers) => peers.search(query).await,
            None => Ok(FoundAgents::default()),
        }
    }

    /// The id of the agent that is called so, by its id or an alias, of those that it may know of.
    pub fn peer_called(&self, name: &AgentId) -> AgentId {
        self.peers.as_ref().map_or_else(|| name.clone(), |peers| peers.called(name))
    }

    /// The other names that its manifest claims, which count once the operator vouches for it.
    pub(crate) fn claimed_aliases(&self) -> &BTreeSet<AgentId> {
        &self.runtime.ask().aliases
    }

    /// Refuses a call of an agent that it may not call now.
    pub fn may_call(&self, agent: &AgentId) -> Result<(), Failure> {
        match &self.peers {
            Some(peers) => peers.must_allow(agent),
            None => {
                Err(Failure::Denied(format!("call `{agent}`: no agent is granted to this one")))
            }
        }
    }

    /// Waits until the operator takes away that it may call that agent.
    pub async fn may_no_longer_call(&self, agent: &AgentId) {
        let agent = agent.clone();
        let revocation = self.live.watch(move |held| held.may_call(agent.as_str()));
        revocation.token.cancelled().await;
    }
}
