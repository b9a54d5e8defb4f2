//! The agents of a hub that starts, once they have joined: nothing else of the hub begins before.

use super::{Agents, JoinError, folder::PluginFolder};
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use a2a_hub_runtime::Runtime;
use std::{collections::BTreeSet, sync::Arc};

/// The agents and the plugins folder of a hub whose agents have joined. What takes long to load or to find is known to be on its way.
pub struct Joined {
    agents: Agents,
    plugins: PluginFolder,
}

impl Joined {
    /// The agents, and the folder of those that are plug-ins.
    pub fn into_parts(self) -> (Agents, PluginFolder) {
        (self.agents, self.plugins)
    }

    /// The agents.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }
}

impl PluginFolder {
    /// Has all agents join, in this order: those that are values of the program, those built in, those of the folder and those elsewhere.
    /// What takes long is waited for as long as a start may take, and longer for those that are `awaited`; then it joins by itself.
    ///
    /// # Errors
    ///
    /// If two agents of the program have one name.
    pub async fn join_all(
        self,
        native: Vec<(AgentId, AgentCard, Arc<dyn Runtime>)>,
        awaited: &BTreeSet<AgentId>,
    ) -> Result<Joined, JoinError> {
        let agents = self.agents.clone();
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
