//! `flow`: lists, shows, checks and creates flow files. The hub's agent `flow` checks them.

use super::{completion, status::agents_text};
use crate::{
    Exit, Global, ask,
    client::owner::refuse_below_agent,
    ui::{
        render::{list, text},
        text::{PLAIN, Text},
    },
};
use a2a_hub_protocol::id::{AgentId, MessageId};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::{Value, json};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::PathBuf,
};

/// File of a new flow.
const NEW: &str = r#"description = "Answers a question in two steps"

[input]
question = { type = "string" }

[[step]]
id = "draft"
agent = "echo"
prompt = "{{ input.question }}"

[[step]]
id = "review"
needs = ["draft"]
agent = "echo"
prompt = "Review this draft.\n{{ steps.draft.text | data }}"
"#;

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
    match flow {
        Flow::List => flows(global),
        Flow::Show { name } => {
            let (text, name) = (fs::read_to_string(file_of(global, name)?), json!(name));
            let text = text.with_context(|| format!("show the flow {name}"))?;
            global.show(&json!({ "name": name, "text": text }), || Ok(plain(&text)))?;
            Ok(Exit::Done)
        }
        Flow::Check { file } => {
            let definition = fs::read_to_string(file);
            let definition = definition.with_context(|| format!("check {}", file.display()))?;
            let message = json!({
                "kind": "message",
                "messageId": MessageId::fresh(),
                "role": "user",
                "parts": [{ "kind": "text", "text": definition }],
                "metadata": { "targetAgent": "flow" },
            });
            let task = ask(global, "message/send", json!({ "message": message }))?;
            let status = &task["status"];
            let said = list(&status["message"]["parts"]).iter().map(|part| text(&part["text"]));
            let said = said.collect::<Vec<_>>().join("\n");
            let is_right = text(&status["state"]) == "completed";
            let answer = json!({ "file": file, "right": is_right, "text": said });
            global.show(&answer, || Ok(plain(&format!("{said}\n"))))?;
            Ok(if is_right { Exit::Done } else { Exit::TaskFailed })
        }
        Flow::New { name } => {
            refuse_below_agent("create a flow")?;
            let path = file_of(global, name)?;
            let dir = path.parent().unwrap_or(&path);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.with_context(|| format!("make {}", dir.display()))?;
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let made = made.and_then(|mut file| file.write_all(NEW.as_bytes()));
            made.with_context(|| format!("create {}", path.display()))?;
            let next = format!("a2a-hub send {name} \"your question\"");
            let said = format!("created {}; edit it, then: {next}\n", path.display());
            global.show(&json!({ "name": name, "path": path }), || Ok(plain(&said)))?;
            Ok(Exit::Done)
        }
    }
}

/// Lists the agents from flow files, and the files that are not agents.
fn flows(global: &Global) -> anyhow::Result<Exit> {
    let mut status = ask(global, "hub/status", json!({}))?;
    let mut agents = ask(global, "hub/agents/list", json!({}))?;
    let is_flow = |name: &Value| text(name).starts_with("flows/");
    if let Some(agents) = agents.as_array_mut() {
        agents.retain(|agent| is_flow(&agent["source"]));
    }
    let mut rejected = status["rejectedPlugins"].take();
    if let Some(rejected) = rejected.as_array_mut() {
        rejected.retain(|it| is_flow(&it["file"]));
    }
    let answer = json!({ "flows": agents, "rejected": rejected });
    let columns = global.console().columns();
    global.show(&answer, || {
        if list(&agents).is_empty() && list(&rejected).is_empty() {
            return Ok(plain("There are no flows; `a2a-hub flow new NAME` creates one.\n"));
        }
        Ok(agents_text(&agents, &rejected, columns))
    })?;
    Ok(Exit::Done)
}

/// File of the flow with this name.
fn file_of(global: &Global, name: &str) -> anyhow::Result<PathBuf> {
    if let Err(why) = AgentId::parse(name) {
        bail!("the name of a flow is the id of an agent: {why}");
    }
    Ok(global.data_dir()?.join("flows").join(format!("{name}.flow.toml")))
}

fn plain(said: &str) -> Text {
    let mut out = Text::new();
    out.push(PLAIN, said);
    out
}
