//! Assembles a hub from its parts, for the program and for programs that embed a hub.

use crate::{
    builtin::COMPONENTS,
    endpoints::BoundEndpoints,
    hub::{Hub, Parts},
    lineage::ProgramTrees,
    local::{self, CallRules, Local},
    minder::{is_helper, is_ready_to_help, system},
    opened_storage::{HubLocation, OpenedStorage},
    otlp::Exporter,
    start_checks::{require_authentication, warnings},
    worktrees::worktrees_in,
};
use a2a_hub_agents::native::Native;
use a2a_hub_agents::{Agents, AgentsSetup, BuiltIn, HubAccess, Joined, PluginFolder, sweep_files};
use a2a_hub_automation::{Schedules, Topics, Triggers, WallClock};
use a2a_hub_clock as clock;
use a2a_hub_config::{
    Config, Retention, SecretStore,
    token::{find_secret, open_secret},
};
use a2a_hub_core::{scheduling::shares::Holder, task::prices::Prices};
use a2a_hub_engine::{
    HubSigner, LiveConfig, ReadConfig, SetLevel,
    conversations::{contexts::Contexts, repeats::Repeats},
    devices::Devices,
    notify::{Notifiers, NotifyChannels},
    observability::{hub_events::Events, span_export::Spans, storage_monitor::monitor},
    people::People,
    push::Pushes,
    routing::Routes,
    tasks::{Directory, Recovered, Tasks},
    webhooks::Sender,
};
use a2a_hub_process::{Supervisor, limits, run_blocking, unused_memory};
use a2a_hub_protocol::{
    card::AgentCard,
    id::{AgentId, InvalidAgentId},
};
use a2a_hub_sandbox::{
    CacheKey, CacheSettings, CarriedCode, CompileLimits, Engine, EngineSettings,
};
use a2a_hub_server::Dispatcher;
use a2a_hub_store::Storage;
use a2a_hub_tls::ServerTls;
use anyhow::{Context as _, bail};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Time between the request to stop a program and its end by force. A CLI saves its session
/// meanwhile.
const PROGRAM_GRACE: Duration = Duration::from_millis(1_000);

/// File in the data directory with the key that authenticates compiled components. It is outside
/// the cache, so write access to the cache does not give access to the key.
const CACHE_KEY: &str = "cache-key";

/// Name of the directory of compiled components.
const CACHE: &str = "cache";

const USE_CACHE_KEY: &str = "use the key of compiled components";

/// Size in MiB at which a hub in memory starts to forget its oldest finished tasks. Checked every
/// hour.
const MAX_IN_MEMORY_MB: u64 = 256;

/// Path of the running program, valid also after an update has replaced its file.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Builder of a [`Hub`].
pub struct Builder {
    location: HubLocation,
    config: Config,
    built_in: BuiltIn,
    native: Vec<(AgentId, AgentCard, Native)>,
    agents: Vec<Register>,
    rules: CallRules,
    minder: Option<PathBuf>,
    command: Option<PathBuf>,
    owns_process: bool,
    reload: Option<(ReadConfig, SetLevel)>,
    clock: WallClock,
}

/// Creates an agent from a value of this program, once the rules say whether it may call others.
type Register = Box<dyn FnOnce(&CallRules) -> (AgentId, AgentCard, Native) + Send>;

impl Hub {
    /// Creates the builder of a hub that stores its data in this directory. The directory belongs
    /// to the hub alone; if it does not exist, it is created for this user only.
    pub fn builder(data_dir: impl Into<PathBuf>) -> Builder {
        Builder::new(HubLocation::Directory(data_dir.into()))
    }

    /// Creates the builder of a hub that stores its tasks in memory only. It has no built-in
    /// components, because each would be compiled at every start; [`Builder::built_in`] adds them.
    /// Repeated messages are not deduplicated, unless the configuration says otherwise.
    pub fn in_memory() -> Builder {
        let mut builder = Builder::new(HubLocation::Memory);
        builder.built_in = BuiltIn::default();
        let config = builder.config.clone();
        builder.config(config)
    }
}

