//! List of plug-ins for the operator, and the application of changed grants: by polling within a
//! second, or at once on request.

use super::{folder_watcher::PluginFolder, manifest_summary::requested_capabilities};
use crate::{
    agent::{Agent, AgentSource},
    registry::Agents,
};
use a2a_hub_core::{
    grant::{Ask, Grant},
    plugin::installation::{Installation, InstallationId, Installations},
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::AgentId,
    operation::{InstallationInfo, PluginChange, PluginInfo, PluginsRefreshed, RejectedPlugin},
};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

impl PluginFolder {
    /// Plug-ins with their requests, grants and held-back components: one entry for each file in
    /// the folder and each recorded grant.
    pub async fn plugins(&self) -> Vec<PluginInfo> {
        let polled = self.lock_files().await;
        let of_file = |name: &String| AgentId::parse(name.strip_suffix(".wasm")?).ok();
        let mut ids: BTreeSet<_> = polled.keys().filter_map(of_file).collect();
        drop(polled);
        let grants = self.agents.shared.ledger.grants();
        ids.extend(grants.plugins.keys().cloned());
        let rejected = self.agents.rejected();
        ids.iter().map(|id| self.agents.plugin(id, &grants, &rejected)).collect()
    }

    /// Applies changed grants and files now. When it returns, each file has joined or is rejected
    /// with a reason.
    pub async fn refresh(&self) -> PluginsRefreshed {
        let mut changed = self.follow_grants().await;
        let before = self.standings().await;
        self.load_now().await;
        for (id, now) in self.standings().await {
            let is_reported = changed.iter().any(|change| change.agent_id == id);
            if !is_reported && !before.contains(&(id.clone(), now.clone())) {
                changed.push(PluginChange { agent_id: id, now });
            }
        }
        PluginsRefreshed { changed, trouble: self.agents.shared.ledger.read_error() }
    }

    /// Status line of each plug-in.
    async fn standings(&self) -> Vec<(AgentId, String)> {
        let status = |plugin: PluginInfo| (plugin.agent_id.clone(), status_line(&plugin));
        self.plugins().await.into_iter().map(status).collect()
    }

    /// Applies the file of grants if it has changed: a plug-in with a wider grant or another
    /// component joins anew, and revocations reach running tasks. If another caller is applying it,
    /// this one waits: its caller reports the grants as in force.
    pub(in crate::registry) async fn follow_grants(&self) -> Vec<PluginChange> {
        let _only_once = self.following().await;
        let shared = Arc::clone(&self.agents.shared);
        let before = run_blocking(move || shared.ledger.refresh()).await;
        let Ok(Some(before)) = before else { return Vec::new() };
        let after = self.agents.shared.ledger.grants();
        let mut concerned = differing(&before, &after);
        // Plug-ins that await approval may have received it.
        let waiting = self.waiting().await;
        concerned.extend(waiting);
        for id in &concerned {
            self.agents.withdraw(id, &before, &after);
            let record = after.plugins.get(id);
            self.read_again(id, record.map(|record| record.sha256.as_str())).await;
            if before.plugins.get(id) != after.plugins.get(id) {
                tracing::info!(agent = %id, "plug-in grant changed");
                let agent_id = id.clone();
                self.agents.shared.events.publish(HubEventKind::PluginGrantChanged { agent_id });
            }
        }
        let shared = Arc::clone(&self.agents.shared);
        if let Err(why) = run_blocking(move || shared.sweep_components()).await {
            tracing::warn!(%why, "cannot sweep copies of components");
        }
        let rejected = self.agents.rejected();
        let now = |id: &AgentId| status_line(&self.agents.plugin(id, &after, &rejected));
        concerned.iter().map(|id| PluginChange { agent_id: id.clone(), now: now(id) }).collect()
    }
}

/// Ids whose records differ.
fn differing(before: &Installations, after: &Installations) -> BTreeSet<AgentId> {
    let all = before.plugins.keys().chain(after.plugins.keys());
    all.filter(|id| before.plugins.get(*id) != after.plugins.get(*id)).cloned().collect()
}

impl Agents {
    /// Revokes capabilities from all agents of this id, including those that run tasks.
    fn withdraw(&self, id: &AgentId, before: &Installations, after: &Installations) {
        let Some(Installation { id: installation, sha256, .. }) = before.plugins.get(id) else {
            return;
        };
        let record = after.plugins.get(id).filter(|it| it.id == *installation);
        // A file removed together with its record revokes nothing from the tasks that it began.
        let is_there = self.find(id).is_some();
        if record.is_none() && !is_there {
            return;
        }
        let nothing = Grant::default();
        let grant = record.map_or(&nothing, |record| &record.grant);
        self.shared.seats.restrict(id, installation, Some(sha256), grant);
    }

