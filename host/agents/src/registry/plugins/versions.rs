//! Earlier versions of agents with unfinished runs. A run that is replayed after a restart uses the
//! component that began it, which is stored until then, under the grant of that time limited to the
//! current one.

use crate::{
    agent::{Agent, AgentSource, AgentVersion, Terms},
    registry::{Agents, pinned},
};
use a2a_hub_core::{
    grant::{Grant, Resume},
    plugin::installation::InstallationId,
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::Plugin;
use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc};

/// Lookup of agents by id, and of their earlier versions.
#[async_trait::async_trait]
pub trait FindAgent: Send + Sync {
    /// The agent that has this id now.
    fn find(&self, id: &AgentId) -> Option<Arc<Agent>>;

    /// True if each agent that was loading at the start of the hub has joined or failed. Until then
    /// a missing agent may still appear.
    fn is_settled(&self) -> bool {
        true
    }

    /// Waits until [`Self::is_settled`] holds.
    async fn settled(&self) {}

    /// An earlier version of an agent.
    ///
    /// # Errors
    ///
    /// The reason why the version is no longer available, as a sentence for people.
    async fn version(&self, id: &AgentId, version: &AgentVersion) -> Result<Arc<Agent>, String>;
}

#[async_trait::async_trait]
impl FindAgent for Agents {
    fn find(&self, id: &AgentId) -> Option<Arc<Agent>> {
        Self::find(self, id)
    }

    fn is_settled(&self) -> bool {
        self.shared.joining.is_settled()
    }

    async fn settled(&self) {
        self.shared.joining.settled().await;
    }

    async fn version(&self, id: &AgentId, version: &AgentVersion) -> Result<Arc<Agent>, String> {
        let AgentVersion { sha256, installation, grant } = version.clone();
        let (store, wanted) = (self.shared.replays.clone(), sha256.clone());
        let copy = run_blocking(move || store.read(&wanted)).await;
        let copy = copy.map_err(|why| why.to_string())?.map_err(|why| why.to_string())?;
        let missing = format!(
            "The component that this run began with, {sha256}, is not there any more, and another one cannot go on with it."
        );
        let copy = copy.ok_or(missing)?;
        let config = self.shared.config().agent(id);
        pinned(id, &sha256, config.sha256.as_deref()).map_err(|why| why.to_string())?;
        let plugin =
            Plugin::load(&self.shared.engine, copy).await.map_err(|why| why.to_string())?;
        let card = plugin.card(id).await.map_err(|why| why.to_string())?;
        let there = self.find(id).map(|there| there.source.clone());
        let source = there.unwrap_or_else(|| AgentSource::File(format!("{id}.wasm")));
        let now = self.granted_now(id, &source, &installation);
        let now = now.unwrap_or_else(|| self.terms_of(id, &source, plugin.ask(), None).grant);
        let deps = self.deps_of(id, Terms { installation: installation.clone(), grant });
        let agent = Arc::new(Agent::new(id.clone(), Arc::new(plugin), card, source, deps));
        let seats = &self.shared.seats;
        seats.add(id, &*agent.runtime, installation.clone(), agent.config.clone(), &agent.live);
        seats.restrict(id, &installation, None, &now);
        tracing::info!(agent = %id, sha256, "earlier version continues its runs");
        Ok(agent)
    }
}

impl Agents {
    /// The operator's current grant for an installation; none if the agent is not a plug-in.
    fn granted_now(
        &self,
        id: &AgentId,
        source: &AgentSource,
        installation: &InstallationId,
    ) -> Option<Grant> {
        if !matches!(source, AgentSource::File(_)) {
            return None;
        }
        let grants = self.shared.ledger.grants();
        let record = grants.plugins.get(id).filter(|record| record.id == *installation);
        Some(record.map(|record| record.grant.clone()).unwrap_or_default())
    }

    /// Stores a copy of a component whose runs are replayed. Without the copy, those runs fail once
    /// another component has replaced it.
    pub(in crate::registry) async fn keep_for_replays(
        &self,
        id: &AgentId,
        plugin: &Plugin,
        bytes: Bytes,
    ) {
        if plugin.ask().resume != Resume::Replay {
            return;
        }
        let store = self.shared.replays.clone();
        let done = run_blocking(move || store.store(&bytes)).await;
        if let Err(why) = done.map_err(std::io::Error::other).flatten() {
            tracing::warn!(agent = %id, %why, "cannot store a copy of the component: its runs fail if another version replaces it while the hub is down");
        }
    }

    /// Removes copies of components that are neither registered nor needed by an unfinished run.
    /// Blocks on the disk.
    pub fn sweep_replays(&self) {
        let used = self.shared.seats.digests();
        let used: BTreeSet<_> = used.iter().map(String::as_str).collect();
        if let Err(why) = self.shared.replays.retain(&used) {
            tracing::warn!(%why, "cannot remove unused copies of components");
        }
    }
}
