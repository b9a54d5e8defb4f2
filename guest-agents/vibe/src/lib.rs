//! Mistral Vibe as an agent: one `vibe-acp` process per conversation, reused while it is parked,
//! which speaks the Agent Client Protocol.

use std::time::Duration;

use a2a_hub_sdk::cli::acp::{self, Acp, DirectorySupport, Offered, Refusal, Speaker};
use a2a_hub_sdk::cli::{self, Check, Cli, End, FailureReason, Job, Permissions};
use a2a_hub_sdk::prelude::*;

/// Default time for the CLI's retries, unless the operator sets `retry_timeout`. The CLI's own
/// default is five minutes; after this time the client may decide.
const RETRIES: Duration = Duration::from_secs(20);

/// Environment variable that sets the model of a run.
const MODEL: &str = "VIBE_ACTIVE_MODEL";

/// Agent that drives the CLI `vibe-acp` for an A2A client.
pub struct Vibe;

impl Agent for Vibe {
    fn card() -> Card {
        cli::card::<Self>(
            "Mistral's coding agent: reads, explains and changes code, and runs commands, asking before it does",
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        cli::run::<Self>(ctx, task)
    }

    fn health(ctx: &Context) -> Health {
        cli::health::<Self>(ctx)
    }
}
export!(Vibe, manifest = "../manifest.toml");

impl Cli for Vibe {
    type Driver = Acp<Self>;

    const NAME: &'static str = "Mistral Vibe";
    const PROGRAM: &'static str = "vibe-acp";
    const TESTED: &'static str = "3.0.2";
    const INSTALL: &'static str = "uv tool install mistral-vibe";
    const LOGIN: &'static str = "vibe --setup";
    // The CLI takes two seconds to start.
    const CHECK_EVERY: Duration = Duration::from_secs(30 * 60);
    const TAKES_DIRECTORIES: bool = true;

    fn command(ctx: &Context, job: &Job) -> Result<Command, Failure> {
        Ok(match &job.choices.model {
            Some(model) => command(ctx).env(MODEL, model),
            None => command(ctx),
        })
    }

    fn driver(_: &Context, job: &Job) -> Result<Acp<Self>, Failure> {
        Ok(Acp::new(Self, job.clone(), acp::directory(job)?))
    }

    fn check(ctx: &Context) -> Result<Check, Failure> {
        let directory = ctx.setting("workspace");
        let directory = directory.as_deref().unwrap_or("/");
        acp::check(ctx, &mut Acp::new(Self, Job::default(), directory), command(ctx))
    }
}

/// Command of a run. Vibe ignores hooks, servers and rules of an untrusted directory.
fn command(ctx: &Context) -> Command {
    let seconds = cli::retry_timeout(ctx).unwrap_or(RETRIES).as_secs();
    Command::new("vibe-acp")
        .env("VIBE_API_RETRY_MAX_ELAPSED_TIME", seconds.to_string())
        .env("VIBE_ENABLE_TELEMETRY", "false")
        .env("VIBE_ENABLE_UPDATE_CHECKS", "false")
        .env("VIBE_ENABLE_AUTO_UPDATE", "false")
        .env("VIBE_EXPERIMENTS", r#"{"enable":false}"#)
}

impl Speaker for Vibe {
    const LOADS: bool = true;
    const DIRECTORIES: DirectorySupport = DirectorySupport::Always;
    // It echoes the prompt within milliseconds, and takes a quarter of a second to set a mode.
    const ACKNOWLEDGES: bool = true;
    // A choice within a session becomes the operator's own setting, and a variable overrules it.
    const MODEL_VARIABLE: Option<&str> = Some(MODEL);

    fn vendor(&self) -> &str {
        "vibe"
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn sums_up(&self) -> bool {
        true
    }

    fn mode(&mut self, job: &Job, _: &Offered) -> Result<Option<String>, String> {
        let mode = match job.permissions {
            // Its default mode changes files without asking.
            Permissions::Ask | Permissions::ReadOnly => "ask",
            Permissions::Edit => "accept-edits",
            Permissions::Full => "auto-approve",
        };
        Ok(Some(mode.to_owned()))
    }

    /// The codes are those of `vibe/acp/exceptions.py`.
    fn end(&self, refusal: &Refusal) -> End {
        let text = refusal.text.as_str();
        match (refusal.code, status(text)) {
            (-32000, _) => End::LoginNeeded(text.into()),
            (-31002, _) if text.contains("API key") => End::LoginNeeded(text.into()),
            (-31001, _) => End::failed(FailureReason::RateLimited, text),
            (-31003 | -31004, _) => End::failed(FailureReason::MaxTokens, text),
            (-31005, _) => End::failed(FailureReason::Refused, text),
            (-32603, Some(status)) => End::of_status(status, text),
            (-32603, None) if text.contains("finish reason") || text.starts_with("peer closed") => {
                End::failed(FailureReason::BrokenStream, text)
            }
            (-32603 | -31002, None) => End::failed(FailureReason::ApiError, text),
            _ => End::failed(FailureReason::AgentError, text),
        }
    }

    fn words(&self, prompt: &str) -> String {
        acp::plain(&without_mentions(prompt))
    }
}

/// Status in "Server error '500 Internal Server Error' for url …".
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once(" error '")?;
    rest.split(' ').next()?.parse().ok()
}

/// Prompt with a space after each `@` that names a path outside the task's directory: Vibe would
/// read a picture there without asking. Names like `@scope/package` stay unchanged.
fn without_mentions(prompt: &str) -> String {
    let mut words = String::with_capacity(prompt.len());
    let mut before = None;
    for (at, char) in prompt.char_indices() {
        words.push(char);
        let begins = before.is_none_or(|char: char| !char.is_alphanumeric() && char != '_');
        if char == '@' && begins && names_elsewhere(&prompt[at + 1..]) {
            words.push(' ');
        }
        before = Some(char);
    }
    words
}

/// True if the text begins with a path, quoted or not, that could lead out of a directory.
fn names_elsewhere(text: &str) -> bool {
    let (path, _) = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split_once(quote).unwrap_or((&text[1..], "")),
        _ => text.split_once(char::is_whitespace).unwrap_or((text, "")),
    };
    path.starts_with(['/', '~', '\\']) || path.contains("..")
}
