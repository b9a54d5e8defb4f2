//! The other agents that one agent may know.

use super::live_grant::LiveGrant;
use a2a_hub_core::{
    discovery::did_you_mean,
    grant::delegate::{Callee, OutsideGrant},
};
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

/// An agent of this hub as another agent sees it.
pub(crate) struct Peer {
    /// Id of the agent on this hub.
    pub id: AgentId,
    /// Aliases of the agent.
    pub aliases: Vec<AgentId>,
    /// Health of the agent at the last check.
    pub health: HealthStatus,
    /// True if the operator approved the agent.
    pub is_vouched_for: bool,
    /// False if lists leave the agent out; a call by its name reaches it.
    pub is_listed: bool,
    /// Published card of the agent.
    pub card: Value,
}

/// Lists the current agents.
pub(crate) type ListPeers = Arc<dyn Fn() -> Vec<Peer> + Send + Sync>;

/// Searches the given agents.
pub(crate) type FindPeers = Arc<
    dyn Fn(Vec<AgentId>, AgentQuery) -> BoxFuture<'static, Result<FoundAgents, A2aError>>
        + Send
        + Sync,
>;

/// Access to the other agents.
#[derive(Clone)]
pub(crate) struct PeerAccess {
    pub list: ListPeers,
    pub find: FindPeers,
}

/// Agents that `agent` may call.
pub(crate) struct PeerDirectory {
    agent: AgentId,
    live: LiveGrant,
    peers: PeerAccess,
}

impl PeerDirectory {
    pub(crate) fn new(agent: AgentId, live: LiveGrant, peers: PeerAccess) -> Self {
        Self { agent, live, peers }
    }
}

impl PeerDirectory {
    /// Cards of the agents that this one may call, with the skills for which it may. Those known to
    /// be unhealthy are left out, because a call to them fails. An unapproved plug-in is included
    /// only if the operator names it: its own words would end up in prompts.
    pub(crate) fn cards(&self) -> Vec<Value> {
        let grant = self.live.now();
        let limited = |peer: Peer| {
            let mut card = peer.card;
            if let Some(skills) = grant.agents.limited_skills(peer.id.as_str()) {
                keep_skills(&mut card, &skills);
            }
            card
        };
        self.callable().map(limited).collect()
    }

    fn callable(&self) -> impl Iterator<Item = Peer> {
        let may_be_called = |peer: &Peer| {
            let is_known = peer.id != self.agent && peer.is_listed;
            is_known && self.allows(peer) && peer.health != HealthStatus::Unhealthy
        };
        (self.peers.list)().into_iter().filter(may_be_called)
    }

    /// Searches the callable agents only, so that no other agent affects a score.
    pub(crate) async fn search(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        let callable = self.callable().map(|peer| peer.id).collect();
        let found = (self.peers.find)(callable, query).await;
        found.map_err(|why| Failure::Invalid(format!("find agents: {}", why.message)))
    }

    /// Resolves an id or alias; returns `name` if none matches.
    pub(crate) fn called(&self, name: &AgentId) -> AgentId {
        let peers = (self.peers.list)();
        if peers.iter().any(|peer| peer.id == *name) {
            return name.clone();
        }
        let by_alias = peers.iter().find(|peer| peer.aliases.contains(name));
        by_alias.map_or(name, |peer| &peer.id).clone()
    }

    fn allows(&self, peer: &Peer) -> bool {
        let grant = self.live.now();
        let is_named = grant.agents.names(peer.id.as_str());
        let is_every_other = peer.is_vouched_for && peer.id != self.agent;
        is_named || (is_every_other && grant.may_call(peer.id.as_str()))
    }

    /// The callee of a call; `hint` is the skill that its message names.
    ///
    /// # Errors
    ///
    /// The call is not granted, or the agent or the skill does not exist.
    pub(crate) fn callee(&self, call: &Callee, hint: Option<&str>) -> Result<Callee, Failure> {
        self.require_allowed(&call.agent)?;
        let callee = match self.live.now().agents.callee(call, hint) {
            Ok(callee) => callee,
            Err(OutsideGrant::Agent) => return Err(not_granted(&self.agent, &call.agent)),
            Err(OutsideGrant::Skills(skills)) => {
                let (agent, skills) = (&call.agent, skills.join("`, `"));
                return Err(Failure::Denied(format!(
                    "call `{call}`: only the skills `{skills}` of `{agent}` are granted; call it as `{agent}/SKILL` with one of them"
                )));
            }
        };
        if let Some(skill) = &callee.skill {
            self.require_skill(&callee.agent, skill)?;
        }
        Ok(callee)
    }

    /// Refuses a skill that an agent does not have.
    fn require_skill(&self, agent: &AgentId, skill: &str) -> Result<(), Failure> {
        let peers = (self.peers.list)();
        let card = peers.iter().find(|peer| peer.id == *agent).map(|peer| &peer.card);
        let skills = card.and_then(|card| card["skills"].as_array()).into_iter().flatten();
        let ids: Vec<_> = skills.filter_map(|skill| skill["id"].as_str()).collect();
        if ids.contains(&skill) {
            return Ok(());
        }
        let hint = did_you_mean::hint(skill, ids.iter().copied());
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        Err(Failure::Invalid(format!("call `{agent}/{skill}`: the agent has no such skill{hint}")))
    }

    /// Refuses a call to an agent that this one may not call for anything, or that does not exist.
    pub(crate) fn require_allowed(&self, agent: &AgentId) -> Result<(), Failure> {
        let peers = (self.peers.list)();
        match peers.iter().find(|peer| peer.id == *agent) {
            Some(peer) if self.allows(peer) => Ok(()),
            Some(_) => Err(not_granted(&self.agent, agent)),
            None if self.live.now().may_call(agent.as_str()) => {
                let there: Vec<_> = peers.iter().filter(|peer| self.allows(peer)).collect();
                let there: Vec<_> = there.iter().map(|peer| peer.id.as_str()).collect();
                let hint = did_you_mean::hint(agent.as_str(), there.iter().copied());
                let hint = hint.map(|hint| format!("{hint} ")).unwrap_or_default();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                Err(Failure::Invalid(format!(
                    "call `{agent}`: no agent is called so; {hint}this one may call: {there}"
                )))
            }
            None => Err(not_granted(&self.agent, agent)),
        }
    }
}

/// Removes all other skills from a card.
fn keep_skills(card: &mut Value, allowed: &[&str]) {
    if let Some(skills) = card.get_mut("skills").and_then(Value::as_array_mut) {
        let is_allowed =
            |skill: &Value| skill["id"].as_str().is_some_and(|id| allowed.contains(&id));
        skills.retain(is_allowed);
    }
}

fn not_granted(caller: &AgentId, agent: &AgentId) -> Failure {
    Failure::Denied(format!(
        "call `{agent}`: not granted; the operator allows it with `delegate = [\"{agent}\"]` in `[agents.{caller}.grant]` of the \
         hub's configuration, or to a plug-in with `a2a-hub plugin grant {caller} --delegate {agent}`"
    ))
}

/// Implementation for calls outside of a task, which have no task that a child could belong to.
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