impl Builder {
    fn new(location: HubLocation) -> Self {
        let mut config = Config::default();
        config.http.enabled = false;
        config.socket.enabled = false;
        Self {
            location,
            config,
            built_in: COMPONENTS,
            native: Vec::new(),
            agents: Vec::new(),
            rules: CallRules::new(),
            minder: None,
            command: None,
            owns_process: false,
            reload: None,
            clock: Arc::new(jiff::Timestamp::now),
        }
    }

    /// Sets the configuration, which also says whether HTTP and the unix socket are served. Without
    /// one, neither is served, and all other settings have their defaults. The defaults of
    /// [`Hub::in_memory`] apply to a hub in memory, unless the configuration says otherwise.
    #[must_use]
    pub fn config(self, mut config: Config) -> Self {
        if matches!(self.location, HubLocation::Memory) {
            config.idempotency_window_ms.get_or_insert(0);
            if config.retention.max_mb == Retention::default().max_mb {
                config.retention.max_mb = MAX_IN_MEMORY_MB;
            }
        }
        Self { config, ..self }
    }

    /// Replaces the built-in components of `a2a-hub`. They get every permission in their manifests,
    /// unless the configuration says otherwise.
    #[must_use]
    pub fn built_in(self, built_in: BuiltIn) -> Self {
        Self { built_in, ..self }
    }

    /// Adds an agent that is a function of this program.
    #[must_use]
    pub fn agent(mut self, id: AgentId, card: AgentCard, agent: Native) -> Self {
        self.native.push((id, card, agent));
        self
    }

    /// Adds an agent that is a value of this program, under this name. It can call only the agents
    /// that [`Builder::allow`] permits.
    ///
    /// # Errors
    ///
    /// If the name is not a valid agent id.
    pub fn register(
        mut self,
        name: &str,
        agent: impl local::Agent,
    ) -> Result<Self, InvalidAgentId> {
        let id = local::agent_id(name)?;
        let register = move |rules: &CallRules| {
            let card = agent.card();
            let calls_others = rules.iter().any(|(caller, _)| *caller == id);
            (id, card, local::native(agent, calls_others))
        };
        self.agents.push(Box::new(register));
        Ok(self)
    }

    /// Lets one agent call another one, in addition to the caller's grants in the configuration.
    ///
    /// # Errors
    ///
    /// If a name is not a valid agent id.
    pub fn allow(mut self, caller: &str, callee: &str) -> Result<Self, InvalidAgentId> {
        self.rules.insert((local::agent_id(caller)?, local::agent_id(callee)?));
        Ok(self)
    }

    /// Sets the program that minds the programs of agents and compiles components. The program must
    /// call [`minded`](crate::minded) first of all, as `a2a-hub` does. The default is the running
    /// program. If that has not called [`minded`](crate::minded), components are compiled on
    /// threads of this process, and a compilation that never ends cannot be stopped.
    #[must_use]
    pub fn minder(self, program: impl Into<PathBuf>) -> Self {
        Self { minder: Some(program.into()), ..self }
    }

    /// Gives the command `a2a-hub` to the programs of agents that may call others. They find this
    /// program on their `PATH`, and may start it as an MCP server. The configuration must serve the
    /// unix socket.
    #[must_use]
    pub fn command(self, program: impl Into<PathBuf>) -> Self {
        Self { command: Some(program.into()), ..self }
    }

    /// Makes the hub the owner of this process, which must start programs only through the hub. A
    /// process below it that is in no tree of an agent's program then counts as an orphan of one,
    /// and never as the operator. The process becomes a subreaper (`prctl(2)`). Not for a process
    /// with children from other sources: without this option, those count as the operator's, and so
    /// do orphans of a program that killed its minder.
    #[must_use]
    pub fn owning_the_process(self) -> Self {
        Self { owns_process: true, ..self }
    }

