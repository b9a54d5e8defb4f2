//! Groups of agents, as the operator's configuration has them now.

use super::Agents;
use a2a_hub_core::routing::Balance;
use a2a_hub_protocol::id::AgentId;

impl Agents {
    /// The agents of a group, whether or not they are there; none if no group is called so.
    pub fn group(&self, name: &AgentId) -> Option<Vec<AgentId>> {
        self.shared.config().group(name).map(<[AgentId]>::to_vec)
    }

    /// All groups, with their agents.
    pub fn groups(&self) -> Vec<(AgentId, Vec<AgentId>)> {
        let config = self.shared.config();
        config.aliases.iter().map(|(name, agents)| (name.clone(), agents.clone())).collect()
    }

    /// How messages are shared out that name a skill or a group.
    pub fn balance(&self, skill: Option<&str>, group: Option<&AgentId>) -> Balance {
        self.shared.config().routing.balance(skill, group)
    }

    /// Groups that hide an agent of the same name, or hold one that is not there.
    pub fn group_troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for (group, agents) in self.groups() {
            if self.find(&group).is_some() {
                troubles.push(format!(
                    "`aliases.{group}` is a group, and an agent is called so as well, which gets no message; rename one of the two"
                ));
            }
            for agent in agents.iter().filter(|agent| self.find(agent).is_none()) {
                troubles
                    .push(format!("`aliases.{group}` names `{agent}`, and no agent is called so"));
            }
        }
        troubles
    }
}
