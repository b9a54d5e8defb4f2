//! The other agents, as far as one agent may know of them.

use super::live_grant::LiveGrant;
use a2a_hub_core::nearest::nearest;
use a2a_hub_protocol::{
    error::A2aError,
    id::AgentId,
    operation::{AgentQuery, FoundAgents, HealthStatus},
};
use a2a_hub_runtime::{
    Failure,
    port::delegate::{CallPort, ChildRequest, ChildTask, DelegatePort},
};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// An agent of this hub, as another one sees it.
pub(crate) struct Peer {
    /// Its name on this hub.
    pub id: AgentId,
    /// What it is called besides.
    pub aliases: Vec<AgentId>,
    /// How it was when it was asked last.
    pub health: HealthStatus,
    /// Whether the operator knows of it.
    pub is_vouched_for: bool,
    /// Its card, as it is published.
    pub card: Value,
}

/// Tells which agents there are now.
pub(crate) type ListPeers = Arc<dyn Fn() -> Vec<Peer> + Send + Sync>;

/// Finds those of these agents that fit a question.
pub(crate) type FindPeers = Arc<
    dyn Fn(Vec<AgentId>, AgentQuery) -> BoxFuture<'static, Result<FoundAgents, A2aError>>
        + Send
        + Sync,
>;

/// The others, as agents are told of them.
#[derive(Clone)]
pub(crate) struct Peers {
    pub list: ListPeers,
    pub find: FindPeers,
}

/// The agents that `agent` may call.
pub(crate) struct PeerDirectory {
    agent: AgentId,
    live: LiveGrant,
    peers: Peers,
}

impl PeerDirectory {
    pub(crate) fn new(agent: AgentId, live: LiveGrant, peers: Peers) -> Self {
        Self { agent, live, peers }
    }
}

impl PeerDirectory {
    /// The cards of those that it may call, without those that are known to be unwell: whoever calls them calls in vain. A
    /// stranger, which is in the plugins folder and was granted nothing, is told of only where the operator names it: what it says
    /// of itself stands in prompts.
    pub(crate) fn cards(&self) -> Vec<Value> {
        self.callable().map(|peer| peer.card).collect()
    }

    fn callable(&self) -> impl Iterator<Item = Peer> {
        let may_be_called = |peer: &Peer| {
            peer.id != self.agent && self.allows(peer) && peer.health != HealthStatus::Unhealthy
        };
        (self.peers.list)().into_iter().filter(may_be_called)
    }

    /// Those of the same agents that fit a question: none that it may not call is looked at, nor shows in a score.
    pub(crate) async fn search(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        let callable = self.callable().map(|peer| peer.id).collect();
        let found = (self.peers.find)(callable, query).await;
        found.map_err(|why| Failure::Invalid(format!("find agents: {}", why.message)))
    }

    /// The id of the agent that is called so, by its id or an alias.
    pub(crate) fn called(&self, name: &AgentId) -> AgentId {
        let peers = (self.peers.list)();
        if peers.iter().any(|peer| peer.id == *name) {
            return name.clone();
        }
        let by_alias = peers.iter().find(|peer| peer.aliases.contains(name));
        by_alias.map_or(name, |peer| &peer.id).clone()
    }

    fn allows(&self, peer: &Peer) -> bool {
        let held = self.live.now();
        let is_named = held.agents.names(peer.id.as_str());
        let is_every_other = peer.is_vouched_for && peer.id != self.agent;
        is_named || (is_every_other && held.may_call(peer.id.as_str()))
    }

    /// Refuses a call of an agent that this one may not call, or that is not there.
    pub(crate) fn must_allow(&self, agent: &AgentId) -> Result<(), Failure> {
        let peers = (self.peers.list)();
        match peers.iter().find(|peer| peer.id == *agent) {
            Some(peer) if self.allows(peer) => Ok(()),
            Some(_) => Err(not_granted(&self.agent, agent)),
            None if self.live.now().may_call(agent.as_str()) => {
                let there: Vec<_> = peers.iter().filter(|peer| self.allows(peer)).collect();
                let there: Vec<_> = there.iter().map(|peer| peer.id.as_str()).collect();
                let near = nearest(agent.as_str(), there.iter().copied());
                let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                Err(Failure::Invalid(format!(
                    "call `{agent}`: no agent is called so; {near}this one may call: {there}"
                )))
            }
            None => Err(not_granted(&self.agent, agent)),
        }
    }
}

fn not_granted(caller: &AgentId, agent: &AgentId) -> Failure {
    Failure::Denied(format!(
        "call `{agent}`: not granted; the operator allows it with `delegate = [\"{agent}\"]` in `[agents.{caller}.grant]` of the \
         hub's configuration, or to a plug-in with `a2a-hub plugin grant {caller} --delegate {agent}`"
    ))
}

/// For calls outside of a task: there is nobody whose child another task could be.
#[async_trait::async_trait]
impl DelegatePort for PeerDirectory {
    async fn agents(&self) -> Vec<Value> {
        self.cards()
    }

    async fn find(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        self.search(query).await
    }

    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        let agent = request.agent;
        Err(Failure::Unsupported(format!("call `{agent}`: there is no task in this call")))
    }

    async fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        Ok(Vec::new())
    }
}