    /// Lets an operator reload the configuration: `read` reads it, and `set_level` applies its log
    /// level.
    #[must_use]
    pub fn reloadable(self, read: ReadConfig, set_level: SetLevel) -> Self {
        Self { reload: Some((read, set_level)), ..self }
    }

    /// Replaces the clock of the schedules, for tests: they follow the time of day.
    #[must_use]
    pub fn schedule_clock(self, clock: WallClock) -> Self {
        Self { clock, ..self }
    }

    /// Starts the hub: recovers the tasks of an earlier hub in the same directory, and serves the
    /// configured endpoints. For the whole process, it raises the soft limit on open files to the
    /// hard one, and turns the signal for a file that is too large into an error.
    ///
    /// # Errors
    ///
    /// If another hub works in the directory, an address is taken, or a file there cannot be read
    /// or written. Also in a process that was started to mind a program or to compile a component,
    /// and did not call [`minded`](crate::minded): its hub would start the next one.
    pub async fn start(self) -> anyhow::Result<Hub> {
        if is_helper() {
            bail!(
                "start a hub in the process that minds a program, or compiles a component: call `a2a_hub::minded()` first of all in `main`"
            );
        }
        let Self { location, config, built_in, native, agents, rules, .. } = self;
        let (minder, command, owns_process, reload, clock) =
            (self.minder, self.command, self.owns_process, self.reload, self.clock);
        limits::survive_large_files().context("handle signals")?;
        let open_files =
            limits::raise_open_files().context("start under the limits of this system")?;
        // While it waits for the lock, this runtime drops what is left of an earlier hub.
        let opened = run_blocking(move || location.open()).await.context("open the hub's store")?;
        let OpenedStorage { dir, temporary, storage, losses } = opened?;
        let config = with_rules(Config { data_dir: Some(dir.clone()), ..config }, &rules);
        sweep(&dir);
        // Bound first, so that a taken port is found before any other work.
        let mut bound_endpoints = BoundEndpoints::bind(&config, &dir)?;

        let compiler = compiler(minder.as_ref());
        let minder = minder.unwrap_or_else(|| THIS_PROGRAM.into());
        let supervisor = Supervisor::new(minder, dir.clone(), PROGRAM_GRACE);
        let supervisor = supervisor.with_system(system()).with_open_files(open_files);
        let supervisor = match owns_process {
            true => supervisor.adopting_orphans().context("become a subreaper")?,
            false => supervisor,
        };
        let lineage = Arc::new(ProgramTrees(supervisor.clone()));
        let (spans, exporter) = Exporter::open(&config.telemetry.otlp)?;
        let hub_access =
            command.and_then(|command| HubAccess::new(&command, bound_endpoints.socket(&config)?));
        let noticed = losses.clone();
        let ground = Foundation {
            storage,
            built_in,
            supervisor,
            compiler,
            spans,
            losses: noticed,
            hub_access,
        };
        let mut parts = Parts::build(&config, &dir, ground)?;
        let registered = agents.into_iter().map(|register| register(&rules));
        let native = native.into_iter().chain(registered).collect();
        let starting = parts.agents.clone();
        let progress = Arc::new(move || starting.start_progress());
        let facts = EndpointFacts {
            devices: bound_endpoints.devices(&dir)?,
            url: bound_endpoints.url(&config),
            tls: bound_endpoints.tls(),
        };
        let begin = parts.begin(&config, native, losses, facts, reload, clock);
        let (engine, live) = bound_endpoints.hold_while(&config, progress, Box::pin(begin)).await?;
        let (stop, running) = (CancellationToken::new(), TaskTracker::new());
        parts.spawn_background_tasks(exporter, &running, &stop);
        let automations = engine.clone().keep_automations();
        running.spawn(stop.clone().run_until_cancelled_owned(automations));
        let notifiers = engine.clone().keep_notifiers();
        running.spawn(stop.clone().run_until_cancelled_owned(notifiers));
        let http = bound_endpoints.address();
        let (streams, timeout) = (config.max_streams(), config.clients.timeout());
        if let Some(tls) = bound_endpoints.tls() {
            let (live, initial) = (live.clone(), config.tls.denied.clone());
            let denied = move || match &live {
                Some(live) => live.denied_certificates(),
                None => initial.clone(),
            };
            running.spawn(tls.follow(denied, stop.clone()));
        }
        let endpoints = bound_endpoints.public_endpoints(&config);
        let dispatcher = Dispatcher::new(engine.clone(), endpoints, streams, timeout);
        let dispatcher = dispatcher.with_generations(config.extensions.generation);
        let dispatcher = dispatcher.with_open_files(limits::open_files().unwrap_or(u64::MAX));
        bound_endpoints.serve(&dispatcher.with_lineage(lineage), &running, &stop);
        let local = Local::new(engine.clone(), rules, running.clone(), stop.clone());
        Ok(Hub { parts, engine, live, http, stop, running, local, _dir: temporary })
    }
}

