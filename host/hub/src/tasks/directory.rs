//! The agents that tasks are given to: found by name, by group and by skill.

use crate::routes::Routes;
use a2a_hub_agents::{Agent, AgentVersion, FindAgent};
use a2a_hub_protocol::id::AgentId;
use std::sync::Arc;

/// Knows the agents. Tasks are made with it, so that none begins before its agent can be found.
#[derive(Clone)]
pub struct Directory {
    agents: Arc<dyn FindAgent>,
    /// Knows groups and skills; none in unit tests, which name agents.
    routes: Option<Routes>,
}

impl Directory {
    /// The agents that these routes lead to.
    pub fn new(routes: Routes) -> Self {
        Self { agents: Arc::new(routes.agents().clone()), routes: Some(routes) }
    }

    /// Agents that are called by their names only.
    #[cfg(test)]
    pub(super) fn by_name(agents: Arc<dyn FindAgent>) -> Self {
        Self { agents, routes: None }
    }

    /// The groups and skills of agents.
    pub(super) fn routes(&self) -> Option<&Routes> {
        self.routes.as_ref()
    }

    /// The agent of that name.
    pub(super) fn agent(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.agents.find(id)
    }

    /// The agent of that name as it was.
    pub(super) async fn version(
        &self,
        id: &AgentId,
        version: &AgentVersion,
    ) -> Result<Arc<Agent>, String> {
        self.agents.version(id, version).await
    }

    /// Whether each agent that was on its way when the hub started has joined, or cannot.
    pub(super) fn is_settled(&self) -> bool {
        self.agents.is_settled()
    }

    /// Returns once that is so.
    pub(super) async fn settled(&self) {
        self.agents.settled().await;
    }
}
