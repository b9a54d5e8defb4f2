//! How the CLI is started: safely, with the prompt on standard input, and how to see that it would work.

use a2a_hub_sdk::{Command, Context, Exit, Failure, Health, Role, Task};
use serde_json::{Value, json};

/// The operator's way to log in.
pub const LOGIN: &str = "claude /login";

/// The operator's way to the CLI.
pub const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

/// The CLI's own ten retries take minutes; after these two the client may decide.
const RETRIES: &str = "2";

/// How much of the history a new session is told: enough to go on, little enough to leave room for work.
const HISTORY_BYTES: usize = 32 * 1024;

/// The command of a run. The prompt is never in it, for an argument may be taken for an option and is seen by every
/// user of the machine.
pub fn command(task: &Task, resume: Option<&str>) -> Command {
    let mut command = Command::new("claude")
        .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
        .args(["--verbose", "--include-partial-messages"])
        // Asks us, whatever the user's settings allow by default.
        .args(["--permission-prompt-tool", "stdio", "--permission-mode", "default"])
        // A workspace may bring hooks, servers and commands of its own; none of them runs.
        .args(["--setting-sources", "user", "--strict-mcp-config", "--disable-slash-commands"])
        // `@path` in a prompt would read that file, anywhere and without asking. (`--restricted` prevents it too, but
        // takes away the shell; escaping the `@` would spoil names like `@scope/package`.)
        .env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")
        // The run ends with its answer, and with it whatever would go on in the background.
        .env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CLAUDE_CODE_MAX_RETRIES", RETRIES);
    if let Some(model) = model(task) {
        command = command.args(["--model", &model]);
    }
    if let Some(session) = resume {
        command = command.args(["--resume", session]);
    }
    command
}

/// The line that gives the CLI its prompt: the history too, unless a resumed session knows it.
pub fn prompt(task: &Task, resumed: bool) -> String {
    let text = task.text();
    let history = if resumed { String::new() } else { history(task) };
    let content = if history.is_empty() {
        // A leading slash would be a command to the CLI, and refused; after a space it is text to the model.
        if text.starts_with('/') { format!(" {text}") } else { text }
    } else {
        format!("The conversation so far:\n{history}\nGo on with this:\n{text}")
    };
    json!({ "type": "user", "message": { "role": "user", "content": content } }).to_string()
}

/// Whether the CLI is installed and logged in. Asks nobody but the CLI, which answers without the network.
pub fn health(ctx: &Context) -> Health {
    let version = match answer(ctx, &["--version"]) {
        Ok((version, exit)) if exit.success() => version,
        Ok((_, exit)) => return Health::unhealthy(exit.stderr).with_fix(INSTALL),
        Err(Failure::Unavailable(why)) => return Health::unhealthy(why).with_fix(INSTALL),
        Err(failure) => return Health::unhealthy(failure.text()),
    };
    let version = version.split(' ').next().unwrap_or_default();
    let status = answer(ctx, &["auth", "status"]).ok();
    let status: Option<Value> = status.and_then(|(json, _)| serde_json::from_str(&json).ok());
    match status.map(|status| status["loggedIn"] == true) {
        Some(true) => Health::healthy(),
        Some(false) => Health::degraded("claude is not logged in").with_fix(LOGIN),
        None => Health::degraded("claude does not tell whether it is logged in").with_fix(LOGIN),
    }
    .with_version(version)
}

fn answer(ctx: &Context, args: &[&str]) -> Result<(String, Exit), Failure> {
    let mut output = String::new();
    let command = Command::new("claude").args(args.iter().copied());
    let exit = ctx.run_lines(command, |line| {
        output.push_str(line);
        Ok(())
    })?;
    Ok((output, exit))
}

/// The model the client asks for in the task's metadata.
fn model(task: &Task) -> Option<String> {
    let metadata: Value = serde_json::from_str(task.metadata.as_deref()?).ok()?;
    metadata["model"].as_str().map(ToOwned::to_owned)
}

/// The latest messages, oldest first.
fn history(task: &Task) -> String {
    let mut room = HISTORY_BYTES;
    let mut lines: Vec<String> = Vec::new();
    for message in task.history.iter().rev() {
        let speaker = match message.role {
            Role::User => "user",
            Role::Agent => "you",
        };
        let line = format!("{speaker}: {}\n", message.text());
        room = match room.checked_sub(line.len()) {
            Some(room) => room,
            None => break,
        };
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}
