//! Directory of agents, by name, group and skill.

use crate::routing::Routes;
use a2a_hub_agents::{Agent, AgentVersion, FindAgent};
use a2a_hub_protocol::id::AgentId;
use std::sync::Arc;

/// Finds the agents of tasks. Required to create [`Tasks`](crate::tasks::Tasks), so that no task
/// begins before its agent can be found.
#[derive(Clone)]
pub struct Directory {
    agents: Arc<dyn FindAgent>,
    /// Groups and skills; none in unit tests, which name agents.
    routes: Option<Routes>,
}

impl Directory {
    /// Creates a directory from the routes and the agents behind them.
    pub fn new(routes: Routes) -> Self {
        Self { agents: Arc::new(routes.agents().clone()), routes: Some(routes) }
    }

    /// Creates a directory that finds agents by name only.
    #[cfg(test)]
    pub(crate) fn by_name(agents: Arc<dyn FindAgent>) -> Self {
        Self { agents, routes: None }
    }

    /// Groups and skills of agents.
    pub(in crate::tasks) fn routes(&self) -> Option<&Routes> {
        self.routes.as_ref()
    }

    /// Agent of that name.
    pub(in crate::tasks) fn agent(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.agents.find(id)
    }

    /// An earlier version of the agent of that name.
    pub(in crate::tasks) async fn version(
        &self,
        id: &AgentId,
        version: &AgentVersion,
    ) -> Result<Arc<Agent>, String> {
        self.agents.version(id, version).await
    }

    /// True if every agent that was loading at start has joined or failed.
    pub(in crate::tasks) fn is_settled(&self) -> bool {
        self.agents.is_settled()
    }

    /// Waits until [`Directory::is_settled`] is true.
    pub(in crate::tasks) async fn settled(&self) {
        self.agents.settled().await;
    }
}
