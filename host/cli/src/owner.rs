//! Who carries out what changes a data directory: the hub that uses it, or this command where none does.
//!
//! The hub is asked first, and writes itself: it alone knows whether the operator asks, or a program that an agent started. Where no hub
//! uses the directory nobody can be asked, and a command that runs below an agent's program is refused whatever it would do.

use super::{
    client::Client,
    failure::{CommandError, HUB_HANGS},
    global::Global,
    running_hub,
};
use a2a_hub_process::{daemon, in_agents_tree, is_below};
use a2a_hub_store::sqlite::LOCK_FILE;
use anyhow::{Context as _, bail};
use std::{path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// The command runs below an agent's program, and is for the operator.
const NOT_THE_OPERATOR: &str = "NOT_THE_OPERATOR";

/// How long a hub that begins may take to say where it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// Who carries out a change.
pub(super) enum Owner {
    /// The hub that uses the data directory.
    Hub(Client),
    /// No hub uses it, or one that cannot be asked: this command writes.
    Command,
}

impl Owner {
    /// Finds out who uses the data directory `dir`. `what` says what is about to be done, for a refusal: `grant something to a plug-in`.
    pub(super) async fn of(global: &Global, dir: &Path, what: &str) -> anyhow::Result<Self> {
        let holder = daemon::holder(&dir.join(LOCK_FILE)).context("find the hub's process")?;
        let Some(holder) = holder else {
            must_be_the_operator(what)?;
            return Ok(Self::Command);
        };
        let run = written_down(dir, holder.pid).await?;
        let Some(its_own) = running_hub::socket(&run) else {
            // It serves no socket: it follows what is written, as where none runs.
            if is_below(holder.pid) {
                return Err(not_the_operator(what).into());
            }
            return Ok(Self::Command);
        };
        let socket = global.socket.as_ref().map_or(its_own, Into::into);
        let mut client = Client::to(&socket).await.with_context(|| {
            format!(
                "{what}: connect to the hub that uses {} at {}",
                dir.display(),
                socket.display()
            )
        })?;
        if client.pid != Some(holder.pid) {
            bail!(
                "{what}: the socket {} is not that of the hub that uses the data directory {}; leave one of `--socket` and `--data-dir` out",
                socket.display(),
                dir.display()
            );
        }
        client.greet().await?;
        Ok(Self::Hub(client))
    }
}

/// Refuses a command that only the operator may give, where it runs below an agent's program and no hub is there to ask.
pub(super) fn must_be_the_operator(what: &str) -> Result<(), CommandError> {
    if in_agents_tree() { Err(not_the_operator(what)) } else { Ok(()) }
}

/// The refusal of a command that an agent's program gives.
pub(super) fn not_the_operator(what: &str) -> CommandError {
    CommandError::new(
        NOT_THE_OPERATOR,
        format!(
            "{what}: this command runs below an agent's program, and that is for the operator; run it in a terminal of your own"
        ),
    )
}

/// What the hub with this process id has written down of itself, once it is up.
async fn written_down(dir: &Path, pid: i32) -> anyhow::Result<serde_json::Value> {
    let begun = Instant::now();
    loop {
        let run = running_hub::of(dir).filter(|run| run["pid"] == pid);
        if let Some(run) = run {
            return Ok(run);
        }
        if begun.elapsed() > PATIENCE {
            let why = format!(
                "the hub (process {pid}) that uses {} is not up yet; try again once `a2a-hub status` says that it is",
                dir.display()
            );
            return Err(CommandError::new(HUB_HANGS, why).mended_by("a2a-hub status").into());
        }
        sleep(LOOK).await;
    }
}
