//! `run`: runs a flow by its name, or once from a file, as `send` sends a message.

use super::{RUNNER, read};
use crate::{
    Exit, Global,
    commands::{
        completion, duration,
        send::{Send, message_options::input_pair, send},
    },
};
use a2a_hub_protocol::member;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct RunFlow {
    /// Name of a flow, or the path of a flow file, which is run once without becoming an agent
    #[arg(add = completion::agents())]
    flow: String,
    /// Text for the first input that takes one
    #[arg(conflicts_with = "input")]
    text: Option<String>,
    /// Input of the flow; VALUE is JSON, or else text. May be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = input_pair)]
    input: Vec<(String, Value)>,
    /// Directory in which the agents work [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Directory in which the agents work as well. May be given several times
    #[arg(long = "add-dir", value_name = "DIR", conflicts_with = "worktree")]
    additional: Vec<PathBuf>,
    /// Work in a worktree: a working copy of the directory's git repository that starts from BASE.
    /// `task diff` shows the changes, `task apply` takes them over
    #[arg(
        long,
        value_name = "BASE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "HEAD"
    )]
    worktree: Option<String>,
    /// Print the answer while it arrives
    #[arg(long)]
    stream: bool,
    /// Print the task's id as soon as the task exists, and leave the task running
    #[arg(long, conflicts_with_all = ["stream", "save"])]
    detach: bool,
    /// Directory in which the flow's files are saved; existing files are never overwritten
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Time limit of the flow, such as `30m`; a bare number counts milliseconds
    #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
    timeout: Option<u64>,
    /// Start the hub first if it does not run
    #[arg(long)]
    start: bool,
}

/// Runs a flow, and prints its answer.
pub(crate) fn run(global: &Global, run: RunFlow) -> anyhow::Result<Exit> {
    let input: Map<_, _> = run.input.into_iter().collect();
    let is_file = run.flow.contains('/') || run.flow.ends_with(".toml");
    let (agent, message, data) = if is_file {
        let definition = read(Path::new(&run.flow), "run")?;
        let mut data = json!({ "do": "run", "flow": definition });
        match run.text {
            Some(text) => member::set(&mut data, "text", text),
            None => member::set(&mut data, "input", input),
        }
        (RUNNER.to_owned(), String::new(), Some(data))
    } else {
        let data = run.text.is_none().then_some(Value::Object(input));
        (run.flow, run.text.unwrap_or_default(), data)
    };
    send(
        global,
        Send {
            data,
            cwd: run.cwd,
            additional: run.additional,
            worktree: run.worktree,
            stream: run.stream,
            detach: run.detach,
            save: run.save,
            timeout: run.timeout,
            start: run.start,
            ..Send::to(agent, message)
        },
    )
}