/// Adds the calls that the program permits its own agents to the configuration.
fn with_rules(mut config: Config, rules: &CallRules) -> Config {
    for (caller, callee) in rules {
        let grant = &mut config.agents.entry(caller.clone()).or_default().grant;
        grant.get_or_insert_default().delegate.allow(callee.to_string());
    }
    config
}

/// Chooses the program that compiles components in worker processes: the minder, or this program if
/// it has called `minded`.
fn compiler(minder: Option<&PathBuf>) -> Option<PathBuf> {
    let compiler = minder.cloned().or_else(|| is_ready_to_help().then(|| THIS_PROGRAM.into()));
    if compiler.is_none() {
        tracing::info!(
            "compiling components in this process, without a time limit; call `a2a_hub::minded()` first in `main` to compile them in worker processes"
        );
    }
    compiler
}

/// Removes processes and files that an earlier run left behind.
fn sweep(dir: &Path) {
    let ended = Supervisor::sweep_leftovers(system(), dir);
    if ended > 0 {
        tracing::warn!(processes = ended, "ended leftover programs of an earlier run");
    }
    if let Err(why) = sweep_files(dir) {
        tracing::warn!(%why, "cannot remove leftover agent files of an earlier run");
    }
}

/// Parts of a hub that exist before the others are built.
struct Foundation {
    storage: Arc<dyn Storage>,
    built_in: BuiltIn,
    supervisor: Supervisor,
    compiler: Option<PathBuf>,
    spans: Spans,
    /// Losses that the store found, each as a sentence.
    losses: Vec<String>,
    hub_access: Option<HubAccess>,
}

/// Facts about the endpoints that the rest of the hub needs.
struct EndpointFacts {
    devices: Devices,
    /// URL of the hub for invitations.
    url: Option<String>,
    tls: Option<ServerTls>,
}

