//! The hub itself, from its first breath to its last: everything is put together here, and taken apart in order.

use crate::{
    agents::{Agents, PluginFolder, sweep_files},
    auth::Token,
    config::Config,
    contexts::Contexts,
    events::Events,
    hub::Hub,
    outbound::Outbound,
    process::Supervisor,
    push::{Pushes, Seal, Sender},
    storage::sqlite::SqliteStorage,
    tasks::{Recovered, Tasks},
    transport::{Desk, Http, Unix, Whereabouts},
};
use a2a_hub_protocol::id::TaskId;
use a2a_hub_sandbox::{Engine, EngineSettings};
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
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a program may take to end after it was asked to; a CLI writes its session down meanwhile.
const PROGRAM_GRACE: Duration = Duration::from_millis(1_000);

/// How long the hub waits at its end for clients, programs and tasks that it cut off.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// The file in the data directory that says where a running hub is.
pub(super) const RUN_FILE: &str = "run.json";

/// The file in the data directory that says what the last hub cut off when it stopped.
pub(super) const STOPPED_FILE: &str = "stopped.json";

/// Runs the hub until it is told to stop.
pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    let dir = config.data_dir()?.to_owned();
    let storage = Arc::new(SqliteStorage::open(&dir).context("open the hub's store")?);
    let left = Supervisor::sweep_leftovers(&dir);
    if left > 0 {
        tracing::warn!(processes = left, "ended programs that an earlier run left behind");
    }
    if let Err(why) = sweep_files(&dir) {
        tracing::warn!(%why, "cannot remove the files that agents of an earlier run left");
    }
    // Bound early: a port that is taken is found before anything else is done.
    let unix = config.socket.enabled.then(|| Unix::bind(&config.socket.path)).transpose()?;
    let http = bind_http(&config).await?;

    // Stays right when an update replaces the file.
    let exe = PathBuf::from("/proc/self/exe");
    let supervisor = Supervisor::new(exe, dir.clone(), PROGRAM_GRACE);
    let engine = Engine::new(&EngineSettings {
        cache_dir: Some(dir.join("cache")),
        max_instances: config.max_tasks.unwrap_or(EngineSettings::default().max_instances),
    })?;
    let events = Events::default();
    let tasks = Tasks::new(storage.clone(), events.clone());
    let contexts = Contexts::new(storage.clone(), &config);
    let seal = config.push.sign.then(|| Seal::open(&dir)).transpose()?;
    let sender =
        Sender::new(config.push.rules(), seal).context("set up what sends notifications")?;
    let sender = sender.challenging(config.push.challenge);
    let (breaker, give_up) = (config.breaker.settings(), config.push.give_up());
    let pushes = Pushes::new(storage.clone(), tasks.clone(), sender, breaker, give_up);
    let supervisor_too = supervisor.clone();
    let agents =
        Agents::new(config.clone(), dir.clone(), engine, supervisor_too, storage, events.clone());
    agents.join_built_in().await;
    let plugins = PluginFolder::open(dir.join("plugins"), agents.clone())
        .context("make the plugins folder")?;
    plugins.load().await;
    agents.join_remote(Outbound::unguarded().context("set up TLS")?).await;
    let recovered = tasks.recover(&agents).await.context("take up the tasks of an earlier run")?;
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

    let configs = pushes.resume().await.context("go on with what an earlier run did not send")?;
    if configs > 0 {
        tracing::info!(configs, "goes on sending notifications");
    }
    let (stop, running) = (CancellationToken::new(), TaskTracker::new());
    plugins.clone().watch(&running, stop.clone());
    contexts.watch(&running, stop.clone());
    let hub =
        Hub::new(agents.clone(), plugins, contexts, tasks.clone(), pushes.clone(), events.clone());
    let hub = hub.with_default(config.default_agent.clone());
    let at = http.as_ref().map(Http::address);
    let whereabouts = Whereabouts {
        public_url: config.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        http: at,
        socket: config.socket.enabled.then(|| config.socket.path.clone()),
        root_agent: config.root_agent.clone(),
    };
    let (streams, patience) = (config.max_streams(), config.clients.timeout());
    let desk = Desk::new(hub.clone(), whereabouts, streams, patience);
    if let Some(http) = http {
        let token = Token::open(&dir)?;
        running.spawn(http.serve(desk.clone(), token, stop.clone()));
    }
    if let Some(unix) = unix {
        running.spawn(unix.serve(desk, stop.clone()));
    }
    let mut signals = Signals::new()?;
    let _announced = Announced::new(&dir, &config, at).context("say where the hub is")?;
    tracing::info!(socket = %config.socket.path.display(), http = ?at, "the hub is up");

    signals.next().await;
    hub.close();
    let patience = config.stop.drain();
    tracing::info!(?patience, "the hub is going down; a second signal ends tasks at once");
    tokio::select! {
        idle = tasks.idle() => idle.context("wait for the tasks at work")?,
        () = sleep(patience) => {}
        () = signals.next() => {}
    }
    stop.cancel();
    running.close();
    let down = async {
        let cut = tasks.shutdown().await;
        if !cut.is_empty() {
            tracing::warn!(tasks = ?cut, "tasks were cut off");
        }
        if let Err(why) = stopped(&dir, &cut) {
            tracing::warn!(%why, "cannot write down which tasks were cut off");
        }
        pushes.shutdown().await;
        events.close();
        agents.shutdown().await;
        supervisor.shutdown().await;
        running.wait().await;
    };
    if timeout(STOP_DEADLINE, down).await.is_err() {
        tracing::warn!("something did not end in time and was cut off");
    }
    Ok(())
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

/// What tells a hub to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
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
    fn new(dir: &Path, config: &Config, http: Option<SocketAddr>) -> io::Result<Self> {
        let file = dir.join(RUN_FILE);
        let text = json!({
            "pid": std::process::id(),
            "http": http.map(|at| at.to_string()),
            "socket": config.socket.enabled.then_some(&config.socket.path),
        });
        write_whole(&file, &text)?;
        Ok(Self(file))
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A hub that starts meanwhile has written its own.
        let _ = fs::remove_file(&self.0);
    }
}
