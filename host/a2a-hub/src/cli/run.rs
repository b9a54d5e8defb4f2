//! The hub itself: put together here, run until it is told to stop, and taken apart in order.

use super::signals::{self, Hangup, Signals, Told};
use crate::builtin::COMPONENTS;
use a2a_hub_client::Outbound;
use a2a_hub_config::Config;
use a2a_hub_core::{access::Principal, span::Span};
use a2a_hub_hub::{
    Hub, LiveConfig, ReadConfig, SetLevel,
    agents::{Agents, PluginFolder, sweep_files},
    clock,
    contexts::Contexts,
    events::Events,
    push::{Pushes, Sender, WebhookSigner},
    repeats::Repeats,
    tasks::{Recovered, Tasks},
    token::Token,
    upkeep::look_after,
};
use a2a_hub_process::{Supervisor, limits};
use a2a_hub_protocol::{id::TaskId, operation::Operation};
use a2a_hub_sandbox::{Engine, EngineSettings};
use a2a_hub_server::{Dispatcher, Http, PublicEndpoints, Unix};
use a2a_hub_store::sqlite::SqliteStorage;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a program may take to end after it was asked to; a CLI writes its session down meanwhile.
const PROGRAM_GRACE: Duration = Duration::from_millis(1_000);

/// How long the hub waits at its end for clients, programs and tasks that it cut off.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// The same once it was told again to stop: programs are killed then, and nobody waits for clients; what is left to do is to
/// write down what was cut off, for which an agent that does not heed cancel needs half a second.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The file in the data directory that says where a running hub is.
pub(super) const RUN_FILE: &str = "run.json";

/// The file in the data directory that says what the last hub cut off when it stopped.
pub(super) const STOPPED_FILE: &str = "stopped.json";

/// How a hub came to be: for whoever starts it again.
pub(super) struct Invocation {
    /// The arguments after the program's name; none if they are not text.
    pub(super) arguments: Option<Vec<String>>,
    /// Where it was started.
    pub(super) directory: PathBuf,
    /// Whether it was put into the background.
    pub(super) detached: bool,
}

/// Runs the hub until it is told to stop.
pub(super) async fn run(
    config: Config,
    read: ReadConfig,
    set_level: SetLevel,
    invocation: Invocation,
) -> anyhow::Result<()> {
    limits::survive_large_files().context("handle signals")?;
    let hangup = Hangup::new().context("handle signals")?;
    let program_files =
        limits::raise_open_files().context("start under the limits of this system")?;
    let dir = config.data_dir()?.to_owned();
    let storage = Arc::new(SqliteStorage::open(&dir).context("open the hub's store")?);
    sweep(&dir);
    // Bound early: a port that is taken is found before anything else is done.
    let unix = config.socket.enabled.then(|| Unix::bind(&config.socket.path)).transpose()?;
    let http = bind_http(&config).await?;

    let parts = Parts::build(&config, &dir, storage, program_files).await?;
    parts.go_on().await?;
    let (stop, running) = (CancellationToken::new(), TaskTracker::new());
    parts.plugins.clone().watch(&running, stop.clone());
    parts.contexts.watch(&running, stop.clone());
    let looking = look_after(parts.storage.clone(), parts.events.clone());
    running.spawn(stop.clone().run_until_cancelled_owned(looking));
    let repeats = parts.requests(&config).await?;
    let live = Arc::new(LiveConfig::new(config.clone(), read, set_level));
    let hub = parts.hub().with_config(live.clone()).with_repeats(repeats);
    let hub = hub.with_warnings(parts.warnings.clone());
    let at = http.as_ref().map(Http::address);
    let (streams, patience) = (config.max_streams(), config.clients.timeout());
    let desk = Dispatcher::new(hub.clone(), whereabouts(&config, at), streams, patience);
    if let Some(http) = http {
        let token = Token::open(&dir)?;
        running.spawn(http.serve(desk.clone(), token, stop.clone()));
    }
    if let Some(unix) = unix {
        running.spawn(unix.serve(desk, stop.clone()));
    }
    let mut signals = Signals::new(hangup)?;
    let announced = Announced::new(&dir, &config, at, &invocation, &parts.warnings);
    let _announced = announced.context("say where the hub is")?;
    let http = at.map(tracing::field::display);
    tracing::info!(socket = %config.socket.path.display(), http, "the hub is up");

    while signals.next().await == Told::Reload {
        let hub = hub.clone();
        // How it went is in the log.
        running.spawn(async move {
            drop(hub.handle(&Principal::Operator, Operation::ReloadConfig).await);
        });
    }
    hub.close();
    let drain = live.now().stop.drain();
    let patience = tracing::field::display(Span(drain));
    tracing::info!(patience, "the hub is going down; a second signal ends tasks at once");
    let is_urgent = tokio::select! {
        () = drained(&parts.tasks, drain) => false,
        () = signals.stop() => true,
    };
    stop.cancel();
    running.close();
    let cut_off = CancellationToken::new();
    let down = async {
        parts.cut_off(&dir).await;
        cut_off.cancel();
        parts.take_down().await;
        running.wait().await;
    };
    tokio::select! {
        () = down => {}
        () = too_long(&mut signals, is_urgent, &parts.supervisor, &cut_off) => {
            tracing::warn!("something did not end in time and was cut off");
        }
    }
    Ok(())
}

