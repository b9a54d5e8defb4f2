//! Executor of a change of the data directory: the hub that uses the directory, or this command if
//! none does.
//!
//! A running hub is asked and writes itself, because only the hub can tell the operator from a
//! program that an agent started. Without a hub, a command that runs below an agent's program is
//! refused.

use super::{
    failure::{CommandError, HUB_STARTING},
    global::Global,
    hub_client::Client,
    running_hub,
};
use a2a_hub_process::{daemon, in_agents_tree, is_descendant_of};
use a2a_hub_store::sqlite::LOCK_FILE;
use anyhow::{Context as _, bail};
use std::{path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// Reason of a refusal: the command is for the operator and runs below an agent's program.
const NOT_THE_OPERATOR: &str = "NOT_THE_OPERATOR";

/// Time that a starting hub has to publish its socket.
const STARTUP_WAIT: Duration = Duration::from_secs(60);

/// Interval at which the starting hub is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Executor of a change.
pub enum Owner {
    /// The hub that uses the data directory.
    Hub(Client),
    /// This command: no hub uses the directory, or the hub serves no socket.
    Command,
}

impl Owner {
    /// Determines the executor for the data directory `dir`. `action` names the operation in a
    /// refusal: `grant something to a plug-in`.
    pub async fn for_data_dir(global: &Global, dir: &Path, action: &str) -> anyhow::Result<Self> {
        let holder = daemon::holder(&dir.join(LOCK_FILE)).context("find the hub's process")?;
        let Some(holder) = holder else {
            refuse_in_agent_tree(action)?;
            return Ok(Self::Command);
        };
        let mut progress = global.progress("the hub", true);
        let run = progress.during("starting", await_run_file(dir, holder.pid)).await?;
        drop(progress);
        let Some(hub_socket) = running_hub::socket(&run) else {
            // The hub serves no socket. It applies changes of the files, so this command writes
            // them.
            if is_descendant_of(holder.pid) {
                return Err(not_the_operator(action).into());
            }
            return Ok(Self::Command);
        };
        let socket = global.socket.as_ref().map_or(hub_socket, Into::into);
        let mut client = Client::to(&socket).await.with_context(|| {
            format!(
                "{action}: connect to the hub that uses {} at {}",
                dir.display(),
                socket.display()
            )
        })?;
        if client.pid != Some(holder.pid) {
            bail!(
                "{action}: the socket {} does not belong to the hub that uses the data directory {}; \
                 give only one of `--socket` and `--data-dir`",
                socket.display(),
                dir.display()
            );
        }
        client.greet().await?;
        Ok(Self::Hub(client))
    }
}

/// Refuses an operator's command that runs below an agent's program, if no hub can be asked.
pub fn refuse_in_agent_tree(action: &str) -> Result<(), CommandError> {
    if in_agents_tree() { Err(not_the_operator(action)) } else { Ok(()) }
}

/// Error for an operator's command that an agent's program runs.
pub fn not_the_operator(action: &str) -> CommandError {
    CommandError::new(
        NOT_THE_OPERATOR,
        format!(
            "{action}: an agent's program started this command, and only the operator may do that; \
             run it in your own terminal"
        ),
    )
}

/// Waits for the run file of the hub with this process id.
async fn await_run_file(dir: &Path, pid: i32) -> anyhow::Result<serde_json::Value> {
    let begun = Instant::now();
    loop {
        let run = running_hub::read_if_running(dir).filter(|run| run["pid"] == pid);
        if let Some(run) = run {
            return Ok(run);
        }
        if begun.elapsed() > STARTUP_WAIT {
            let why = format!(
                "the hub (process {pid}) that uses {} is still starting; try again when `a2a-hub \
                 status` answers",
                dir.display()
            );
            return Err(CommandError::new(HUB_STARTING, why).mended_by("a2a-hub status").into());
        }
        sleep(POLL_INTERVAL).await;
    }
}
