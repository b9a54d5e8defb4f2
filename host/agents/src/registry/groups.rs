//! Groups of agents from the operator's current configuration.

use super::Agents;
use a2a_hub_config::OnQuota;
use a2a_hub_core::routing::Balance;
use a2a_hub_protocol::id::AgentId;

impl Agents {
    /// Agents of a group, registered or not; none if the group does not exist.
    pub fn group(&self, name: &AgentId) -> Option<Vec<AgentId>> {
        self.shared.config().group(name).map(<[AgentId]>::to_vec)
    }

    /// All groups with their agents.
    pub fn groups(&self) -> Vec<(AgentId, Vec<AgentId>)> {
        let config = self.shared.config();
        config.aliases.iter().map(|(name, agents)| (name.clone(), agents.clone())).collect()
    }

    /// Load-balancing policy for messages addressed to a skill or a group.
    pub fn balance(&self, skill: Option<&str>, group: Option<&AgentId>) -> Balance {
        self.shared.config().routing.balance(skill, group)
    }

    /// Reaction if an agent of a group fails for lack of quota or login.
    pub fn on_quota(&self, group: &AgentId) -> OnQuota {
        self.shared.config().routing.on_quota(group)
    }

    /// Warnings about groups that hide an agent of the same name, or contain an unknown agent.
    pub fn group_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (group, agents) in self.groups() {
            if self.find(&group).is_some() {
                warnings.push(format!(
                    "`aliases.{group}` is a group, and an agent is called so as well, which gets no message; rename one of the two"
                ));
            }
            for agent in agents.iter().filter(|agent| self.find(agent).is_none()) {
                warnings
                    .push(format!("`aliases.{group}` names `{agent}`, and no agent is called so"));
            }
        }
        warnings
    }
}