/// Waits until no task is at work any more, or has had its time.
async fn drained(tasks: &Tasks, drain: Duration) {
    match timeout(drain, tasks.idle()).await {
        Ok(Ok(())) | Err(_) => {}
        // Then nothing that they do is stored either.
        Ok(Err(why)) => {
            tracing::error!(%why, "cannot see which tasks are at work; they are ended at once");
        }
    }
}

/// Waits until the hub has had the time that its end may take. If it is told again to stop, it only waits until what was
/// `cut_off` is written down, and for nothing if once more.
async fn too_long(
    signals: &mut Signals,
    is_urgent: bool,
    programs: &Supervisor,
    cut_off: &CancellationToken,
) {
    if !is_urgent && timeout(STOP_DEADLINE, signals.stop()).await.is_err() {
        return;
    }
    programs.hurry();
    tokio::select! {
        () = cut_off.cancelled() => {}
        () = sleep(AT_ONCE) => {}
        () = signals.stop() => signals::end_at_once(),
    }
}

/// What an earlier run of the hub left in its data directory, and of its programs.
fn sweep(dir: &Path) {
    let left = Supervisor::sweep_leftovers(dir);
    if left > 0 {
        tracing::warn!(processes = left, "ended programs that an earlier run left behind");
    }
    if let Err(why) = sweep_files(dir) {
        tracing::warn!(%why, "cannot remove the files that agents of an earlier run left");
    }
}

/// What a hub is made of.
struct Parts {
    supervisor: Supervisor,
    events: Events,
    agents: Agents,
    plugins: PluginFolder,
    contexts: Contexts,
    tasks: Tasks,
    pushes: Pushes,
    storage: Arc<SqliteStorage>,
    /// What whoever looks after the hub should know of how it was started.
    warnings: Vec<String>,
}

impl Parts {
    /// Puts them together. The agents are there once this returns.
    async fn build(
        config: &Config,
        dir: &Path,
        storage: Arc<SqliteStorage>,
        program_files: u64,
    ) -> anyhow::Result<Self> {
        // Stays right when an update replaces the file.
        let exe = PathBuf::from("/proc/self/exe");
        let supervisor = Supervisor::new(exe, dir.to_owned(), PROGRAM_GRACE);
        let supervisor = supervisor.with_open_files(program_files);
        let engine = Engine::new(&EngineSettings {
            cache_dir: Some(dir.join("cache")),
            max_instances: config.max_tasks.unwrap_or(EngineSettings::default().max_instances),
            address_space: limits::address_space(),
        })?;
        let warnings = warnings(&storage, &engine);
        let events = Events::default();
        let tasks = Tasks::new(storage.clone(), events.clone());
        let contexts = Contexts::new(storage.clone(), config);
        let signer = config.push.sign.then(|| WebhookSigner::open(dir)).transpose()?;
        let sender = Sender::new(config.push.rules(), signer).challenging(config.push.challenge);
        let (breaker, give_up) = (config.breaker.settings(), config.push.give_up());
        let pushes = Pushes::new(storage.clone(), tasks.clone(), sender, breaker, give_up);
        let agents = Agents::new(
            config.clone(),
            COMPONENTS,
            dir.to_owned(),
            engine,
            supervisor.clone(),
            storage.clone(),
            events.clone(),
        );
        agents.join_built_in().await;
        let plugins = PluginFolder::open(dir.join("plugins"), agents.clone())
            .context("make the plugins folder")?;
        plugins.load().await;
        agents.join_remote(Outbound::unguarded()).await;
        Ok(Self { supervisor, events, agents, plugins, contexts, tasks, pushes, storage, warnings })
    }

    /// Takes up what an earlier run left unfinished.
    async fn go_on(&self) -> anyhow::Result<()> {
        let recovered = self.tasks.recover(|agent| self.agents.find(agent)).await;
        let recovered = recovered.context("take up the tasks of an earlier run")?;
        if recovered != Recovered::default() {
            let Recovered { started, waiting, followed, failed, unreadable } = recovered;
            tracing::warn!(
                started,
                waiting,
                followed,
                failed,
                unreadable,
                "took up tasks that an earlier run left unfinished"
            );
        }
        let configs = self.pushes.resume().await;
        let configs = configs.context("go on with what an earlier run did not send")?;
        if configs > 0 {
            tracing::info!(configs, "goes on sending notifications");
        }
        Ok(())
    }