impl Parts {
    /// Builds the parts, without any agent.
    fn build(config: &Config, dir: &Path, ground: Foundation) -> anyhow::Result<Self> {
        let Foundation { storage, built_in, supervisor, compiler, spans, losses, hub_access } =
            ground;
        let secret = open_secret(dir.join(CACHE_KEY)).context(USE_CACHE_KEY)?;
        let key = CacheKey::new(secret.as_bytes());
        let engine = Engine::new(&EngineSettings {
            carried: CarriedCode::of_this_program().map(Arc::new),
            cache: Some(CacheSettings { dir: dir.join(CACHE), key }),
            compiler,
            compile: CompileLimits {
                cpu: config.plugins.compile_cpu(),
                memory: config.plugins.compile_memory(),
            },
            max_instances: config.max_tasks.unwrap_or(EngineSettings::default().max_instances),
            address_space: limits::address_space(),
        })?;
        let warnings = warnings(&losses, &engine, config.max_tasks);
        let events = Events::default();
        let agents = Agents::new(AgentsSetup {
            config: config.clone(),
            built_in,
            data_dir: dir.to_owned(),
            engine,
            supervisor: supervisor.clone(),
            storage: storage.clone(),
            events: Arc::new(events.clone()),
            hub_access,
        });
        let routes = Routes::new(agents.clone(), &events);
        let directory = Directory::new(routes.clone());
        let tasks = Tasks::new(storage.clone(), events.clone(), directory);
        let tasks = tasks.with_spans(spans.clone()).with_worktrees(worktrees_in(dir, &supervisor));
        tasks.follow_worktrees(&config.worktrees);
        tasks.set_prices(Prices(config.prices.clone()));
        let contexts = Contexts::new(storage.clone(), config);
        let signer = config.push.sign.then(|| HubSigner::open(dir)).transpose()?.map(Arc::new);
        let sender = Sender::new(config.push.rules(), signer.clone());
        let sender = Arc::new(sender.challenging(config.push.challenge));
        let (breaker, give_up) = (config.breaker.settings(), config.push.give_up());
        let receivers = Arc::clone(&sender);
        let pushes = Pushes::new(storage.clone(), tasks.clone(), receivers, breaker, give_up);
        let plugins = PluginFolder::open(dir.join("plugins"), agents.clone())
            .with_context(|| format!("make the plugins folder in {}", dir.display()))?;
        Ok(Self {
            supervisor,
            events,
            agents,
            plugins,
            routes,
            contexts,
            tasks,
            spans,
            pushes,
            signer,
            sender,
            storage,
            warnings,
        })
    }

    /// Begins the hub in the order that its types keep: all agents join, then the tasks of an
    /// earlier run are recovered.
    async fn begin(
        &mut self,
        config: &Config,
        native: Vec<(AgentId, AgentCard, Native)>,
        losses: Vec<String>,
        EndpointFacts { devices, url, tls }: EndpointFacts,
        reload: Option<(ReadConfig, SetLevel)>,
        clock: WallClock,
    ) -> anyhow::Result<(a2a_hub_engine::Hub, Option<Arc<LiveConfig>>)> {
        let joined = self.join(native).await?;
        self.warn_of_walls().await;
        let people = People::open(self.storage.clone(), url).await;
        let people = people.with_certificates(config.tls.rules()?);
        require_authentication(config, &people)?;
        self.warnings.extend(people.failure().map(|why| {
            format!("the people of this hub cannot be read, so none of their keys counts: {why}")
        }));
        let starting = self.assemble(joined).with_repeats(self.requests(config).await?);
        let starting = starting.with_warnings(self.warnings.clone()).with_losses(losses);
        let starting = starting.with_tenants(config.tenants.keys().cloned().collect());
        let starting = starting.with_copies(self.storage.clone()).with_devices(devices);
        let starting = starting.with_people(people).with_tls(tls);
        let schedules = Schedules::new(self.storage.clone(), &config.schedule, clock.clone());
        let notifier_clock = clock.clone();
        let topics = Topics::new(self.storage.clone(), config.topics.rules(), clock.clone());
        let triggers = Triggers::new(self.storage.clone(), Arc::new(topics), config, clock)?;
        let starting = starting.with_schedules(schedules).with_triggers(triggers);
        let starting = starting.with_notifiers(self.notifiers(config, notifier_clock));
        let (live, starting) = match reload {
            Some((read, set_level)) => {
                let live = Arc::new(LiveConfig::new(config.clone(), read, set_level));
                (Some(live.clone()), starting.with_config(live))
            }
            None => (None, starting.with_default_agent(config.default_agent.clone())),
        };
        let taken_up = starting.recover().await;
        let (engine, recovered) = taken_up.context("take up the tasks of an earlier run")?;
        self.go_on(recovered).await?;
        Ok((engine, live))
    }

    /// Creates the notifiers of the configuration.
    fn notifiers(&self, config: &Config, clock: WallClock) -> Notifiers {
        let page =
            config.public_url.as_ref().map(|url| format!("{}/ui/", url.trim_end_matches('/')));
        let data_dir = config.data_dir.clone().unwrap_or_default();
        let channels = NotifyChannels {
            sender: Arc::clone(&self.sender),
            supervisor: self.supervisor.clone(),
            secrets: SecretStore::new(&data_dir),
            page,
        };
        let (storage, tasks) = (self.storage.clone(), self.tasks.clone());
        Notifiers::new(storage, tasks, channels, config.push.give_up(), clock, &config.notify)
    }

