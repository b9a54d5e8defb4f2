//! The agents of this hub: which there are, where they came from, and how they are.

mod agent;
mod builtin;
mod folder;
mod programs;
mod values;

pub use agent::Agent;
use agent::Seat;
pub use folder::PluginFolder;

use crate::{config::Config, process::Supervisor, storage::Storage};
use a2a_hub_protocol::{
    id::AgentId,
    operation::{AgentHealth, RejectedPlugin},
};
use a2a_hub_sandbox::{Engine, LoadError, Plugin};
use futures::{StreamExt as _, stream};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How often agents are asked how they are.
const HEALTH_INTERVAL: Duration = Duration::from_secs(30);

/// How many are asked at once: each may start a program.
const HEALTH_AT_ONCE: usize = 4;

/// The agents there are. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    data_dir: PathBuf,
    engine: Engine,
    supervisor: Supervisor,
    storage: Arc<dyn Storage>,
    known: Mutex<BTreeMap<AgentId, Arc<Agent>>>,
    rejected: Mutex<BTreeMap<String, String>>,
}

/// Why an agent could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The component is not an agent.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is not the component that the operator pinned.
    #[error(
        "its SHA-256 digest is {found}, and `agents.{agent}.sha256` in the configuration pins {pinned}"
    )]
    Digest {
        /// The agent.
        agent: AgentId,
        /// The digest it has.
        found: String,
        /// The digest it must have.
        pinned: String,
    },
    /// Another agent has its name.
    #[error("an agent called `{0}` is there already, from {1}; give the file another name")]
    Taken(AgentId, String),
}

impl Agents {
    /// No agents yet.
    pub fn new(
        config: Config,
        data_dir: PathBuf,
        engine: Engine,
        supervisor: Supervisor,
        storage: Arc<dyn Storage>,
    ) -> Self {
        let (known, rejected) = (Mutex::default(), Mutex::default());
        let shared = Shared { config, data_dir, engine, supervisor, storage, known, rejected };
        Self { shared: Arc::new(shared) }
    }

    /// Loads the agents that travel inside the hub.
    pub async fn join_built_in(&self) {
        for (name, bytes) in builtin::COMPONENTS {
            let id = match AgentId::parse(*name) {
                Ok(id) if self.shared.config.agent(&id).enabled => id,
                Ok(_) | Err(_) => continue,
            };
            if let Err(why) = self.join(&id, bytes.to_vec(), agent::Source::BuiltIn).await {
                tracing::error!(agent = %id, %why, "a built-in agent cannot be loaded");
            }
        }
    }

    /// Reads a component, checks it, and lets it join under `id`; an agent of that name from the same place gives way.
    async fn join(
        &self,
        id: &AgentId,
        bytes: Vec<u8>,
        source: agent::Source,
    ) -> Result<(), JoinError> {
        if let Some(there) = self.find(id)
            && there.source != source
        {
            return Err(JoinError::Taken(id.clone(), there.source.to_string()));
        }
        let engine = self.shared.engine.clone();
        let compiled = tokio::task::spawn_blocking(move || Plugin::compile(&engine, &bytes)).await;
        let plugin = compiled.map_err(|why| LoadError::Invalid(why.to_string()))??;
        let config = self.shared.config.agent(id);
        if let Some(pinned) = &config.sha256
            && !pinned.eq_ignore_ascii_case(plugin.digest())
        {
            let (agent, pinned) = (id.clone(), pinned.clone());
            return Err(JoinError::Digest { agent, found: plugin.digest().to_owned(), pinned });
        }
        let card = plugin.card(id).await?;
        let seat = Seat {
            config,
            workspaces: self.shared.config.workspaces.clone(),
            home: self.shared.data_dir.join("homes").join(id.as_str()),
            supervisor: self.shared.supervisor.clone(),
            storage: Arc::clone(&self.shared.storage),
        };
        let agent = Arc::new(Agent::new(id.clone(), plugin, card, source, seat));
        tracing::info!(agent = %id, source = %agent.source, "agent joined");
        self.known().insert(id.clone(), agent);
        Ok(())
    }

    fn leave(&self, id: &AgentId) {
        self.known().remove(id);
        tracing::info!(agent = %id, "agent left");
    }

    /// The agent called `id`.
    pub fn find(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.known().get(id).cloned()
    }

    /// All agents, by name.
    pub fn all(&self) -> Vec<Arc<Agent>> {
        self.known().values().cloned().collect()
    }

    /// Files of the plugins folder that are not agents, and why.
    pub fn rejected(&self) -> Vec<RejectedPlugin> {
        let rejected = self.shared.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        let told = rejected.iter().map(|(file, error)| (file.clone(), error.clone()));
        told.map(|(file, error)| RejectedPlugin { file, error }).collect()
    }

    /// Asks those agents how they are that were not asked for `age`.
    pub async fn check(&self, age: Duration) -> Vec<(Arc<Agent>, AgentHealth)> {
        let stale = self.all().into_iter().map(|agent| async move {
            let health = agent.check(age).await;
            (agent, health)
        });
        // Each answer in the agents' own order.
        stream::iter(stale).buffered(HEALTH_AT_ONCE).collect().await
    }

    /// Asks all agents how they are, again and again, until `stop`.
    pub fn watch_health(&self, tasks: &TaskTracker, stop: CancellationToken) {
        let agents = self.clone();
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    _ = agents.check(HEALTH_INTERVAL / 2) => {}
                    () = stop.cancelled() => return,
                }
                tokio::select! {
                    () = tokio::time::sleep(HEALTH_INTERVAL) => {}
                    () = stop.cancelled() => return,
                }
            }
        });
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentId, Arc<Agent>>> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_rejected(&self, file: &str, why: Option<String>) {
        let mut rejected = self.shared.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => rejected.insert(file.to_owned(), why),
            None => rejected.remove(file),
        };
    }
}
