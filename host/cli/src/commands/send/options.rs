//! Options of `send`.

use super::{
    memory_options::Inheriting,
    message_options::{CONVERSATION, MessageOptions, input_pair},
};
use crate::{
    client::remote::RemoteOptions,
    commands::{completion, duration},
};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;

/// Text at the end of `send --help`.
const LEAVING: &str = "\
At a terminal, Ctrl-C asks whether to cancel the task, to detach from it or to go on; a second
Ctrl-C cancels. Elsewhere Ctrl-C cancels the task and waits until its programs have exited, and a
second one exits at once. If the reader of the output closes it (`a2a-hub send ... | head`), the
task is cancelled as well. If the terminal is closed, the task runs on: `a2a-hub task watch`.";

#[derive(Debug, Args)]
#[command(after_long_help = LEAVING, after_help = LEAVING)]
pub(crate) struct Send {
    /// Id of an agent or a group, as listed by `a2a-hub agents`; several as `a,b,c`, which all get
    /// the message; `skill:ID` for any agent with that skill; or the URL of a remote agent
    #[arg(add = completion::agents())]
    pub(crate) agent: String,
    /// Text of the message; `-` reads it from standard input. Without it, a terminal asks for a
    /// line
    #[arg(default_value = "", hide_default_value = true)]
    pub(in crate::commands) message: String,
    /// Member of the message's JSON data, such as an input of a flow; VALUE is JSON, or else text.
    /// May be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = input_pair)]
    pub(in crate::commands) input: Vec<(String, Value)>,
    /// JSON data of the message in place of `input`, set by `run`.
    #[arg(skip)]
    pub(in crate::commands) data: Option<Value>,
    /// True for a remote hub, set by `--hub`.
    #[arg(skip)]
    pub(crate) is_remote: bool,
    /// Rule by which the receivers decide together, set by `decide`.
    #[cfg(feature = "hub")]
    #[arg(skip)]
    pub(in crate::commands) decides: Option<&'static str>,
    /// File to attach. May be given several times
    #[arg(long = "file", value_name = "PATH")]
    pub(in crate::commands) files: Vec<PathBuf>,
    /// Directory in which the agent works [default: the current directory, or the task's]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Directory in which the agent works as well. May be given several times
    #[arg(long = "add-dir", value_name = "DIR", conflicts_with = "worktree")]
    pub(crate) additional: Vec<PathBuf>,
    /// Work in a worktree: a working copy of the directory's git repository that starts from BASE.
    /// `task diff` shows the changes, `task apply` takes them over
    #[arg(
        long,
        value_name = "BASE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "HEAD",
        conflicts_with = "task"
    )]
    pub(crate) worktree: Option<String>,
    /// Print the answer while it arrives
    #[arg(long)]
    pub(crate) stream: bool,
    /// Print the task's id as soon as the task exists, and leave the task running
    #[arg(long, conflicts_with_all = ["stream", "save"])]
    pub(crate) detach: bool,
    /// Directory in which the agent's files are saved; existing files are never overwritten
    #[arg(long, value_name = "DIR")]
    pub(in crate::commands) save: Option<PathBuf>,
    /// Time limit of the task, such as `5s` or `2m`; a bare number counts milliseconds
    #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
    pub(crate) timeout: Option<u64>,
    /// Start the hub first if it does not run
    #[cfg_attr(feature = "hub", arg(long))]
    #[cfg_attr(not(feature = "hub"), arg(skip))]
    pub(crate) start: bool,
    /// Continue this conversation
    #[arg(long, value_name = "ID", help_heading = CONVERSATION, add = completion::contexts())]
    pub(in crate::commands) context: Option<String>,
    /// Continue the latest conversation with this agent in this directory
    #[arg(
        long = "continue",
        help_heading = CONVERSATION,
        conflicts_with_all = ["context", "task"]
    )]
    pub(crate) go_on: bool,
    /// Answer the question of this task
    #[arg(long, value_name = "ID", help_heading = CONVERSATION, add = completion::tasks())]
    pub(in crate::commands) task: Option<String>,
    /// Id of the question to answer; refused if the task asks another question by now
    #[arg(long, value_name = "ID", help_heading = CONVERSATION, requires = "task")]
    pub(in crate::commands) question: Option<String>,
    #[command(flatten)]
    pub(in crate::commands) chosen: MessageOptions,
    #[command(flatten)]
    pub(in crate::commands) inheriting: Inheriting,
    #[command(flatten)]
    pub(crate) elsewhere: RemoteOptions,
}
