//! Registry of this hub's agents: their sources, their registration and their health.

mod acp_agents;
mod admin;
mod builtin;
mod cards;
mod find;
mod finder;
mod flows;
mod groups;
mod joined;
mod joining;
mod names;
mod plugins;
mod remote;

pub use admin::{
    plugin_editor::{PluginEdit, PluginEditError, PluginEditor, plugin_file},
    register::RegistryError,
};
pub use builtin::BuiltIn;
pub use cards::{card_of, card_of_group, card_of_hub};
pub use joined::Joined;
pub use plugins::{
    component_store::{ComponentStore, StoredCopy},
    folder_watcher::PluginFolder,
    manifest_summary::{missing_capabilities, requested_capabilities},
    provenance::signature_path,
    versions::FindAgent,
};

use crate::{
    agent::{Agent, AgentDeps, AgentSource, HealthCheckPermits, Terms, acp},
    event_sink::EventSink,
    port::{
        files::Files,
        hub_access::HubAccess,
        live_grant::LiveVersions,
        logins::Logins,
        peer_directory::{Peer, PeerAccess},
        programs::IdlePrograms,
    },
};
use a2a_hub_client::Outbound;
use a2a_hub_config::{AgentConfig, Config, SecretStore};
use a2a_hub_core::{health::check_schedule, plugin::manifest::InvalidManifest};
use a2a_hub_process::{Supervisor, TreeOwner};
use a2a_hub_protocol::{
    card::AgentCard,
    hub::event::HubEventKind,
    id::AgentId,
    operation::{AgentHealth, AgentInfo, CompilingPlugin, HeldBack, HubStart, RejectedPlugin},
};
use a2a_hub_runtime::{RunCapacity, Runtime};
use a2a_hub_sandbox::{Engine, LoadError, Plugin};
use a2a_hub_store::Memories;
use bytes::Bytes;
use finder::Finder;
use futures::future;
use joining::Joining;
use parking_lot::{Mutex, MutexGuard, RwLock};
use plugins::{grants_ledger::Ledger, pending_approval_error::PendingApprovalError};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Memory for components that wait for the compiler, in KiB, independent of the number of files:
/// four of the largest, so that two slow ones leave capacity for others.
const MAX_UNLOADED: usize = 512 << 10;

/// Concurrent card requests to joining components: each may use a second of CPU time.
const INTRODUCED_AT_ONCE: usize = 2;

/// The registered agents. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    shared: Arc<RegistryInner>,
}

struct RegistryInner {
    /// Current configuration; it changes while the hub runs.
    config: RwLock<Arc<Config>>,
    built_in: BuiltIn,
    data_dir: PathBuf,
    engine: Engine,
    /// Connection to the hub for programs, if they may use it.
    hub_access: Option<HubAccess>,
    supervisor: Supervisor,
    storage: Arc<dyn Memories>,
    files: Files,
    events: Arc<dyn EventSink>,
    asking: Arc<HealthCheckPermits>,
    /// One permit for each component that reports its card.
    introducing: Semaphore,
    /// One permit for each KiB of a component that waits in memory.
    unloaded: Semaphore,
    /// Health-check loops of the agents.
    asks: TaskTracker,
    stop: CancellationToken,
    known: Mutex<BTreeMap<AgentId, Arc<Agent>>>,
    rejected: Mutex<BTreeMap<String, String>>,
    /// Components whose compilation takes long.
    compiling: Arc<Mutex<Vec<CompilingPlugin>>>,
    /// Files of the plugins folder that are being loaded.
    loading: Arc<Mutex<Vec<CompilingPlugin>>>,
    /// The operator's grants for plug-ins.
    ledger: Ledger,
    /// Copies of components with a grant.
    granted_components: ComponentStore,
    /// Idle programs of all agents.
    idle_programs: IdlePrograms,
    /// Copies of components whose runs are replayed after a restart.
    replays: ComponentStore,
    /// Components that await approval while the granted ones run on.
    pending_approvals: Mutex<BTreeMap<AgentId, HeldBack>>,
    /// Agents that may be running tasks, for revocation.
    seats: LiveVersions,
    /// HTTP client for remote agents.
    outbound: Outbound,
    /// Agents that are still loading at the start of the hub.
    joining: Joining,
    /// Search over the agents' cards.
    finder: Finder,
}