    fn plugin(
        &self,
        id: &AgentId,
        grants: &Installations,
        rejected: &[RejectedPlugin],
    ) -> PluginInfo {
        let agent = self.find(id).filter(|it| matches!(it.source, AgentSource::File(_)));
        let nothing = Ask::default();
        let ask = agent.as_ref().map_or(&nothing, |agent| agent.runtime.ask());
        let file = format!("{id}.wasm");
        let error = rejected.iter().find(|it| it.file == file).map(|it| it.error.clone());
        let line =
            |line: &Option<a2a_hub_core::text::one_line::OneLine>| line.clone().map(String::from);
        PluginInfo {
            agent_id: id.clone(),
            file,
            joined: agent.is_some(),
            sha256: agent.as_ref().and_then(|it| it.runtime.digest()).map(str::to_owned),
            signed_by: agent.as_ref().and_then(|it| it.signed_by.clone()),
            tier: agent.as_ref().and_then(|it| it.confinement_tier()),
            version: line(&ask.version),
            publisher: line(&ask.publisher),
            description: line(&ask.description),
            asks: requested_capabilities(ask),
            not_granted: agent.as_deref().map(Agent::not_granted).unwrap_or_default(),
            installation: grants.plugins.get(id).map(to_info),
            held_back: self.pending_approval(id),
            compiling: self.load_of(id),
            error,
        }
    }

    /// Deletes the stored data of an ended installation.
    pub(in crate::registry) async fn purge(&self, installation: InstallationId) {
        let storage = Arc::clone(&self.shared.storage);
        if let Err(why) = storage.forget_context_memories(&installation).await {
            tracing::warn!(%installation, %why, "cannot delete context memory of a removed plug-in");
        }
        let keys = storage.keys(&installation, "").await.unwrap_or_default();
        for key in keys {
            if let Err(why) = storage.forget(&installation, &key).await {
                tracing::warn!(%installation, %why, "cannot delete stored values of a removed plug-in");
                break;
            }
        }
        let home = self.shared.data_dir.join("homes").join(installation.as_str());
        let removed = run_blocking(move || match std::fs::remove_dir_all(home) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(why),
            Ok(()) | Err(_) => Ok(()),
        });
        if let Err(why) = removed.await.map_err(std::io::Error::other).flatten() {
            tracing::warn!(%installation, %why, "cannot delete the home directory of a removed plug-in");
        }
    }
}

/// Status of a plug-in in one line.
fn status_line(plugin: &PluginInfo) -> String {
    match plugin {
        PluginInfo { compiling: Some(_), joined: true, version, .. } => {
            let serving = version.as_deref().unwrap_or("the component before it");
            format!("being compiled; {serving} serves until then")
        }
        PluginInfo { compiling: Some(_), .. } => "being compiled; it joins then".to_owned(),
        PluginInfo { held_back: Some(pending), .. } if pending.serves => {
            format!("the granted component serves on, and {} is held back", pending.sha256)
        }
        PluginInfo { error: Some(why), .. } => format!("not loaded: {why}"),
        PluginInfo { joined: false, .. } => "not there".to_owned(),
        PluginInfo { installation: None, asks, .. } if asks.is_empty() => {
            "joined, and asks for nothing".to_owned()
        }
        PluginInfo { not_granted, .. } if not_granted.is_empty() => {
            "joined, and holds all that it asks for".to_owned()
        }
        PluginInfo { not_granted, .. } => {
            let lacks: Vec<_> = not_granted.iter().map(|lack| lack.what.as_str()).collect();
            format!("joined; it may not {}", lacks.join(", "))
        }
    }
}

fn to_info(record: &Installation) -> InstallationInfo {
    InstallationInfo {
        id: record.id.to_string(),
        sha256: record.sha256.clone(),
        source: record.source.clone(),
        granted_at: record.granted_at.clone(),
        key: record.key.clone(),
        dev: record.dev,
        from_configuration: record.configured.is_some(),
        changed_by: record.changed_by.clone(),
        grant: serde_json::to_value(&record.grant).unwrap_or(Value::Null),
    }
}
