//! What agents are called: their ids, and the aliases that their operator and their manifests give them.

use super::{Agents, JoinError};
use a2a_hub_core::aliases::{Aliases, Claim, ClaimedBy};
use a2a_hub_protocol::id::AgentId;

impl Agents {
    /// The aliases of the agents that are there. What the manifest of a stranger claims is not heard: anybody may have put it into
    /// the plugins folder.
    pub fn aliases(&self) -> Aliases {
        let config = self.shared.config();
        let all = self.all();
        let ids = all.iter().map(|agent| agent.id.clone()).collect();
        let claims = all.iter().flat_map(|agent| {
            let operators = config.agents.get(&agent.id).into_iter().flat_map(|it| &it.aliases);
            let own = agent.is_vouched_for().then(|| agent.claimed_aliases()).into_iter().flatten();
            let claim = |by: ClaimedBy| {
                move |alias: &AgentId| Claim { alias: alias.clone(), agent: agent.id.clone(), by }
            };
            let operators: Vec<_> = operators.map(claim(ClaimedBy::Operator)).collect();
            operators.into_iter().chain(own.map(claim(ClaimedBy::Manifest)))
        });
        Aliases::new(&ids, claims.collect())
    }

    /// The id of the agent that is called so, by its id or an alias; none if nobody is.
    pub fn called(&self, name: &AgentId) -> Option<AgentId> {
        if self.find(name).is_some() {
            return Some(name.clone());
        }
        self.aliases().agent(name).cloned()
    }

    /// The aliases that do not count, and why.
    pub fn alias_troubles(&self) -> Vec<String> {
        self.aliases().left_out.iter().map(ToString::to_string).collect()
    }

    /// Refuses an id that is the operator's word for another agent: what is dropped into the plugins folder would be sent its messages.
    pub(super) fn must_be_no_alias(&self, id: &AgentId) -> Result<(), JoinError> {
        match self.shared.config().agent_by_alias(id) {
            Some(agent) if agent != id => Err(JoinError::IsAnAlias(id.clone(), agent.clone())),
            Some(_) | None => Ok(()),
        }
    }
}
