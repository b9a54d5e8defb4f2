//! `agent available`, `add` and `remove`: agents that drive a program of the Agent Client Protocol,
//! in the configuration file.

use crate::{
    Exit, Global, block_on,
    client::owner::{Owner, refuse_in_agent_tree},
    commands::{plugin::component::require_free_name, restart::reloaded_text},
    ui::{failure::CommandError, render::list, table::Table, text::Text},
};
use a2a_hub_config::{acp_command, add_acp_agent, catalogue, remove_acp_agent};
use a2a_hub_protocol::id::AgentId;
use serde_json::{Value, json};
use std::path::Path;

/// Reason of the refusal to add a program that is missing.
const NOT_INSTALLED: &str = "NOT_INSTALLED";

pub(super) fn available(global: &Global) -> anyhow::Result<Exit> {
    let all = catalogue::available(&global.settings(Vec::new())?.config);
    global.show(&json!(all), || {
        let mut table = Table::new(["AGENT", "STATE", "INSTALL"]);
        for it in &all {
            table.row([it.id.into(), it.state.into(), it.install.as_str().into()]);
            table.add_note(format!("{}: {}", it.name, it.description));
        }
        Ok(table.text(global.console().columns()))
    })?;
    Ok(Exit::Done)
}

pub(super) fn add(global: &Global, name: &str, command: &[String]) -> anyhow::Result<Exit> {
    let id = agent_id(name)?;
    require_free_name(&id)?;
    let command = acp_command(&id, command).map_err(|why| match why.install() {
        Some(install) => CommandError::new(NOT_INSTALLED, why.to_string()).mended_by(install),
        None => CommandError::usage(why.to_string()),
    })?;
    change(global, &id, "added to", |file| Ok(add_acp_agent(file, &id, command)?))
}

pub(super) fn remove(global: &Global, name: &str) -> anyhow::Result<Exit> {
    let id = agent_id(name)?;
    change(global, &id, "removed from", |file| Ok(remove_acp_agent(file, &id)?))
}

fn agent_id(name: &str) -> Result<AgentId, CommandError> {
    AgentId::parse(name).map_err(|why| CommandError::usage(why.to_string()))
}

/// Changes the configuration file, and has a running hub read it again.
fn change(
    global: &Global,
    id: &AgentId,
    done: &str,
    edit: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let action = format!("change the agent `{id}`");
    refuse_in_agent_tree(&action)?;
    let dir = global.data_dir()?;
    let file = global.settings(Vec::new())?.file.unwrap_or_else(|| dir.join("config.toml"));
    let reloaded = block_on(async {
        let mut owner = Owner::for_data_dir(global, &dir, &action).await?;
        if let Owner::Hub(client) = &mut owner {
            // The hub refuses callers that are not its operator, before anything is written.
            client.call("hub/plugins/list", json!({})).await?;
        }
        edit(&file)?;
        match owner {
            Owner::Hub(mut client) => client.call("hub/reload", json!({})).await.map(Some),
            Owner::Command => Ok(None),
        }
    })?;
    let is_omitted = reloaded.as_ref().is_some_and(|report| !list(&report["leftOut"]).is_empty());
    let prefix = format!("agents.{id}.");
    let is_its = |name: &Value| name.as_str().is_some_and(|name| name.starts_with(&prefix));
    let is_unread =
        reloaded.as_ref().is_some_and(|report| !list(&report["changed"]).iter().any(is_its));
    let answer = json!({ "agentId": id, "file": &file, "reloaded": reloaded });
    global.show(&answer, || {
        let mut text = Text::from(format!("agent {id} was {done} {}\n", file.display()));
        match &reloaded {
            Some(_) if is_unread => text.append(
                "the running hub does not read this file; name its own with `--config`\n".into(),
            ),
            Some(reloaded) => text.append(reloaded_text(reloaded)?),
            None => text.append("the hub reads it at its next start\n".into()),
        }
        Ok(text)
    })?;
    Ok(if is_omitted || is_unread { Exit::Fault } else { Exit::Done })
}