impl RegistryInner {
    /// The current configuration.
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read())
    }

    /// Settings of an agent. A bundled one keeps its name, and drives no other program.
    fn settings_of(&self, id: &AgentId) -> AgentConfig {
        let mut settings = self.config().agent(id);
        if self.built_in.reserves(id) {
            settings.acp.clear();
        }
        settings
    }
}

/// Reason why an agent could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The component is not an agent.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The component is not the one that the operator pinned.
    #[error(
        "its SHA-256 digest is {found}, and `agents.{agent}.sha256` in the configuration pins {pinned}"
    )]
    Digest {
        /// Agent that the component was to become.
        agent: AgentId,
        /// Digest of the component.
        found: String,
        /// Pinned digest.
        pinned: String,
    },
    /// The component's manifest names another id.
    #[error(transparent)]
    Manifest(InvalidManifest),
    /// The operator uses the id as an alias of another agent.
    #[error(
        "`{0}` is an alias of the agent `{1}` by `agents.{1}.aliases` in the configuration; take another name, or remove the alias"
    )]
    IsAnAlias(AgentId, AgentId),
    /// Another agent has the id.
    #[error("an agent called `{0}` exists already, from {1}; choose another name")]
    Taken(AgentId, String),
}

/// Dependencies of the registry.
pub struct AgentsSetup {
    /// Configuration of the hub.
    pub config: Config,
    /// Components bundled with the hub.
    pub built_in: BuiltIn,
    /// Data directory of the hub.
    pub data_dir: PathBuf,
    /// Compiles and runs components.
    pub engine: Engine,
    /// Runs programs of agents.
    pub supervisor: Supervisor,
    /// Stores the agents' memory.
    pub storage: Arc<dyn Memories>,
    /// Receives events about agents.
    pub events: Arc<dyn EventSink>,
    /// Connection to the hub for programs of agents that may call others; none if they cannot use
    /// it.
    pub hub_access: Option<HubAccess>,
}

