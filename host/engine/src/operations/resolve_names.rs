//! Name resolution: replaces an agent's alias by the agent's id before an operation is processed.

use super::Hub;
use crate::error::HubError;
use a2a_hub_agents::RegistryError;
use a2a_hub_core::discovery::did_you_mean;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::{Operation, PeopleRequest},
};
use serde_json::json;

impl Hub {
    /// Id of the agent with this id or alias; a group's name is returned unchanged.
    ///
    /// # Errors
    ///
    /// If no agent has the name; the error suggests the nearest name.
    pub fn named(&self, name: &AgentId) -> Result<AgentId, A2aError> {
        self.called(name).ok_or_else(|| self.no_agent(name))
    }

    /// Id of the agent with this id or alias; none if no agent has it. An alias from an agent's own
    /// card never hides a group.
    fn called(&self, name: &AgentId) -> Option<AgentId> {
        let group = self.routes.group(name).map(|_| name.clone());
        group.or_else(|| self.agents.called(name))
    }

    /// Agents with a skill, by its exact id, as messages for that skill find them.
    pub fn with_skill(&self, skill: &str) -> Vec<AgentId> {
        self.routes.with_skill(skill).iter().map(|agent| agent.id.clone()).collect()
    }

    /// Error for an unknown agent name, or for a plug-in that is still being compiled; the same for
    /// every operation.
    pub(super) fn no_agent(&self, name: &AgentId) -> A2aError {
        if let Some(compiling) = self.agents.load_of(name) {
            let since = &compiling.since;
            let why = format!(
                "the plug-in `{name}` is being compiled, since {since}; try again when `a2a-hub agents` lists it"
            );
            let details = json!({ "agentId": name, "reason": "compiling", "compiling": compiling });
            return A2aError::new(ErrorKind::AgentUnavailable, why).with(details);
        }
        let there = self.listed_names();
        let hint = match self.agents.rejected_file(name) {
            Some(file) => format!("`{file}` was not loaded, and `a2a-hub status` says why; "),
            None => self.did_you_mean(name.as_str()),
        };
        let why = format!("no agent is called `{name}`; {hint}there are {}", there.join(", "));
        A2aError::new(ErrorKind::AgentNotFound, why).with(json!({ "agents": there }))
    }

    /// Ids of the agents in lists for people.
    pub(super) fn listed_names(&self) -> Vec<String> {
        self.agents.listed().iter().map(|agent| agent.id.to_string()).collect()
    }

    /// Suggestion for an unknown name, if a known one is near: `did you mean ...? `.
    pub fn did_you_mean(&self, name: &str) -> String {
        let (listed, aliases) = (self.agents.listed(), self.agents.aliases());
        let names = listed.iter().map(|agent| agent.id.as_str());
        let groups = self.routes.groups();
        let groups = groups.iter().map(|group| group.name.as_str());
        let names = names.chain(aliases.all().map(AgentId::as_str)).chain(groups);
        let hint = did_you_mean::hint(name, names.filter(|known| *known != name));
        hint.map(|hint| format!("{hint} ")).unwrap_or_default()
    }

    /// Converts a registry error; an unknown agent gets the common error for unknown names.
    pub(super) fn registry_error(&self, why: RegistryError) -> HubError {
        match why {
            RegistryError::Unknown(name) => self.no_agent(&name).into(),
            why @ (RegistryError::Disabled(_)
            | RegistryError::Refused { .. }
            | RegistryError::NotReloaded { .. }
            | RegistryError::Elsewhere { .. }
            | RegistryError::NotElsewhere(_)
            | RegistryError::Folder(_)) => why.into(),
        }
    }

    /// Replaces an alias in an operation by the agent's id. An unknown name stays: a removed agent
    /// may have had it, whose tasks still exist. The agent of a client context is resolved already:
    /// endpoints call [`Hub::named`].
    pub(super) fn name_by_id(&self, operation: &mut Operation) {
        if let Operation::People(PeopleRequest::NewKey(terms) | PeopleRequest::Invite(terms)) =
            operation
        {
            for scope in &mut terms.scopes {
                *scope = self.scope_by_id(scope);
            }
        }
        if let Some(named) = agent_in(operation)
            && let Some(id) = self.called(named)
        {
            *named = id;
        }
    }

    /// A scope such as `send:AGENT` with the agent's id in place of an alias: messages name agents
    /// by their ids when the scope is checked.
    fn scope_by_id(&self, scope: &str) -> String {
        let id = scope.split_once(':').and_then(|(word, agent)| {
            let (agent, rest) = agent.split_at(agent.find(['/', ':']).unwrap_or(agent.len()));
            // Tasks of the person, and no agent, also where an agent has this alias.
            if agent == "own" {
                return None;
            }
            let id = self.called(&AgentId::parse(agent).ok()?)?;
            Some(format!("{word}:{id}{rest}"))
        });
        id.unwrap_or_else(|| scope.to_owned())
    }
}

/// Agent that an operation names.
fn agent_in(operation: &mut Operation) -> Option<&mut AgentId> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others name no agent")]
    match operation {
        Operation::SendMessage(send) | Operation::StreamMessage(send) => send.agent.as_mut(),
        Operation::ListTasks(query) => query.agent.as_mut(),
        Operation::PageTasks(query) => query.agent.as_mut(),
        Operation::Search(query) => query.agent.as_mut(),
        Operation::GetCard { agent } => agent.as_mut(),
        Operation::HandOver(request) => Some(&mut request.agent),
        Operation::GetAgent { id }
        | Operation::CheckAgent { id }
        | Operation::DeregisterAgent { id }
        | Operation::ReloadAgent { id, .. } => Some(id),
        _ => None,
    }
}
