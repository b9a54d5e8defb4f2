//! Agents by whatever they are called: an alias is turned into its agent's id before anything else looks at it.

use super::Hub;
use crate::error::HubError;
use a2a_hub_agents::RegistryError;
use a2a_hub_core::nearest::nearest;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::Operation,
};
use serde_json::json;

impl Hub {
    /// The id of the agent that is called so, by its id or an alias; a group's name stays what it is.
    ///
    /// # Errors
    ///
    /// If nobody is called so; the nearest name is told.
    pub fn named(&self, name: &AgentId) -> Result<AgentId, A2aError> {
        self.called(name).ok_or_else(|| self.no_agent(name))
    }

    /// The same, none if nobody is called so. What an agent calls itself takes no name from a group.
    fn called(&self, name: &AgentId) -> Option<AgentId> {
        let group = self.routes.group(name).map(|_| name.clone());
        group.or_else(|| self.agents.called(name))
    }

    /// The agents that have a skill, by its exact id, as a message for that skill finds them.
    pub fn with_skill(&self, skill: &str) -> Vec<AgentId> {
        self.routes.with_skill(skill).iter().map(|agent| agent.id.clone()).collect()
    }

    /// Why an agent is not found: the one refusal for a name that nobody has, whatever asks for it.
    pub(super) fn no_agent(&self, name: &AgentId) -> A2aError {
        let there: Vec<_> = self.agents.all().iter().map(|agent| agent.id.to_string()).collect();
        let near = self.did_you_mean(name.as_str());
        let why = format!("no agent is called `{name}`; {near}there are {}", there.join(", "));
        A2aError::new(ErrorKind::AgentNotFound, why).with(json!({ "agents": there }))
    }

    /// What is said of a name that nobody has, if another is near: `did you mean ...? `.
    pub fn did_you_mean(&self, name: &str) -> String {
        let (all, aliases) = (self.agents.all(), self.agents.aliases());
        let names = all.iter().map(|agent| agent.id.as_str());
        let groups = self.routes.groups();
        let groups = groups.iter().map(|group| group.name.as_str());
        let names = names.chain(aliases.all().map(AgentId::as_str)).chain(groups);
        let near = nearest(name, names.filter(|known| *known != name));
        near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
    }

    /// The same refusal, but for an agent that is not there, which is told as it is everywhere.
    pub(super) fn told_of_unknown(&self, why: RegistryError) -> HubError {
        match why {
            RegistryError::Unknown(name) => self.no_agent(&name).into(),
            why @ (RegistryError::Disabled(_)
            | RegistryError::Refused { .. }
            | RegistryError::Kept { .. }
            | RegistryError::Elsewhere { .. }
            | RegistryError::NotElsewhere(_)
            | RegistryError::Folder(_)) => why.into(),
        }
    }

    /// Puts the id of an agent in place of an alias in an operation. A name that nobody has stays: it may be that of an agent that left,
    /// whose tasks are still there. The agent of a visit is named by its id: doors ask [`Hub::named`].
    pub(super) fn name_by_id(&self, operation: &mut Operation) {
        if let Some(named) = agent_in(operation)
            && let Some(id) = self.called(named)
        {
            *named = id;
        }
    }
}

/// The agent that an operation names.
fn agent_in(operation: &mut Operation) -> Option<&mut AgentId> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others name no agent")]
    match operation {
        Operation::SendMessage(send) | Operation::StreamMessage(send) => send.agent.as_mut(),
        Operation::ListTasks(query) => query.agent.as_mut(),
        Operation::PageTasks(query) => query.agent.as_mut(),
        Operation::GetCard { agent } => agent.as_mut(),
        Operation::GetAgent { id }
        | Operation::CheckAgent { id }
        | Operation::DeregisterAgent { id }
        | Operation::ReloadAgent { id, .. } => Some(id),
        _ => None,
    }
}
