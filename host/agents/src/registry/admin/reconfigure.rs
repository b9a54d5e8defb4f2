//! Application of a new configuration at run time: agents with changed settings are registered anew
//! with their present component, disabled ones leave, and enabled ones join. Running tasks keep the
//! agent that they began with.

use crate::{
    agent::{Agent, AgentSource},
    registry::{
        Agents, pinned,
        plugins::folder_watcher::{PluginFolder, PolledFile},
    },
};
use a2a_hub_config::{Config, Followed};
use a2a_hub_protocol::{id::AgentId, operation::LeftOut};
use std::sync::Arc;

/// Sections of the configuration that affect every agent.
const EVERYBODY: &[&str] = &["workspaces", "health", "breaker"];

impl PluginFolder {
    /// Applies a new configuration to all agents; returns those that could not stay or join.
    pub async fn follow(&self, followed: &Followed) -> Vec<LeftOut> {
        let agents = &self.agents;
        // Locked, so that no agent joins under the old configuration meanwhile.
        let mut polled = self.lock_files().await;
        agents.set_config(followed.config.clone());
        agents.take_over_all().await;
        let (concerned, all) = (followed.named("agents"), followed.concerns(EVERYBODY));
        let elsewhere = followed.named("remote");
        let mut omitted = Vec::new();
        for agent in agents.all() {
            let is_concerned = all || concerned.contains(&agent.id);
            let command = &followed.config.agent(&agent.id).acp;
            if agent.source == AgentSource::Acp && agent.config.acp != *command {
                // Another program is another agent, which joins below.
                agents.deregister(&agent.id);
            } else if is_concerned && !elsewhere.contains(&agent.id) {
                omitted.extend(agents.reregister(&agent).err());
            }
        }
        if followed.concerns(&["plugins"]) {
            // The signature policy may have changed.
            polled.values_mut().for_each(PolledFile::read_again);
        }
        let files: Vec<_> = polled.keys().cloned().collect();
        let mut to_take = Vec::new();
        for id in concerned.iter().filter(|id| agents.find(id).is_none()) {
            if !followed.config.agent(id).enabled {
                continue;
            }
            let joined = if let Some(joining) = agents.join_one_built_in(id) {
                joining.await.map_err(|why| why.to_string())
            } else if let Some(file) =
                files.iter().find(|file| file.strip_suffix(".wasm") == Some(id.as_str()))
            {
                to_take.push((id.clone(), file.clone()));
                continue;
            } else {
                continue;
            };
            report_omitted(&mut omitted, id, joined);
        }
        drop(polled);
        // Loads may be slow, so they run without the lock.
        for (id, file) in to_take {
            let joined = self.load_file(&file).await.map(drop).map_err(|why| why.to_string());
            report_omitted(&mut omitted, &id, joined);
        }
        agents.rejoin_remote(&elsewhere).await;
        omitted
    }
}

/// Reports an agent that could not join, unless it is reported already.
fn report_omitted(omitted: &mut Vec<LeftOut>, id: &AgentId, joined: Result<(), String>) {
    if let Err(error) = joined
        && omitted.iter().all(|entry| entry.agent_id != *id)
    {
        omitted.push(LeftOut { agent_id: id.clone(), error });
    }
}

impl Agents {
    /// Applies the current configuration to an agent that was built under an earlier one.
    pub(in crate::registry) fn follow_late(&self, id: &AgentId) {
        if let Some(agent) = self.find(id)
            && let Err(LeftOut { error, .. }) = self.reregister(&agent)
        {
            tracing::warn!(agent = %id, why = error, "agent cannot join under the new configuration");
        }
    }

    fn set_config(&self, config: Config) {
        *self.shared.config.write() = Arc::new(config);
    }

    /// Registers an agent anew under the current settings; it leaves if these disable it or pin
    /// another component.
    fn reregister(&self, agent: &Agent) -> Result<(), LeftOut> {
        let Agent { id, runtime, source, .. } = agent;
        let config = self.shared.config().agent(id);
        if let Some(digest) = runtime.digest() {
            if !config.enabled {
                self.deregister(id);
                return Ok(());
            }
            if let Err(why) = pinned(id, digest, config.sha256.as_deref()) {
                let error = why.to_string();
                self.deregister(id);
                if let AgentSource::File(file) = source {
                    self.set_rejected(file, Some(error.clone()));
                }
                return Err(LeftOut { agent_id: id.clone(), error });
            }
        }
        self.register(self.anew(agent));
        Ok(())
    }
}