    /// Which requests an earlier run carried out so lately that they may be made again.
    async fn requests(&self, config: &Config) -> anyhow::Result<Repeats> {
        let repeats = Repeats::within(config.idempotency_window());
        if let Some(since) = repeats.since() {
            let requests = self.tasks.requests(&since).await;
            for (request, task, made) in requests.context("find the requests of an earlier run")? {
                repeats.remember(&request, task, clock::age(&made)).await;
            }
        }
        Ok(repeats)
    }

    fn hub(&self) -> Hub {
        let Self { agents, plugins, contexts, tasks, pushes, events, .. } = self;
        Hub::new(
            agents.clone(),
            plugins.clone(),
            contexts.clone(),
            tasks.clone(),
            pushes.clone(),
            events.clone(),
        )
    }

    /// Cuts off the tasks that are at work, and writes down which.
    async fn cut_off(&self, dir: &Path) {
        let cut = self.tasks.shutdown().await;
        if !cut.is_empty() {
            let tasks: Vec<_> = cut.iter().map(TaskId::as_str).collect();
            tracing::warn!(tasks = tasks.join(", "), "tasks were cut off");
        }
        if let Err(why) = stopped(dir, &cut) {
            tracing::warn!(%why, "cannot write down which tasks were cut off");
        }
    }

    /// Takes the rest apart, in order: programs last.
    async fn take_down(&self) {
        self.pushes.shutdown().await;
        self.events.close();
        self.agents.shutdown().await;
        self.supervisor.shutdown().await;
    }
}

/// What is not as it should be, and keeps no hub from working. It is in the log as well.
fn warnings(storage: &SqliteStorage, engine: &Engine) -> Vec<String> {
    let log = storage.lacks_log().then(|| {
        "the hub before was not stopped in order, and the log of its database (`hub.db-wal`) was missing: what was stored last is \
         gone, unless another program, such as `sqlite3`, took it in; a log that is found later must be put beside the database \
         before a hub starts"
            .to_owned()
    });
    let pool = engine.lacks_pool().then(|| {
        let most = engine.room().most;
        format!(
            "there are too few addresses for a pool of guests: at most {most} run at once, and each starts more slowly; raise \
             `ulimit -v`, or set `max_tasks` lower"
        )
    });
    let warnings: Vec<_> = log.into_iter().chain(pool).collect();
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    warnings
}

/// Where others find a hub that serves HTTP at this address.
fn whereabouts(config: &Config, http: Option<SocketAddr>) -> PublicEndpoints {
    PublicEndpoints {
        public_url: config.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        http,
        socket: config.socket.enabled.then(|| config.socket.path.clone()),
        root_agent: config.root_agent.clone(),
    }
}

async fn bind_http(config: &Config) -> anyhow::Result<Option<Http>> {
    if !config.http.enabled {
        return Ok(None);
    }
    let address = config.http.address();
    let bound = Http::bind(address).await.with_context(|| {
        format!("serve HTTP on {address} (choose another port with `--http-port`, or none with `--no-http`)")
    })?;
    Ok(Some(bound))
}

/// Writes down which tasks were cut off, for whoever told the hub to stop.
fn stopped(dir: &Path, cut: &[TaskId]) -> io::Result<()> {
    write_whole(&dir.join(STOPPED_FILE), &json!({ "pid": std::process::id(), "cut": cut }))
}

/// Renamed into place: nobody reads half of it.
fn write_whole(file: &Path, value: &Value) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let written = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    serde_json::to_writer(written, value)?;
    fs::rename(&new, file)
}

/// The file that says where the hub is, as long as it runs.
struct Announced(PathBuf);

impl Announced {
    fn new(
        dir: &Path,
        config: &Config,
        http: Option<SocketAddr>,
        invocation: &Invocation,
        warnings: &[String],
    ) -> io::Result<Self> {
        let file = dir.join(RUN_FILE);
        let text = json!({
            "pid": std::process::id(),
            "http": http.map(|at| at.to_string()),
            "socket": config.socket.enabled.then_some(&config.socket.path),
            "arguments": invocation.arguments,
            "directory": invocation.directory,
            "detached": invocation.detached,
            "warnings": warnings,
        });
        write_whole(&file, &text)?;
        Ok(Self(file))
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // Should it stay behind, the process id in it tells that it is old.
        let _ = fs::remove_file(&self.0);
    }
}
