//! `flow`: lists, shows, checks, tests and creates flow files. The hub's agent `flow` reads them.

use super::{
    RUNNER, completion,
    status::{agents_text, rejected_text},
};
use crate::{
    Exit, Global, ask,
    client::owner::refuse_in_agent_tree,
    ui::{
        failure::CommandError,
        render::{list, text},
        text::Text,
    },
};
use a2a_hub_authoring::flow_template;
use a2a_hub_config::read_text;
use a2a_hub_protocol::{
    id::{AgentId, MessageId},
    member,
};
use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

mod agents;
pub(crate) mod best;
pub(crate) mod broadcast;
pub(crate) mod decide;
pub(crate) mod joined;
pub(crate) mod run;
pub(crate) mod trust;

/// Reason of a refusal: no flow has this name.
const NO_FLOW: &str = "FLOW_NOT_FOUND";

/// Reason of a refusal: a flow has this name.
const FLOW_EXISTS: &str = "FLOW_EXISTS";

/// Most bytes of a file that is read here. The agent `flow` has its own limit.
const MAX_TEXT: u64 = 1 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum Flow {
    /// List the flows, and the flow files with errors
    List,
    /// Print the file of a flow
    Show {
        /// Name of the flow
        #[arg(add = completion::flows())]
        name: String,
        /// Print its steps as a flowchart for Mermaid
        #[arg(long)]
        mermaid: bool,
    },
    /// Check a flow file; its agent is not changed
    Check {
        /// Flow file, or the name of a flow
        #[arg(add = completion::flows())]
        file: PathBuf,
    },
    /// Run a flow file with scripted answers, and print each transition; no agent is called
    Test {
        /// Flow file
        file: PathBuf,
        /// File with the input, the answers of each step, and the expected end
        #[arg(long, value_name = "FAKES")]
        with: PathBuf,
    },
    /// Trust the file of a flow that runs programs, or whose agents may do more than ask
    ///
    /// Shows the file, or how it differs from the one that is trusted, and asks at a terminal.
    Trust {
        /// Name of the flow
        #[arg(add = completion::flows())]
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Trust it no longer
        #[arg(long, conflicts_with = "yes")]
        revoke: bool,
    },
    /// Create the file of a flow in the data directory
    ///
    /// The file has a comment on every choice. Put your own agents, prompts and limits into it.
    New {
        /// Name of the flow
        name: String,
        /// Template of the file; by default a flow with two steps
        #[arg(long, value_name = "TEMPLATE", value_parser = flow_template::NAMES)]
        from: Option<String>,
        /// Agents that take the parts of the template in turn; by default those that are installed
        #[arg(long, value_name = "AGENT", value_delimiter = ',', requires = "from", value_parser = |name: &str| AgentId::parse(name))]
        agents: Vec<AgentId>,
    },
}

