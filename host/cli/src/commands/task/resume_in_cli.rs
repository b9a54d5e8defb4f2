//! `task resume-in-cli`: continues the session of a task in the vendor's own program.

use crate::commands::completion;
use crate::{
    Exit, Format, Global, ask, block_on,
    client::{hub_client::Client, sent},
    ui::{
        failure::CommandError,
        render::{shell_word, text},
    },
};
use a2a_hub_config as config;
use a2a_hub_core::task::vendor_session::{NoVendorSession, VendorCommand};
use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use std::process::{Command, ExitStatus};

/// Reason of a refusal: the task has no session that could be continued.
const NO_SESSION: &str = "NO_SESSION";

#[derive(Debug, Args)]
pub(crate) struct ResumeInCli {
    /// Id of the task, or a unique beginning or end of it [default: the latest task in the current
    /// directory]
    #[arg(add = completion::tasks())]
    id: Option<String>,
    /// Print the command and do not run it
    #[arg(long)]
    print: bool,
}

pub(super) fn resume_in_cli(global: &Global, args: &ResumeInCli) -> anyhow::Result<Exit> {
    let (id, task) = block_on(async {
        let mut client = Client::connect(global).await?;
        let id = sent::resolve_or_latest(global, &mut client, args.id.as_deref()).await?;
        let task = client.call("tasks/get", json!({ "id": id })).await?;
        anyhow::Ok((id, task))
    })?;
    let tree = ask(global, "hub/tasks/tree", json!({ "id": id }))?;
    let agent = text(&tree["tasks"][0]["agentId"]);
    let resume = VendorCommand::for_task(&task, agent).map_err(|why| {
        let fix = format!("a2a-hub send {agent} --task {id}");
        let by_hub = matches!(why, NoVendorSession::Unreported { .. });
        let why =
            CommandError::new(NO_SESSION, format!("continue task `{id}` in a program: {why}"));
        if by_hub { why.mended_by(fix) } else { why }
    })?;
    if args.print || global.format == Format::Json || !global.console().is_attended() {
        let output = json!({ "taskId": id, "command": resume.words, "directory": resume.dir });
        global.show(&output, || Ok(format!("{}\n", typed(&resume)).into()))?;
        return Ok(Exit::Done);
    }
    global.console().note(format!("{}\n", typed(&resume)));
    run(&resume)
}

/// Returns the command as a user types it.
fn typed(VendorCommand { words, dir }: &VendorCommand) -> String {
    // No word needs quotes: the session's characters were checked.
    let words = words.join(" ");
    match dir {
        Some(dir) => format!("cd {} && {words}", shell_word(&dir.display().to_string())),
        None => words,
    }
}

/// Replaces this process by the program, or waits for the program.
#[expect(clippy::disallowed_methods, reason = "the program is the user's, not the hub's")]
fn run(resume: &VendorCommand) -> anyhow::Result<Exit> {
    let [program, args @ ..] = &resume.words;
    let path = config::find_program(program).with_context(|| {
        format!("run `{program}`: it is not on your PATH; `a2a-hub doctor` says how to get it")
    })?;
    let mut command = Command::new(path);
    command.args(args);
    if let Some(dir) = &resume.dir {
        command.current_dir(dir);
    }
    #[cfg(all(unix, not(feature = "without-unix")))]
    let ended = Err(std::os::unix::process::CommandExt::exec(&mut command));
    // Elsewhere no process can become another one.
    #[cfg(not(all(unix, not(feature = "without-unix"))))]
    let ended = command.status();
    let status: ExitStatus = ended.with_context(|| format!("run `{}`", typed(resume)))?;
    Ok(if status.success() { Exit::Done } else { Exit::TaskFailed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_begins_in_its_directory() {
        let words = ["claude", "--resume", "0a-1"].map(str::to_owned);
        let resume = VendorCommand { words: words.clone(), dir: Some("/my src".into()) };
        assert_eq!(typed(&resume), "cd '/my src' && claude --resume 0a-1");
        assert_eq!(typed(&VendorCommand { words, dir: None }), "claude --resume 0a-1");
    }
}
