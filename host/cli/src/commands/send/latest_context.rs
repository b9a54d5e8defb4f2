//! Latest conversation of an agent in a directory, for `send --continue`.

use super::{options::Send, request::named_directory};
use crate::{
    client::hub_client::Client,
    ui::render::{list, text},
};
use a2a_hub_protocol::member;
use anyhow::bail;
use serde_json::json;

/// Returns the latest conversation with the agent whose latest task works in this message's
/// directory.
pub(super) async fn latest_context(client: &mut Client, send: &Send) -> anyhow::Result<String> {
    let directory = named_directory(send)?;
    let mut params = json!({ "agentId": send.agent, "limit": 1, "historyLength": 0 });
    if let Some(directory) = &directory {
        member::set(&mut params, "workingDirectory", directory.as_str());
    }
    let tasks = client.call("hub/tasks/list", params).await?;
    if let [task, ..] = list(&tasks) {
        return Ok(text(&task["contextId"]).to_owned());
    }
    bail!(
        "continue with `{}`: there is no conversation with it in {}; leave out `--continue`, or \
         give `--context ID` (`a2a-hub conversations` lists them)",
        send.agent,
        directory.as_deref().unwrap_or("the hub")
    )
}
