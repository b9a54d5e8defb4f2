//! The hub process: runs until it receives a signal to stop, then shuts down in order.

use crate::client::{
    running_hub::{RUN_FILE, system_value},
    signals::{self, Hangup, SignalRequest, Signals},
};
use a2a_hub::{Hub, config::Config};
use a2a_hub_core::text::duration::Span;
use a2a_hub_engine::{ReadConfig, SetLevel};
use a2a_hub_protocol::id::TaskId;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Timeout of the shutdown after the drain: for clients, programs and cancelled tasks.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// Timeout of the shutdown after a second signal. Within it, programs have 250 ms to exit, and an
/// agent that ignores a cancellation 500 ms.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Time that subscribers of cancelled tasks have to receive the final event. Clients that are busy
/// with something else are not waited for.
const FINAL_EVENT_GRACE: Duration = Duration::from_millis(300);

/// File in the data directory with the tasks that the last shutdown cancelled.
pub(crate) const STOPPED_FILE: &str = "stopped.json";

/// Command line of the hub, for `restart`.
pub(crate) struct Invocation {
    /// Arguments after the program's name.
    pub(crate) arguments: Vec<OsString>,
    /// Working directory at the start.
    pub(crate) directory: PathBuf,
    /// True for a background hub.
    pub(crate) detached: bool,
}

/// Runs the hub until it receives a signal to stop.
pub(crate) async fn run(
    config: Config,
    read: ReadConfig,
    set_level: SetLevel,
    invocation: Invocation,
) -> anyhow::Result<()> {
    // Installed first: a hangup of the terminal must not end the hub.
    let hangup = Hangup::new().context("handle signals")?;
    let dir = config.data_dir()?.to_owned();
    let builder = Hub::builder(&dir).config(config.clone()).reloadable(read, set_level);
    let builder = builder.owning_the_process();
    // The path of this program: after an update, the new program at this path is compatible.
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
            // A hanging shutdown must not delay the error.
            let _ = timeout(STOP_DEADLINE, hub.take_down(|_| {})).await;
            return Err(why);
        }
    };
    let at = http.map(tracing::field::display);
    tracing::info!(socket = %config.socket.path.display(), http = at, "the hub is up");

    while signals.next().await == SignalRequest::Reload {
        hub.reload();
    }
    hub.close();
    let drain = hub.config_now().map_or(config.stop, |config| config.stop).drain();
    let drain_timeout = tracing::field::display(Span(drain));
    tracing::info!(drain_timeout, "the hub is stopping; a second signal cancels tasks at once");
    let is_urgent = tokio::select! {
        () = drained(&hub, drain) => false,
        () = signals.stop() => true,
    };
    let cut_off = CancellationToken::new();
    let down = hub.take_down(|cut| {
        if let Err(why) = stopped(&dir, cut) {
            tracing::warn!(%why, "cannot record the cancelled tasks");
        }
        cut_off.cancel();
    });
    tokio::select! {
        () = down => {}
        () = too_long(&mut signals, is_urgent, &hub, &cut_off) => {
            tracing::warn!("exiting before all tasks and programs have ended");
        }
    }
    Ok(())
}

/// Context of the error that the run file cannot be written.
fn say_where(dir: &Path) -> String {
    format!(
        "write the run file {} (if the disk is full, free some space)",
        dir.join(RUN_FILE).display()
    )
}

/// Waits until no task runs, at most for `drain`.
async fn drained(hub: &Hub, drain: Duration) {
    match timeout(drain, hub.idle()).await {
        Ok(Ok(())) | Err(_) => {}
        // The store fails, so the results of the tasks could not be stored either.
        Ok(Err(why)) => {
            tracing::error!(%why, "cannot read the running tasks, cancelling them at once");
        }
    }
}

/// Waits for the shutdown's timeout. After another signal, it only waits until the cancelled tasks
/// are recorded and reported (`cut_off`), and after one more it ends the process.
async fn too_long(signals: &mut Signals, is_urgent: bool, hub: &Hub, cut_off: &CancellationToken) {
    if !is_urgent && timeout(STOP_DEADLINE, signals.stop()).await.is_err() {
        return;
    }
    hub.hurry();
    let reported = async {
        cut_off.cancelled().await;
        sleep(FINAL_EVENT_GRACE).await;
    };
    tokio::select! {
        () = reported => {}
        () = sleep(AT_ONCE) => {}
        () = signals.stop() => signals::end_at_once(),
    }
}

/// Records the cancelled tasks, for the command that stopped the hub.
fn stopped(dir: &Path, cut: &[TaskId]) -> io::Result<()> {
    write_atomically(&dir.join(STOPPED_FILE), &json!({ "pid": std::process::id(), "cut": cut }))
}

/// Writes a file atomically, by renaming.
fn write_atomically(file: &Path, value: &Value) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let written = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    serde_json::to_writer(written, value)?;
    fs::rename(&new, file)
}

/// Run file that exists while the hub runs.
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
        let arguments = invocation.arguments.iter().map(|argument| system_value(argument));
        let text = json!({
            "pid": std::process::id(),
            "http": http.map(|at| at.to_string()),
            "tls": config.tls.is_on(),
            "socket": config.socket.enabled.then(|| system_value(config.socket.path.as_os_str())),
            "arguments": arguments.collect::<Vec<_>>(),
            "directory": system_value(invocation.directory.as_os_str()),
            "detached": invocation.detached,
            "warnings": warnings,
        });
        write_atomically(&file, &text)?;
        Ok(Self(file))
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A stale file is recognised by its process id.
        let _ = fs::remove_file(&self.0);
    }
}
