//! Waits until the hub has read a flow's file.

use crate::{
    Global, block_on,
    client::{hub_client::Client, running_hub},
    ui::{
        failure::CommandError,
        render::{list, text},
    },
};
use a2a_hub_protocol::id::AgentId;
use anyhow::bail;
use serde_json::json;
use std::{path::PathBuf, time::Duration};
use tokio::time::{Instant, sleep};

/// Most time in which a running hub reads a file. It looks more often.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Most time in which a message waits for a file that was just saved.
const SHORT_READ_TIMEOUT: Duration = Duration::from_secs(3);

/// Reason of a refusal: no agent has the name.
pub(super) const NO_AGENT: &str = "AGENT_NOT_FOUND";

/// Time between two looks at the hub's agents.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Path of a flow's file in the data directory.
pub(super) fn flow_file(id: &AgentId) -> String {
    format!("flows/{id}.flow.toml")
}

/// Reason why the hub does not take the flow's file as it is; none if it does, or has not read it.
pub(super) async fn refusal(client: &mut Client, id: &AgentId) -> anyhow::Result<Option<String>> {
    let status = client.call("hub/status", json!({})).await?;
    let file = flow_file(id);
    let refused = list(&status["rejectedPlugins"]).iter().find(|one| one["file"] == file.as_str());
    Ok(refused.map(|refused| text(&refused["error"]).to_owned()))
}

/// True if the flow's file, or its text before an edit, is an agent of the hub.
async fn is_served(client: &mut Client, id: &AgentId) -> anyhow::Result<bool> {
    let agents = client.call("hub/agents/list", json!({})).await?;
    let file = flow_file(id);
    Ok(list(&agents).iter().any(|agent| agent["source"] == file.as_str()))
}

/// True if the data directory has a file for the flow.
fn has_file(global: &Global, id: &AgentId) -> bool {
    let is_there = |dir: PathBuf| dir.join(flow_file(id)).symlink_metadata().is_ok();
    global.data_dir().is_ok_and(is_there)
}

/// Waits until the flow is an agent of the hub. Returns why it is none after `timeout`; if the
/// file is new, a refusal of the hub counts at once.
pub(super) async fn joined(
    client: &mut Client,
    id: &AgentId,
    timeout: Duration,
    is_new: bool,
) -> anyhow::Result<Option<String>> {
    let until = Instant::now() + timeout;
    loop {
        let refused = refusal(client, id).await?;
        let is_there = is_served(client, id).await?;
        match refused {
            None if is_there => return Ok(None),
            Some(why) if is_new || Instant::now() >= until => return Ok(Some(why)),
            None if Instant::now() >= until => {
                let why = "the hub has not read its file yet; `a2a-hub flow list` shows it";
                return Ok(Some(why.to_owned()));
            }
            None | Some(_) => sleep(POLL_INTERVAL).await,
        }
    }
}

/// Waits until the hub has read the flow file of an agent that it does not know, as the error `why`
/// says; false for other errors, and if no file has the agent's name.
///
/// # Errors
///
/// The hub keeps the file from being an agent, for example until it is trusted.
pub(crate) async fn joins_late(
    global: &Global,
    client: &mut Client,
    name: &str,
    why: &anyhow::Error,
) -> anyhow::Result<bool> {
    let is_unknown = CommandError::from_error(why).is(NO_AGENT);
    let Some(id) = AgentId::parse(name).ok().filter(|_| is_unknown) else { return Ok(false) };
    if !has_file(global, &id) {
        return Ok(false);
    }
    let why = match joined(client, &id, SHORT_READ_TIMEOUT, true).await {
        // A program of an agent may not read the hub's status.
        Err(why) if CommandError::from_error(&why).is_denied() => return Ok(false),
        Ok(None) => return Ok(true),
        joined => joined?.unwrap_or_default(),
    };
    let mend = match why.starts_with("held back") {
        true => format!("a2a-hub flow trust {id}"),
        false => "a2a-hub flow list".to_owned(),
    };
    let why = format!("the flow `{id}` is no agent: {why}");
    Err(CommandError::new(NO_AGENT, why).mended_by(mend).into())
}

/// Notes that the hub runs an earlier text of an edited flow, because nobody has trusted the new
/// one.
pub(crate) async fn say_edited(
    global: &Global,
    client: &mut Client,
    name: &str,
) -> anyhow::Result<()> {
    let Ok(id) = AgentId::parse(name) else { return Ok(()) };
    if !has_file(global, &id) {
        return Ok(());
    }
    let refused = match refusal(client, &id).await {
        // A program of an agent may not read the hub's status.
        Err(why) if CommandError::from_error(&why).is_denied() => return Ok(()),
        refused => refused?,
    };
    if refused.is_some() && is_served(client, &id).await? {
        let note = format!(
            "the flow {id} was edited, and its earlier text runs: `a2a-hub flow list` says why; \
             `a2a-hub flow trust {id}` trusts the new one"
        );
        global.console().note(note);
    }
    Ok(())
}

/// Refuses a data directory that the running hub does not use.
pub(super) fn require_data_dir(global: &Global) -> anyhow::Result<()> {
    other_data_dir(global)?.map_or(Ok(()), |why| bail!(why))
}

/// Reason why the hub on the socket does not read files of the data directory; none if it does.
fn other_data_dir(global: &Global) -> anyhow::Result<Option<String>> {
    let dir = global.data_dir()?;
    let run = running_hub::read_if_running(&dir);
    let of_dir = run.as_ref().and_then(running_hub::socket).and_then(|it| it.canonicalize().ok());
    let Ok(socket) = global.socket_path() else { return Ok(None) };
    if socket.canonicalize().ok() == of_dir {
        return Ok(None);
    }
    let (socket, dir) = (socket.display(), dir.display());
    Ok(Some(format!(
        "the hub on {socket} does not use the data directory {dir}; name the hub's with `--data-dir`"
    )))
}

/// Waits for the hub, if one runs. Returns why the flow is no agent of it.
pub(super) fn joined_running_hub(
    global: &Global,
    id: &AgentId,
    is_new: bool,
) -> anyhow::Result<Option<String>> {
    let other = other_data_dir(global)?;
    if global.socket_path().is_err() {
        return Ok(None);
    }
    block_on(async {
        // The file is there, whatever the hub says.
        let Ok(mut client) = Client::connect(global).await else { return Ok(None) };
        if other.is_some() {
            return Ok(other);
        }
        let mut progress = global.progress("the hub", true);
        let read = joined(&mut client, id, READ_TIMEOUT, is_new);
        progress.during("reading the flow", read).await
    })
}
