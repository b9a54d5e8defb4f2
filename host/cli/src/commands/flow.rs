//! `flow`: lists, shows, checks and creates flow files. The hub's agent `flow` checks them.

use super::{completion, status::agents_text};
use crate::{
    Exit, Global, ask,
    client::owner::refuse_below_agent,
    ui::{
        render::{list, text},
        text::Text,
    },
};
use a2a_hub_protocol::id::{AgentId, MessageId};
use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};
use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
};

/// File of a new flow.
const NEW: &str = include_str!("new.flow.toml");

#[derive(Debug, Subcommand)]
pub(crate) enum Flow {
    /// List the flows, and the flow files with errors
    List,
    /// Print the file of a flow
    Show {
        /// Name of the flow
        #[arg(add = completion::agents())]
        name: String,
    },
    /// Check a flow file; its agent is not changed
    Check {
        /// Flow file
        file: PathBuf,
    },
    /// Create the file of a flow with two steps in the data directory
    New {
        /// Name of the flow
        name: String,
    },
}

pub(crate) fn flow(global: &Global, flow: &Flow) -> anyhow::Result<Exit> {
    let (answer, said): (_, Text) = match flow {
        Flow::List => flows(global)?,
        Flow::Show { name } => {
            let text = fs::read_to_string(file_of(global, name)?);
            let text = text.with_context(|| format!("show the flow {name}"))?;
            (json!({ "name": name, "text": text }), text.into())
        }
        Flow::Check { file } => {
            let definition = fs::read_to_string(file);
            let definition = definition.with_context(|| format!("check {}", file.display()))?;
            let message = json!({ "kind": "message", "messageId": MessageId::fresh(), "role": "user",
                "parts": [{ "kind": "text", "text": definition }], "metadata": { "targetAgent": "flow" } });
            let task = ask(global, "message/send", json!({ "message": message }))?;
            let said = text(&task["status"]["message"]["parts"][0]["text"]);
            let is_right = task["status"]["state"] == "completed";
            let answer = json!({ "file": file, "right": is_right, "text": said });
            global.show(&answer, || Ok(format!("{said}\n").into()))?;
            return Ok(if is_right { Exit::Done } else { Exit::TaskFailed });
        }
        Flow::New { name } => {
            refuse_below_agent("create a flow")?;
            let path = file_of(global, name)?;
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let made = made.and_then(|mut file| file.write_all(NEW.as_bytes()));
            made.with_context(|| format!("create {}; the hub makes its folder", path.display()))?;
            let said = format!("created {}; then: a2a-hub send {name} TEXT\n", path.display());
            (json!({ "name": name, "path": path }), said.into())
        }
    };
    global.show(&answer, || Ok(said))?;
    Ok(Exit::Done)
}

/// Agents from flow files, and the files that are not agents.
fn flows(global: &Global) -> anyhow::Result<(Value, Text)> {
    let status = ask(global, "hub/status", json!({}))?;
    let agents = ask(global, "hub/agents/list", json!({}))?;
    let of_flows = |all: &Value, name: &str| -> Value {
        list(all).iter().filter(|it| text(&it[name]).starts_with("flows/")).cloned().collect()
    };
    let agents = of_flows(&agents, "source");
    let rejected = of_flows(&status["rejectedPlugins"], "file");
    let shown = if list(&agents).is_empty() && list(&rejected).is_empty() {
        Text::from("There are no flows; `a2a-hub flow new NAME` creates one.\n".to_owned())
    } else {
        agents_text(&agents, &rejected, global.console().columns())
    };
    Ok((json!({ "flows": agents, "rejected": rejected }), shown))
}

/// File of the flow with this name.
fn file_of(global: &Global, name: &str) -> anyhow::Result<PathBuf> {
    let id = AgentId::parse(name).context("the name of a flow is the id of an agent")?;
    Ok(global.data_dir()?.join("flows").join(format!("{id}.flow.toml")))
}