    /// Lets all agents join.
    async fn join(&self, native: Vec<(AgentId, AgentCard, Native)>) -> anyhow::Result<Joined> {
        let native = native.into_iter().map(|(id, card, agent)| (id, card, Arc::new(agent) as _));
        let awaited = self.tasks.awaited_agents().await;
        let awaited = awaited.context("find the tasks of an earlier run")?;
        Ok(self.plugins.clone().join_all(native.collect(), &awaited).await?)
    }

    /// Starts the background work of a hub, which runs until `stop`.
    fn spawn_background_tasks(
        &self,
        exporter: Option<Exporter>,
        running: &TaskTracker,
        stop: &CancellationToken,
    ) {
        // Ends when no more spans are made.
        if let Some(exporter) = exporter {
            running.spawn(exporter.run());
        }
        self.plugins.clone().watch(running, stop.clone());
        self.contexts.watch(running, stop.clone());
        self.tasks.watch_worktrees(running, stop.clone());
        running.spawn(stop.clone().run_until_cancelled_owned(unused_memory::give_back()));
        let looking = monitor(self.storage.clone(), self.events.clone());
        running.spawn(stop.clone().run_until_cancelled_owned(looking));
    }

    /// Warns of each agent whose programs this machine cannot confine, and therefore does not run.
    async fn warn_of_walls(&mut self) {
        for agent in self.agents.all() {
            if let Some(why) = agent.shortfall().await {
                tracing::warn!("{why}");
                self.warnings.push(why);
            }
        }
    }

    /// Resumes the work of an earlier run in addition to its tasks, and logs the recovered tasks.
    async fn go_on(&self, recovered: Recovered) -> anyhow::Result<()> {
        let agents = self.agents.clone();
        let swept = run_blocking(move || agents.sweep_replays()).await;
        swept.context("look through copies of components")?;
        if recovered != Recovered::default() {
            let Recovered { started, waiting, replayed, followed, failed, unreadable } = recovered;
            tracing::warn!(
                started,
                waiting,
                replayed,
                followed,
                failed,
                unreadable,
                "recovered unfinished tasks of an earlier run"
            );
        }
        let configs = self.pushes.resume().await;
        let configs = configs.context("go on with what an earlier run did not send")?;
        if configs > 0 {
            tracing::info!(configs, "push resumed");
        }
        Ok(())
    }

    /// Restores the requests within the idempotency window from an earlier run.
    async fn requests(&self, config: &Config) -> anyhow::Result<Repeats> {
        let repeats = Repeats::within(config.idempotency_window());
        if let Some(since) = repeats.since() {
            let requests = self.tasks.requests(&since).await;
            for request in requests.context("find the requests of an earlier run")? {
                // Older hubs did not store who asked.
                let holder =
                    request.by.map_or(Holder::Operator, |by| Holder::of_identity(&by.identity()));
                repeats.remember(
                    holder,
                    &request.fingerprint,
                    request.task,
                    clock::age(&request.created),
                );
            }
        }
        Ok(repeats)
    }
}

/// Returns the cache of compiled components of the hub with this data directory, if it has one.
pub fn compile_cache(data_dir: &Path) -> Option<CacheSettings> {
    let secret = find_secret(data_dir.join(CACHE_KEY)).ok()??;
    let key = CacheKey::new(secret.as_bytes());
    Some(CacheSettings { dir: data_dir.join(CACHE), key })
}

/// Checks that the key of compiled components is usable, if it exists.
pub(crate) fn check_cache_key(dir: &Path) -> anyhow::Result<()> {
    find_secret(dir.join(CACHE_KEY)).context(USE_CACHE_KEY).map(drop)
}