impl Agents {
    /// Creates an empty registry.
    pub fn new(setup: AgentsSetup) -> Self {
        let AgentsSetup { config, built_in, data_dir, engine, supervisor, storage, .. } = setup;
        let files = Files::new(&data_dir, supervisor.clone());
        let (ledger, granted_components) =
            (Ledger::open(&data_dir), ComponentStore::for_grants(&data_dir));
        let replays = ComponentStore::of_replays(&data_dir);
        let shared = RegistryInner {
            config: RwLock::new(Arc::new(config)),
            built_in,
            data_dir,
            engine,
            hub_access: setup.hub_access,
            supervisor,
            storage,
            files,
            events: setup.events,
            asking: Arc::default(),
            introducing: Semaphore::new(INTRODUCED_AT_ONCE),
            unloaded: Semaphore::new(MAX_UNLOADED),
            asks: TaskTracker::new(),
            stop: CancellationToken::new(),
            known: Mutex::default(),
            rejected: Mutex::default(),
            compiling: Arc::default(),
            loading: Arc::default(),
            ledger,
            granted_components,
            replays,
            idle_programs: IdlePrograms::default(),
            pending_approvals: Mutex::default(),
            seats: LiveVersions::default(),
            outbound: Outbound::unguarded(),
            joining: Joining::default(),
            finder: Finder::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Registers the bundled agents.
    async fn join_built_in(&self) {
        let config = self.shared.config();
        let driven = config.agents.iter().filter(|(_, config)| !config.acp.is_empty());
        let ids = self.shared.built_in.ids().chain(driven.map(|(id, _)| id.clone()));
        let ids: BTreeSet<_> = ids.filter(|id| config.agent(id).enabled).collect();
        let joining = ids.iter().filter_map(|id| {
            let joining = self.join_one_built_in(id)?;
            let on_its_way = self.shared.joining.one();
            Some(async move {
                let _on_its_way = on_its_way;
                if let Err(why) = joining.await {
                    tracing::error!(agent = %id, %why, "a built-in agent cannot be loaded");
                }
            })
        });
        future::join_all(joining).await;
    }

    /// Registers an agent whose code is part of the program, such as a
    /// [`Native`](crate::native::Native) one.
    fn join_native(
        &self,
        id: AgentId,
        card: AgentCard,
        runtime: Arc<dyn Runtime>,
    ) -> Result<(), JoinError> {
        if let Some(there) = self.find(&id) {
            return Err(JoinError::Taken(id, there.source.to_string()));
        }
        self.require_no_alias(&id)?;
        let terms = self.terms_of(&id, &AgentSource::Native, runtime.ask(), None);
        let deps = self.deps_of(&id, terms);
        self.register(Agent::new(id, runtime, card, AgentSource::Native, deps));
        Ok(())
    }

    /// Registers the agent `id`, if it is bundled, or if the configuration makes one of the bundled
    /// component for programs of the Agent Client Protocol.
    fn join_one_built_in(
        &self,
        id: &AgentId,
    ) -> Option<impl Future<Output = Result<(), JoinError>>> {
        let (built_in, config) = (self.shared.built_in, self.shared.settings_of(id));
        let (bytes, source) = match config.acp_program(id) {
            Some(_) => (built_in.acp()?, AgentSource::Acp),
            None => (built_in.component(id)?, AgentSource::BuiltIn),
        };
        Some(async move {
            let bytes = Bytes::from_static(bytes);
            let (plugin, card) = self.prepare(id, bytes, &source).await?;
            let (plugin, card) = match config.acp_program(id) {
                Some(program) => {
                    let card = self.introduced(id, &program, card).await;
                    let ask = acp::ask(plugin.ask(), &program);
                    (plugin.with_ask(ask), card)
                }
                None => (plugin, card),
            };
            let terms = self.terms_of(id, &source, plugin.ask(), None);
            let deps = self.deps_of(id, terms);
            self.register(Agent::new(id.clone(), Arc::new(plugin), card, source, deps));
            Ok(())
        })
    }

    /// Loads a component and checks that it may join as `id`. An agent from the same source is
    /// replaced; the ids of bundled agents stay reserved while these are not registered.
    async fn prepare(
        &self,
        id: &AgentId,
        bytes: Bytes,
        source: &AgentSource,
    ) -> Result<(Plugin, AgentCard), JoinError> {
        let there = self.find(id).map(|there| there.source.clone());
        let reserved = || {
            // Registered by the flows that need it.
            if self.shared.built_in.is_script(id) {
                AgentSource::Script
            } else {
                AgentSource::BuiltIn
            }
        };
        let there = there.or_else(|| self.shared.built_in.reserves(id).then(reserved));
        if let Some(there) = there.filter(|there| there != source) {
            return Err(JoinError::Taken(id.clone(), there.to_string()));
        }
        self.require_no_alias(id)?;
        let plugin = Plugin::load(&self.shared.engine, bytes.clone()).await?;
        let config = self.shared.config().agent(id);
        pinned(id, plugin.digest(), config.sha256.as_deref())?;
        // The semaphore is never closed.
        let _turn = self.shared.introducing.acquire().await;
        let card = plugin.card(id).await?;
        self.keep_for_replays(id, &plugin, bytes).await;
        Ok((plugin, card))
    }

    /// Owner of a process tree now; none if the tree is gone.
    pub fn owner_of_tree(&self, tree: &str) -> Option<TreeOwner> {
        self.shared.supervisor.of_tree(tree)
    }

    /// Progress of the agents that join at the start of the hub.
    pub fn start_progress(&self) -> HubStart {
        let (agents, loading) = self.shared.joining.counts();
        let compiling = self.shared.loading.lock();
        let plugin = |it: &CompilingPlugin| AgentId::parse(it.file.strip_suffix(".wasm")?).ok();
        let compiling = compiling.iter().filter_map(plugin).collect();
        HubStart { agents, ready: agents.saturating_sub(loading), compiling }
    }

    /// Capacity for concurrent guests.
    pub fn run_capacity(&self) -> RunCapacity {
        self.shared.engine.run_capacity()
    }

    /// Dependencies of the agent `id` under these terms.
    fn deps_of(&self, id: &AgentId, terms: Terms) -> AgentDeps {
        let (shared, config) = (&self.shared, self.shared.config());
        AgentDeps {
            config: acp::furnished(id, shared.settings_of(id)),
            workspaces: config.workspaces.clone(),
            home: shared.data_dir.join("homes").join(terms.installation.as_str()),
            terms,
            data_dir: shared.data_dir.clone(),
            logins: self.logins_of(id),
            hub_access: shared.hub_access.clone(),
            supervisor: shared.supervisor.clone(),
            idle_programs: shared.idle_programs.clone(),
            storage: Arc::clone(&shared.storage),
            files: shared.files.clone(),
            http_secrets: SecretStore::new(&shared.data_dir),
            peers: self.peers(),
            breaker: config.breaker.settings(),
            events: Arc::clone(&shared.events),
            asking: Arc::clone(&shared.asking),
            shutdown: shared.stop.child_token(),
        }
    }

    /// Logins at the vendor of one agent, as the configuration has them at each use.
    fn logins_of(&self, id: &AgentId) -> Logins {
        let shared = Arc::downgrade(&self.shared);
        Logins::new(id.clone(), Arc::new(move || Some(shared.upgrade()?.config())))
    }

    /// Directory of all agents for one agent; weak, because the registry owns the agents that hold
    /// it.
    fn peers(&self) -> PeerAccess {
        let shared = Arc::downgrade(&self.shared);
        let find = self.find_peers();
        let list = Arc::new(move || {
            let Some(shared) = shared.upgrade() else { return Vec::new() };
            let agents = Agents { shared };
            let aliases = agents.aliases();
            let peer = |agent: Arc<Agent>| Peer {
                aliases: aliases.for_agent(&agent.id).cloned().collect(),
                id: agent.id.clone(),
                health: agent.health().status,
                is_vouched_for: agent.is_vouched_for(),
                is_listed: agent.is_listed_for_agents(),
                card: agent.card.published(Some(&agent.id)),
            };
            // Flows call the agent of their programs without looking for it.
            let others = agents.all().into_iter().filter(|agent| !agent.is_script());
            others.map(peer).collect()
        });
        PeerAccess { list, find }
    }

    /// Registers an agent and starts its health checks.
    fn register(&self, agent: Agent) {
        let agent = Arc::new(agent);
        let Agent { id, runtime, terms, config, live, .. } = &*agent;
        // Earlier versions of the installation are narrowed to the same grant.
        self.shared.seats.restrict(id, &terms.installation, runtime.digest(), &terms.grant);
        let (config, installation) = (config.clone(), terms.installation.clone());
        self.shared.seats.add(id, &**runtime, installation, config, live);
        let (agent_id, source) = (agent.id.clone(), agent.source.to_string());
        tracing::info!(agent = %agent_id, %source, "agent joined");
        let before = self.known().insert(agent_id.clone(), Arc::clone(&agent));
        self.shared.asks.spawn(ask(self.clone(), agent));
        for omitted in self.aliases().rejected.iter().filter(|it| it.agents.contains(&agent_id)) {
            tracing::warn!(agent = %agent_id, why = %omitted, "alias ignored");
        }
        self.shared.events.publish(match before {
            Some(before) => {
                before.shutdown.cancel();
                HubEventKind::AgentReplaced { agent_id, source }
            }
            None => HubEventKind::AgentJoined { agent_id, source },
        });
    }

    fn deregister(&self, id: &AgentId) {
        if let Some(agent) = self.known().remove(id) {
            agent.shutdown.cancel();
            tracing::info!(agent = %id, "agent left");
            self.shared.events.publish(HubEventKind::AgentLeft { agent_id: id.clone() });
        }
    }

    /// The agent with this id.
    pub fn find(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.known().get(id).cloned()
    }

    /// All agents, ordered by id.
    pub fn all(&self) -> Vec<Arc<Agent>> {
        self.known().values().cloned().collect()
    }

    /// Agents in lists for people, ordered by id.
    pub fn listed(&self) -> Vec<Arc<Agent>> {
        self.known().values().filter(|agent| !agent.is_unlisted()).cloned().collect()
    }

    /// Files of the plugins folder that are not agents, with the reasons.
    pub fn rejected(&self) -> Vec<RejectedPlugin> {
        let rejected = self.shared.rejected.lock();
        let errors = rejected.iter().map(|(file, error)| (file.clone(), error.clone()));
        let mut errors: BTreeMap<_, _> = errors.collect();
        for (agent, pending) in &*self.shared.pending_approvals.lock() {
            let (agent, pending) = (agent.clone(), pending.clone());
            errors.insert(
                format!("{agent}.wasm"),
                PendingApprovalError { agent, held: pending }.to_string(),
            );
        }
        errors.into_iter().map(|(file, error)| RejectedPlugin { file, error }).collect()
    }

    /// Reason why the grants of plug-ins cannot be read, if any.
    pub fn grants_error(&self) -> Option<String> {
        self.shared.ledger.read_error()
    }

    /// Public description of an agent.
    pub fn info(&self, agent: &Agent, health: Option<AgentHealth>) -> AgentInfo {
        agent.info(health, self.pending_approval(&agent.id))
    }

    /// Checks all agents on request; results newer than `since` are reused.
    pub async fn check(&self, since: Instant) -> Vec<(Arc<Agent>, AgentHealth)> {
        let checks = self.all().into_iter().map(|agent| async move {
            let health = agent.check(since, true).await;
            (agent, health)
        });
        future::join_all(checks).await
    }

    /// Stops health checks, and waits until the files of ended runs are removed.
    pub async fn shutdown(&self) {
        self.shared.stop.cancel();
        self.shared.asks.close();
        self.shared.asks.wait().await;
        self.shared.idle_programs.shutdown().await;
        self.shared.files.shutdown().await;
    }

    /// Waits until the files of programs that outlived their runs are removed.
    pub async fn wait_for_files(&self) {
        self.shared.files.shutdown().await;
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<AgentId, Arc<Agent>>> {
        self.shared.known.lock()
    }

    fn set_rejected(&self, file: &str, why: Option<String>) {
        let mut rejected = self.shared.rejected.lock();
        match why {
            Some(error) => {
                let file = file.to_owned();
                rejected.insert(file.clone(), error.clone());
                self.shared.events.publish(HubEventKind::PluginRejected { file, error });
            }
            None => drop(rejected.remove(file)),
        }
    }
}

/// Refuses a component that does not have the digest that the operator pins.
fn pinned(id: &AgentId, found: &str, digest: Option<&str>) -> Result<(), JoinError> {
    match digest {
        Some(pinned) if !pinned.eq_ignore_ascii_case(found) => Err(JoinError::Digest {
            agent: id.clone(),
            found: found.to_owned(),
            pinned: pinned.to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Checks an agent's health when it joins and then periodically until it leaves.
async fn ask(agents: Agents, agent: Arc<Agent>) {
    let interval = agents.shared.config().health.interval();
    loop {
        let pause = check_schedule::with_jitter(interval, getrandom::u64().unwrap_or_default());
        let turn = async {
            agent.check(Instant::now(), false).await;
            if agent.has_changed()
                && let Some(Err(why)) = agents.reload_remote(&agent.id, None).await
            {
                tracing::warn!(agent = %agent.id, %why, "cannot use the remote agent's new card");
            }
            agents.introduce(&agent).await;
            sleep(pause).await;
        };
        tokio::select! {
            () = turn => {}
            () = agent.shutdown.cancelled() => return,
        }
    }
}
