//! Safe command line of the CLI, and its health check.

use a2a_hub_sdk::cli::{Check, Job, Permissions, program_version};
use a2a_hub_sdk::{Command, Context, Failure, foreign};
use serde_json::json;

/// Retries of the CLI: its default of ten takes minutes; after two the client may decide.
const RETRIES: &str = "2";

/// All tools of a read-only agent: it cannot ask for any others.
const READING_TOOLS: &str = "Read,Glob,Grep";

/// Command of a run.
pub fn command(ctx: &Context, job: &Job) -> Result<Command, Failure> {
    let mut command = Command::new("claude")
        .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
        .args(["--verbose", "--include-partial-messages"])
        // The CLI asks us, whatever the user's settings allow by default.
        .args(["--permission-prompt-tool", "stdio", "--permission-mode", "default"])
        // A workspace may contain hooks, servers and commands; none of them runs.
        .args(["--setting-sources", "user", "--strict-mcp-config", "--disable-slash-commands"])
        // `@path` in a prompt would read that file, anywhere and without asking. (`--restricted`
        // prevents it too, but removes the shell; escaping the `@` would spoil names like
        // `@scope/package`.)
        .env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")
        // The run ends with its answer, so no background task may go on.
        .env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CLAUDE_CODE_MAX_RETRIES", RETRIES);
    if job.permissions == Permissions::ReadOnly {
        command = command.args(["--tools", READING_TOOLS]);
    }
    if let Some(text) = &job.choices.instructions {
        let path = ctx.put_file("instructions.md", text.as_bytes())?;
        command = command.args(["--append-system-prompt-file", &path]);
    }
    let servers = job.choices.servers();
    if !servers.is_empty() {
        // A file, since servers may contain keys and every user of the machine sees arguments.
        let servers = json!({ "mcpServers": servers }).to_string();
        command =
            command.args(["--mcp-config", &ctx.put_file("servers.json", servers.as_bytes())?]);
    }
    if let Some(model) = &job.choices.model {
        command = command.args(["--model", model]);
    }
    if let Some(effort) = &job.choices.effort {
        command = command.args(["--effort", effort]);
    }
    if let Some(session) = &job.session {
        command = command.args(["--resume", &session.id]);
    }
    if !job.additional.is_empty() {
        // The option takes all arguments that follow.
        command = command.arg("--add-dir").args(job.additional.iter().map(String::as_str));
    }
    Ok(command)
}

/// Checks the version and the login by the CLI alone, which needs no network for this.
pub fn check(ctx: &Context) -> Result<Check, Failure> {
    let version = program_version(ctx, Command::new("claude").arg("--version"))?;
    let mut output = String::new();
    ctx.run_lines(Command::new("claude").args(["auth", "status"]), |line| {
        output.push_str(line);
        Ok(())
    })?;
    let status = foreign::read(&output).ok();
    let login_missing = match status.and_then(|status| foreign::truth(&status["loggedIn"])) {
        Some(true) => None,
        Some(false) => Some("claude is not logged in".to_owned()),
        None => Some("claude does not tell whether it is logged in".to_owned()),
    };
    Ok(Check { version, login_missing })
}
