//! The agents under a new configuration, while the hub runs: those whose settings changed are seated anew with the component
//! they have, those that may not work any more leave, and those that may join now do. Running tasks keep the agent that they
//! began with.

use super::{Agent, Agents, PluginFolder, agent::Source, pinned};
use a2a_hub_config::{Config, Followed};
use a2a_hub_protocol::operation::LeftOut;
use std::sync::Arc;

/// Sections that every agent is set up by.
const EVERYBODY: &[&str] = &["workspaces", "health", "breaker"];

impl PluginFolder {
    /// Has all agents follow a new configuration, and tells which of them it leaves without a place.
    pub async fn follow(&self, followed: &Followed) -> Vec<LeftOut> {
        let agents = &self.agents;
        // Nobody joins meanwhile by the old one.
        let mut seen = self.seen().await;
        agents.set_config(followed.config.clone());
        let (concerned, all) = (followed.named("agents"), followed.concerns(EVERYBODY));
        let elsewhere = followed.named("remote");
        let mut left_out = Vec::new();
        for agent in agents.all() {
            let is_concerned = all || concerned.contains(&agent.id);
            if is_concerned && !elsewhere.contains(&agent.id) {
                left_out.extend(agents.seat_anew(&agent).err());
            }
        }
        let files: Vec<_> = seen.keys().cloned().collect();
        for id in concerned.iter().filter(|id| agents.find(id).is_none()) {
            if !followed.config.agent(id).enabled {
                continue;
            }
            let joined = if let Some(joining) = agents.join_one_built_in(id) {
                joining.await.map_err(|why| why.to_string())
            } else if let Some(file) =
                files.iter().find(|file| file.strip_suffix(".wasm") == Some(id.as_str()))
            {
                self.take(&mut seen, file).await.map(drop).map_err(|why| why.to_string())
            } else {
                continue;
            };
            // It may be told already that it had to leave.
            if let Err(error) = joined
                && left_out.iter().all(|told: &LeftOut| told.agent_id != *id)
            {
                left_out.push(LeftOut { agent_id: id.clone(), error });
            }
        }
        drop(seen);
        agents.rejoin_remote(&elsewhere).await;
        left_out
    }
}

impl Agents {
    fn set_config(&self, config: Config) {
        *self.shared.config.write() = Arc::new(config);
    }

    /// Gives an agent its place anew, under the settings as they are now; it leaves if they have none for it.
    fn seat_anew(&self, agent: &Agent) -> Result<(), LeftOut> {
        let Agent { id, runtime, card, source, .. } = agent;
        let config = self.shared.config().agent(id);
        if let Some(digest) = runtime.digest() {
            if !config.enabled {
                self.leave(id);
                return Ok(());
            }
            if let Err(why) = pinned(id, digest, config.sha256.as_deref()) {
                let error = why.to_string();
                self.leave(id);
                if let Source::File(file) = source {
                    self.set_rejected(file, Some(error.clone()));
                }
                return Err(LeftOut { agent_id: id.clone(), error });
            }
        }
        let (runtime, card, source) = (Arc::clone(runtime), card.clone(), source.clone());
        self.register(Agent::new(id.clone(), runtime, card, source, self.deps_of(id)));
        Ok(())
    }
}
