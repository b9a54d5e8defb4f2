//! Agents of a starting hub after registration; nothing else of the hub starts before.

use super::{Agents, JoinError, plugins::folder_watcher::PluginFolder};
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use a2a_hub_runtime::Runtime;
use std::{collections::BTreeSet, sync::Arc};

/// Registered agents and the plugins folder. Agents that load slowly may still be on their way.
pub struct Joined {
    agents: Agents,
    plugins: PluginFolder,
}

impl Joined {
    /// The agents, and the plugins folder.
    pub fn into_parts(self) -> (Agents, PluginFolder) {
        (self.agents, self.plugins)
    }

    /// The agents.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }
}

impl PluginFolder {
    /// Registers all agents in this order: native, built-in, plug-ins, remote. Slow ones are
    /// awaited for a limited time, the `awaited` ones longer, and are registered later.
    ///
    /// # Errors
    ///
    /// If two native agents have one id.
    pub async fn join_all(
        self,
        native: Vec<(AgentId, AgentCard, Arc<dyn Runtime>)>,
        awaited: &BTreeSet<AgentId>,
    ) -> Result<Joined, JoinError> {
        let agents = self.agents.clone();
        // Nothing is served meanwhile, and whoever started the hub waits.
        let _hurry = agents.shared.engine.hurry();
        for (id, card, runtime) in native {
            agents.join_native(id, card, runtime)?;
        }
        agents.join_built_in().await;
        self.load(awaited).await;
        agents.join_remote().await;
        agents.shared.joining.started();
        Ok(Joined { agents, plugins: self })
    }
}
