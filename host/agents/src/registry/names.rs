//! Names of agents: their ids, and the aliases from the configuration and the manifests.

use super::{Agents, JoinError, admin::register::file_name, flows, remote};
use a2a_hub_core::discovery::{
    aliases::{AliasClaim, Aliases, ClaimedBy},
    did_you_mean,
};
use a2a_hub_protocol::id::AgentId;

impl Agents {
    /// Aliases of the registered agents. Aliases in the manifest of an unapproved plug-in are
    /// ignored, because any file may be in the plugins folder.
    pub fn aliases(&self) -> Aliases {
        let config = self.shared.config();
        let all = self.all();
        let ids = all.iter().map(|agent| agent.id.clone()).collect();
        let claims = all.iter().flat_map(|agent| {
            let operators = config.agents.get(&agent.id).into_iter().flat_map(|it| &it.aliases);
            let claimed =
                agent.is_vouched_for().then(|| agent.claimed_aliases()).into_iter().flatten();
            let claim = |by: ClaimedBy| {
                move |alias: &AgentId| AliasClaim {
                    alias: alias.clone(),
                    agent: agent.id.clone(),
                    by,
                }
            };
            let operators: Vec<_> = operators.map(claim(ClaimedBy::Operator)).collect();
            operators.into_iter().chain(claimed.map(claim(ClaimedBy::Manifest)))
        });
        Aliases::new(&ids, claims.collect())
    }

    /// Listed name of the file or setting that would have been this agent, and was refused.
    pub fn rejected_file(&self, id: &AgentId) -> Option<String> {
        let rejected = self.rejected();
        let mut names = [file_name(id), flows::listed_of(id), remote::table(id)].into_iter();
        names.find(|name| rejected.iter().any(|it| it.file == *name))
    }

    /// Resolves an id or alias to an id; none if no agent has the name.
    pub fn called(&self, name: &AgentId) -> Option<AgentId> {
        if self.find(name).is_some() {
            return Some(name.clone());
        }
        self.aliases().agent(name).cloned()
    }

    /// Warnings about aliases that do not count.
    pub fn alias_warnings(&self) -> Vec<String> {
        self.aliases().rejected.iter().map(ToString::to_string).collect()
    }

    /// Warnings about workspaces that do not exist. Blocks on the disk for a moment.
    pub fn workspace_warnings(&self) -> Vec<String> {
        self.shared.config().missing_workspaces()
    }

    /// Warnings about names in the configuration that match no agent: `default_agent`,
    /// `root_agent`, and settings whose name resembles an agent's. Settings may exist before their
    /// agent.
    pub fn name_warnings(&self) -> Vec<String> {
        let config = self.shared.config();
        let all = self.all();
        let names = || all.iter().map(|agent| agent.id.as_str());
        let mut warnings = Vec::new();
        for (setting, name) in
            [("default_agent", &config.default_agent), ("root_agent", &config.root_agent)]
        {
            let is_group = |name: &AgentId| config.group(name).is_some();
            if let Some(name) = name.as_ref().filter(|name| self.called(name).is_none())
                && !is_group(name)
            {
                let hint = did_you_mean::hint(name.as_str(), names());
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                warnings.push(format!("`{setting}` is `{name}`, and no agent is called so{hint}"));
            }
        }
        for (name, _) in config.agents.iter().filter(|(_, agent)| !agent.acp.is_empty()) {
            if self.shared.built_in.reserves(name) {
                warnings.push(format!(
                    "`agents.{name}.acp` is left out, since a bundled agent is called `{name}`; take another name, such as `{name}-acp`"
                ));
            }
        }
        let is_there = |name: &AgentId| self.find(name).is_some();
        let idle = config.agents.iter().filter(|(name, agent)| agent.enabled && !is_there(name));
        for (name, _) in idle {
            if let Some(near) = did_you_mean::nearest(name.as_str(), names()) {
                let hint = did_you_mean::question(&format!("agents.{near}"));
                warnings.push(format!(
                    "`agents.{name}` sets something for an agent that is not there; {hint}"
                ));
            }
        }
        warnings
    }

    /// Refuses an id that the operator uses as an alias of another agent: a file in the plugins
    /// folder would receive that agent's messages.
    pub(super) fn require_no_alias(&self, id: &AgentId) -> Result<(), JoinError> {
        match self.shared.config().agent_by_alias(id) {
            Some(agent) if agent != id => Err(JoinError::IsAnAlias(id.clone(), agent.clone())),
            Some(_) | None => Ok(()),
        }
    }
}
