//! `stop`: lets running tasks finish until a deadline, then stops the hub.

use super::run::STOPPED_FILE;
use crate::{
    Exit, Global, block_on,
    client::{
        hub_client::Client,
        owner::{not_the_operator, refuse_in_agent_tree},
    },
    ui::failure::{CommandError, HUB_NOT_RUNNING},
};
use a2a_hub_core::text::duration::Span;
use a2a_hub_process::{daemon, is_descendant_of};
use a2a_hub_store::sqlite::LOCK_FILE;
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};

/// Time that a hub has to exit after it cancelled its tasks; the hub's own timeout is shorter.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that a hub has to exit in order before `--force` kills it.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Time in which running tasks may finish, such as `30s`, at most `stop.drain_ms`; a bare
    /// number counts seconds, and 0 cancels them at once [default: `stop.drain_ms` of the
    /// configuration]
    #[arg(long, value_name = "TIME", value_parser = super::duration::seconds)]
    timeout: Option<u64>,
    /// Kill a hub that does not answer or does not exit. Its running tasks are interrupted; the
    /// next start decides what becomes of them
    #[arg(long, conflicts_with = "timeout")]
    force: bool,
}

pub(crate) fn stop(global: &Global, stop: &StopArgs) -> anyhow::Result<Exit> {
    block_on(async {
        let stopped = if stop.force {
            Stopped::by_force(global).await?
        } else {
            match Stopped::in_order(global, stop.timeout).await {
                // A hub with another socket, or whose socket was removed, still runs.
                Err(why)
                    if CommandError::from_error(&why).is(HUB_NOT_RUNNING)
                        && !is_running(global)? =>
                {
                    None
                }
                stopped => Some(stopped?),
            }
        };
        let Some(stopped) = stopped else { return not_running(global, stop.force) };
        global.show(&stopped.json(), || {
            for task in &stopped.cut {
                let note = format!("interrupted: task {task}; its results so far are kept");
                global.console().note(note);
            }
            Ok(if stopped.by_force {
                "the hub was killed; the next start decides what becomes of its tasks\n".into()
            } else {
                "the hub is stopped\n".into()
            })
        })?;
        Ok(Exit::Done)
    })
}

/// True if a hub uses the data directory, by the lock that it holds.
fn is_running(global: &Global) -> anyhow::Result<bool> {
    let holder = daemon::holder(&global.data_dir()?.join(LOCK_FILE));
    Ok(holder.context("find the hub's process")?.is_some())
}

/// Reports that no hub was there to be stopped, with the place where none is.
fn not_running(global: &Global, by_force: bool) -> anyhow::Result<Exit> {
    let reason = match by_force {
        true => format!("no hub uses the data directory {}", global.data_dir()?.display()),
        false => format!("no hub listens on {}", global.socket_path()?.display()),
    };
    global.show(&json!({ "stopped": null, "cut": [], "forced": false }), || {
        Ok(format!("the hub is not running: {reason}\n").into())
    })?;
    Ok(Exit::Done)
}

/// Result of stopping a hub.
pub(crate) struct Stopped {
    pid: i32,
    /// Tasks that the hub cancelled, by its own record.
    cut: Vec<String>,
    by_force: bool,
}

impl Stopped {
    /// Stops the hub in order; running tasks have `seconds` to finish, or the configured drain
    /// time.
    pub(crate) async fn in_order(global: &Global, seconds: Option<u64>) -> anyhow::Result<Self> {
        // If the configuration has an error, the hub uses an earlier one that is unknown here; the
        // defaults are the best guess.
        let configured =
            global.settings(Vec::new()).map(|it| it.config.stop).unwrap_or_default().drain();
        let drain = seconds.map_or(configured, Duration::from_secs).min(configured);
        let mut client = Client::connect_to_any(global).await?;
        let pid = client.pid.context("find the hub's process")?;
        let live = client.call("hub/status", json!({})).await?["activeTasks"].as_u64();
        drop(client);
        if let Some(live @ 1..) = live {
            let work = match drain {
                Duration::ZERO => "are cancelled at once".to_owned(),
                drain => format!("have {} to finish", Span(drain)),
            };
            let note = format!("active tasks: {live}; running ones {work}");
            global.console().note(note);
        }
        // The hub itself cancels its tasks after its drain time; a second signal cancels them
        // earlier.
        let timeout = if drain < configured { drain } else { configured + EXIT_TIMEOUT };
        let has_exited = daemon::terminate(pid, timeout).await.context("stop the hub")?
            || daemon::terminate_again(pid, EXIT_TIMEOUT).await.context("stop the hub")?;
        if !has_exited {
            bail!(
                "stop the hub: process {pid} still runs {} after its deadline; `a2a-hub stop \
                 --force` kills it",
                Span(EXIT_TIMEOUT)
            );
        }
        let cut = global.data_dir().map(|dir| cut_off(&dir, pid)).unwrap_or_default();
        Ok(Self { pid, cut, by_force: false })
    }

    /// Stops the hub of the data directory, identified by the lock that it holds, and kills it if
    /// it does not exit. `None` if no hub uses the directory.
    async fn by_force(global: &Global) -> anyhow::Result<Option<Self>> {
        let dir = global.data_dir()?;
        let Some(hub) = daemon::holder(&dir.join(LOCK_FILE)).context("find the hub's process")?
        else {
            refuse_in_agent_tree("kill a hub")?;
            return Ok(None);
        };
        let pid = hub.pid;
        if is_descendant_of(pid) {
            return Err(not_the_operator("kill the hub").into());
        }
        // A hub that still answers can cancel its tasks and exit in order.
        let answers = async { Client::to(&global.socket_path()?).await?.greet().await };
        if answers.await.is_ok() {
            let exited = async {
                anyhow::Ok(
                    daemon::terminate(pid, Duration::ZERO).await?
                        || daemon::terminate_again(pid, GRACE).await?,
                )
            };
            if exited.await.context("stop the hub")? {
                return Ok(Some(Self { pid, cut: cut_off(&dir, pid), by_force: false }));
            }
        }
        if !hub.kill(EXIT_TIMEOUT).await.context("kill the hub")? {
            bail!(
                "kill the hub: process {pid} is blocked in the kernel, for example by a disk that \
                 hangs; see `dmesg`"
            );
        }
        Ok(Some(Self { pid, cut: Vec::new(), by_force: true }))
    }

    fn json(&self) -> Value {
        json!({ "stopped": self.pid, "cut": self.cut, "forced": self.by_force })
    }
}

/// Reads the tasks that the hub with this process id cancelled.
fn cut_off(dir: &Path, pid: i32) -> Vec<String> {
    let read = |text: String| serde_json::from_str::<Value>(&text).ok();
    let stopped = fs::read_to_string(dir.join(STOPPED_FILE)).ok().and_then(read);
    let stopped = stopped.filter(|stopped| stopped["pid"] == json!(pid)).unwrap_or_default();
    serde_json::from_value(stopped["cut"].clone()).unwrap_or_default()
}
