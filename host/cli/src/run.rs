//! A hub as a program: it runs until it is told to stop, and is taken apart in order.

use super::signals::{self, Hangup, Signals, Told};
use a2a_hub::{Hub, config::Config};
use a2a_hub_core::span::Span;
use a2a_hub_hub::{ReadConfig, SetLevel};
use a2a_hub_protocol::id::TaskId;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long the hub waits at its end for clients, programs and tasks that it cut off.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// The same once it was told again to stop: programs have a quarter of a second then, and an agent that does not heed cancel half of one.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How long those then have to hear it who listen to what was cut off. Nobody waits for a client that is in the middle of something else.
const TOLD: Duration = Duration::from_millis(300);

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
    // First of all: a terminal that goes away meanwhile must not end the hub.
    let hangup = Hangup::new().context("handle signals")?;
    let dir = config.data_dir()?.to_owned();
    let builder = Hub::builder(&dir).config(config.clone()).reloadable(read, set_level);
    let builder = builder.owning_the_process();
    // Where this program was started from: an update in its place serves as well.
    let builder = match std::env::current_exe() {
        Ok(command) => builder.command(command),
        Err(_) => builder,
    };
    let hub = builder.start().await?;
    let http = hub.http_address();
    let mut signals = Signals::new(hangup)?;
    let announced = Announced::new(&dir, &config, http, &invocation, hub.warnings());
    let _announced = match announced.with_context(|| say_where(&dir)) {
        Ok(announced) => announced,
        Err(why) => {
            // What hangs must not keep anybody from hearing why.
            let _ = timeout(STOP_DEADLINE, hub.take_down(|_| {})).await;
            return Err(why);
        }
    };
    let at = http.map(tracing::field::display);
    tracing::info!(socket = %config.socket.path.display(), http = at, "the hub is up");

    while signals.next().await == Told::Reload {
        hub.reload();
    }
    hub.close();
    let drain = hub.config_now().map_or(config.stop, |config| config.stop).drain();
    let patience = tracing::field::display(Span(drain));
    tracing::info!(patience, "the hub is going down; a second signal ends tasks at once");
    let is_urgent = tokio::select! {
        () = drained(&hub, drain) => false,
        () = signals.stop() => true,
    };
    let cut_off = CancellationToken::new();
    let down = hub.take_down(|cut| {
        if let Err(why) = stopped(&dir, cut) {
            tracing::warn!(%why, "cannot write down which tasks were cut off");
        }
        cut_off.cancel();
    });
    tokio::select! {
        () = down => {}
        () = too_long(&mut signals, is_urgent, &hub, &cut_off) => {
            tracing::warn!("ends without waiting for what has not ended yet");
        }
    }
    Ok(())
}

/// What is not done where the file cannot be written that says where a hub is.
fn say_where(dir: &Path) -> String {
    format!(
        "say where the hub is, in {} (a disk that is full needs room)",
        dir.join(RUN_FILE).display()
    )
}

/// Waits until no task is at work any more, or has had its time.
async fn drained(hub: &Hub, drain: Duration) {
    match timeout(drain, hub.idle()).await {
        Ok(Ok(())) | Err(_) => {}
        // Then nothing that they do is stored either.
        Ok(Err(why)) => {
            tracing::error!(%why, "cannot see which tasks are at work; they are ended at once");
        }
    }
}

/// Waits until the hub has had the time that its end may take. If it is told again to stop, it only waits until what was `cut_off` is written down and told,
/// and for nothing if once more.
async fn too_long(signals: &mut Signals, is_urgent: bool, hub: &Hub, cut_off: &CancellationToken) {
    if !is_urgent && timeout(STOP_DEADLINE, signals.stop()).await.is_err() {
        return;
    }
    hub.hurry();
    let told = async {
        cut_off.cancelled().await;
        sleep(TOLD).await;
    };
    tokio::select! {
        () = told => {}
        () = sleep(AT_ONCE) => {}
        () = signals.stop() => signals::end_at_once(),
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
