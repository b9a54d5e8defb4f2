//! The hub itself, from its first breath to its last: everything is put together here, and taken apart in order.

use crate::{
    agents::{Agents, PluginFolder},
    config::Config,
    hub::Hub,
    process::Supervisor,
    storage::sqlite::SqliteStorage,
    tasks::Tasks,
    transport::{Http, Unix},
};
use a2a_hub_sandbox::{Engine, EngineSettings};
use anyhow::Context as _;
use serde_json::json;
use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{signal::unix::SignalKind, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a program may take to end after it was asked to; a CLI writes its session down meanwhile.
const PROGRAM_GRACE: Duration = Duration::from_millis(1_000);

/// How long the hub waits at its end for tasks, clients and programs.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// The file in the data directory that says where a running hub is.
pub(super) const RUN_FILE: &str = "run.json";

/// Runs the hub until it is told to stop.
pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    let dir = config.data_dir()?.to_owned();
    let storage = Arc::new(SqliteStorage::open(&dir).context("open the hub's store")?);
    let left = Supervisor::sweep_leftovers(&dir);
    if left > 0 {
        tracing::warn!(processes = left, "ended programs that an earlier run left behind");
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
    let tasks = Tasks::new(storage.clone());
    let recovered = tasks.recover().await.context("end the tasks of an earlier run")?;
    if recovered > 0 {
        tracing::warn!(tasks = recovered, "ended tasks that an earlier run left unfinished");
    }
    let agents = Agents::new(config.clone(), dir.clone(), engine, supervisor.clone(), storage);
    agents.join_built_in().await;
    let mut folder = PluginFolder::open(dir.join("plugins"), agents.clone())
        .context("make the plugins folder")?;
    folder.load().await;

    let (stop, running) = (CancellationToken::new(), TaskTracker::new());
    folder.watch(&running, stop.clone());
    agents.watch_health(&running, stop.clone());
    let hub = Hub::new(agents, tasks.clone());
    let at = http.as_ref().map(Http::address);
    if let Some(http) = http {
        let serving = http.serve(hub.clone(), stop.clone());
        running.spawn(async move {
            if let Err(why) = serving.await {
                tracing::error!(%why, "the HTTP server ended");
            }
        });
    }
    if let Some(unix) = unix {
        running.spawn(unix.serve(hub, stop.clone()));
    }
    let _announced = Announced::new(&dir, &config, at).context("say where the hub is")?;
    tracing::info!(socket = %config.socket.path.display(), http = ?at, "the hub is up");

    told_to_stop().await?;
    tracing::info!("the hub is going down");
    stop.cancel();
    running.close();
    let down = async {
        tasks.shutdown().await;
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

async fn told_to_stop() -> io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let mut interrupt = tokio::signal::unix::signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
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
        // Renamed into place: nobody reads half of it.
        let new = dir.join("run.json.new");
        let mut options = fs::OpenOptions::new();
        let written = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        serde_json::to_writer(written, &text)?;
        fs::rename(&new, &file)?;
        Ok(Self(file))
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A hub that starts meanwhile has written its own.
        let _ = fs::remove_file(&self.0);
    }
}