pub(crate) fn flow(global: &Global, flow: &Flow) -> anyhow::Result<Exit> {
    let (answer, output): (_, Text) = match flow {
        Flow::List => flows(global)?,
        Flow::Show { name, mermaid } => {
            let text = match fs::read_to_string(file_of(global, &id_of(name)?)?) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => {
                    let message =
                        format!("no flow is called `{name}`; `a2a-hub flow list` lists them");
                    return Err(CommandError::new(NO_FLOW, message)
                        .mended_by("a2a-hub flow list")
                        .into());
                }
                text => text.with_context(|| format!("show the flow {name}"))?,
            };
            if *mermaid {
                let task = request(global, &json!({ "do": "mermaid", "flow": text }))?;
                return answered(global, json!({ "name": name }), "mermaid", &task);
            }
            (json!({ "name": name, "text": text }), text.into())
        }
        Flow::Test { file, with } => {
            let flow = read(file, "test")?;
            let fakes = read(with, "test a flow with")?;
            let task = request(global, &json!({ "do": "test", "flow": flow, "fakes": fakes }))?;
            let about = json!({ "file": file, "with": with });
            return answered(global, about, "passed", &task);
        }
        Flow::Check { file } => {
            let file = &file_or_flow(global, file)?;
            let definition = read(file, "check")?;
            let mut task = request(global, &json!({ "do": "check", "flow": definition }))?;
            agents::check(global, &definition, &mut task)?;
            return answered(global, json!({ "file": file }), "right", &task);
        }
        Flow::Trust { name, yes, revoke } => {
            let id = id_of(name)?;
            return trust::trust(global, &id, &file_of(global, &id)?, *yes, *revoke);
        }
        Flow::New { name, from, agents } => {
            refuse_in_agent_tree("create a flow")?;
            let id = id_of(name)?;
            let path = file_of(global, &id)?;
            let show = format!("a2a-hub flow show {name}");
            match create_file(&path, &flow_template::text(from.as_deref(), agents)) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                    let message = format!(
                        "create the flow `{name}`: {} exists already; `{show}` prints it; take another name",
                        path.display()
                    );
                    return Err(CommandError::new(FLOW_EXISTS, message).mended_by(show).into());
                }
                created => created.with_context(|| format!("create {}", path.display()))?,
            }
            let then = match joined::joined_running_hub(global, &id, true)? {
                None => format!("then: a2a-hub run {name} TEXT"),
                Some(why) => why,
            };
            let message = format!("created {}; {then}\n", path.display());
            (json!({ "name": name, "path": path }), message.into())
        }
    };
    global.show(&answer, || Ok(output))?;
    Ok(Exit::Done)
}

/// Text of a flow file or of a file of answers.
fn read(file: &Path, action: &str) -> anyhow::Result<String> {
    read_text(file, MAX_TEXT).with_context(|| format!("{action} {}", file.display()))
}

/// Path of a flow file: as it is given, or that of the flow with this name if no such file exists.
fn file_or_flow(global: &Global, file: &Path) -> anyhow::Result<PathBuf> {
    let name = file.to_str().filter(|name| !name.contains(['/', '.']) && !file.exists());
    let of_flow = name.and_then(|name| file_of(global, &AgentId::parse(name).ok()?).ok());
    match of_flow {
        Some(path) if !path.exists() => {
            let why = format!("there is neither this file nor {}", path.display());
            Err(CommandError::new(NO_FLOW, format!("check {}: {why}", file.display()))
                .mended_by("a2a-hub flow list")
                .into())
        }
        Some(path) => Ok(path),
        None => Ok(file.to_owned()),
    }
}

/// Asks the agent `flow`; returns its task, which has ended.
fn request(global: &Global, data: &Value) -> anyhow::Result<Value> {
    let message = json!({ "kind": "message", "messageId": MessageId::fresh(), "role": "user",
        "parts": [{ "kind": "data", "data": data }], "metadata": { "targetAgent": RUNNER } });
    ask(global, "message/send", json!({ "message": message }))
}

/// Prints the answer of the agent `flow`. The member `is_right` of the JSON output says whether
/// the task completed; so does the exit status.
fn answered(
    global: &Global,
    mut about: Value,
    is_right: &str,
    task: &Value,
) -> anyhow::Result<Exit> {
    let message = text(&task["status"]["message"]["parts"][0]["text"]);
    let done = task["status"]["state"] == "completed";
    member::set(&mut about, is_right, done);
    member::set(&mut about, "text", message);
    global.show(&about, || Ok(format!("{}\n", message.trim_end()).into()))?;
    Ok(if done { Exit::Done } else { Exit::TaskFailed })
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
    } else if list(&agents).is_empty() {
        let mut shown = Text::new();
        rejected_text(&mut shown, &rejected, global.console().columns());
        shown
    } else {
        agents_text(&agents, &rejected, global.console().columns())
    };
    Ok((json!({ "flows": agents, "rejected": rejected }), shown))
}

/// Creates a flow file, in a folder that is made if it is missing, for this user only.
fn create_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn id_of(name: &str) -> anyhow::Result<AgentId> {
    AgentId::parse(name).context("the name of a flow is the id of an agent")
}

/// File of a flow in the data directory.
fn file_of(global: &Global, id: &AgentId) -> anyhow::Result<PathBuf> {
    Ok(global.data_dir()?.join(joined::flow_file(id)))
}
