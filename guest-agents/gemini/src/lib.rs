//! Gemini CLI as an agent: one `gemini` process per conversation, reused while it is parked.
//!
//! - It speaks the Agent Client Protocol ([`acp`]): it asks before it acts, and streams its output.
//!   It cannot load a session (google-gemini/gemini-cli#29288), so a new process gets the
//!   conversation so far in its prompt.
//! - With the setting `mode = "one-shot"` it takes a prompt and answers ([`one_shot`]): it asks no
//!   questions, and resumes its own sessions.

pub mod one_shot;
pub mod retry;
pub mod speaker;

use std::time::Duration;

use a2a_hub_sdk::Exit;
use a2a_hub_sdk::cli::acp::{self, Acp};
use a2a_hub_sdk::cli::{self, Action, Check, Cli, Decision, Driver, End, Hub, Idle, Job, Question};
use a2a_hub_sdk::prelude::*;

use one_shot::OneShot;
pub use speaker::Gemini;

impl Agent for Gemini {
    fn card() -> Card {
        cli::card::<Self>(
            "Google's coding agent: reads, explains and changes code, and runs commands, asking before it does",
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
export!(Gemini, manifest = "../manifest.toml");

impl Cli for Gemini {
    type Driver = Dialect;

    const NAME: &'static str = "Gemini CLI";
    const PROGRAM: &'static str = "gemini";
    const TESTED: &'static str = "0.61.0";
    const INSTALL: &'static str = "npm install -g @google/gemini-cli";
    const LOGIN: &'static str = "gemini";
    // The CLI takes a second to start.
    const CHECK_EVERY: Duration = Duration::from_secs(30 * 60);
    const TAKES_DIRECTORIES: bool = true;

    fn command(ctx: &Context, job: &Job) -> Result<Command, Failure> {
        let command = with_directories(command(), &job.additional)?;
        Ok(match CliDialect::from_settings(ctx)? {
            // In this dialect only the debug log reports retries.
            CliDialect::Acp => with_blackboard_tools(command.arg("--acp"), job)
                .env("GEMINI_DEBUG_LOG_FILE", "/dev/stderr"),
            CliDialect::OneShot => one_shot::command(command, job),
        })
    }

    fn driver(ctx: &Context, job: &Job) -> Result<Dialect, Failure> {
        match CliDialect::from_settings(ctx)? {
            CliDialect::Acp => {
                let directory = acp::directory(job)?;
                Ok(Dialect::Acp(Box::new(Acp::new(Self, job.clone(), directory))))
            }
            CliDialect::OneShot if !job.choices.mcp_servers.is_empty() => Err(Failure::Invalid(
                "the operator's setting `mcp_servers` needs `mode = \"acp\"`: this mode takes no servers".into(),
            )),
            CliDialect::OneShot if one_shot::ignores_tools(job) => Err(Failure::Invalid(
                "the operator's setting `allowed_tools` needs `mode = \"acp\"`: this mode asks nobody, so no list answers for \
                 anybody; a message whose metadata has `allowedTools` as an empty list does without them"
                    .into(),
            )),
            CliDialect::OneShot => Ok(Dialect::OneShot(OneShot::new(job))),
        }
    }

    fn check(ctx: &Context) -> Result<Check, Failure> {
        let directory = ctx.setting("workspace");
        let directory = directory.as_deref().unwrap_or("/");
        let mut driver = Acp::new(Self, Job::default(), directory);
        acp::check(ctx, &mut driver, command().arg("--acp"))
    }
}

/// Dialect of the CLI.
enum CliDialect {
    Acp,
    OneShot,
}

impl CliDialect {
    fn from_settings(ctx: &Context) -> Result<Self, Failure> {
        match ctx.setting("mode").as_deref() {
            None | Some("acp") => Ok(Self::Acp),
            Some("one-shot") => Ok(Self::OneShot),
            Some(mode) => Err(Failure::Invalid(format!(
                "the operator's setting `mode` is `{mode}`, and can be `acp` or `one-shot`"
            ))),
        }
    }
}

/// Command with the settings of both dialects. Without the first variable the CLI would start a
/// second process, which takes a second.
fn command() -> Command {
    Command::new("gemini").env("GEMINI_CLI_NO_RELAUNCH", "true").env("NO_COLOR", "1")
}

/// Adds the additional directories. The CLI reads the argument as a list with commas between the
/// paths, and cuts blanks at their ends off.
fn with_directories(command: Command, directories: &[String]) -> Result<Command, Failure> {
    let is_unfit = |path: &&String| path.contains(',') || path.trim() != path.as_str();
    match directories.iter().find(is_unfit) {
        Some(unfit) => Err(Failure::Invalid(format!(
            "`additionalDirectories`: Gemini CLI takes no path with a comma, or with a blank at its end, and `{unfit}` has one; \
             rename the directory, or name one that contains it"
        ))),
        None if directories.is_empty() => Ok(command),
        None => Ok(command.args(["--include-directories", &directories.join(",")])),
    }
}

/// Allows the hub's tools for blackboards in a turn at one. The mode `plan`, in which a read-only
/// run works, denies every tool of a server that is not marked as reading only; the argument has
/// precedence over that rule.
fn with_blackboard_tools(command: Command, job: &Job) -> Command {
    if job.choices.blackboard.is_none() {
        return command;
    }
    let tools = Hub::BLACKBOARD_TOOLS.map(|tool| format!("mcp_{}_{tool}", Hub::NAME));
    command.args(["--allowed-tools", &tools.join(",")])
}

/// Driver of either dialect.
pub enum Dialect {
    /// Agent Client Protocol.
    Acp(Box<Acp<Gemini>>),
    /// Prompt and answer.
    OneShot(OneShot),
}

impl Driver for Dialect {
    fn greet(&mut self) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.greet(),
            Self::OneShot(driver) => driver.greet(),
        }
    }

    fn again(&mut self, idle: &Idle) -> Option<Vec<Action>> {
        match self {
            Self::Acp(driver) => driver.again(idle),
            Self::OneShot(driver) => driver.again(idle),
        }
    }

    fn idle(&self) -> Option<Idle> {
        match self {
            Self::Acp(driver) => driver.idle(),
            Self::OneShot(driver) => driver.idle(),
        }
    }

    fn begin(&mut self) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.begin(),
            Self::OneShot(driver) => driver.begin(),
        }
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.line(line),
            Self::OneShot(driver) => driver.line(line),
        }
    }

    fn complaint(&mut self, line: &str) -> Vec<Action> {
        retry::parse(line).into_iter().collect()
    }

    fn quiet(&mut self) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.quiet(),
            Self::OneShot(driver) => driver.quiet(),
        }
    }

    fn interrupt(&mut self) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.interrupt(),
            Self::OneShot(driver) => driver.interrupt(),
        }
    }

    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.decided(question, decision),
            Self::OneShot(driver) => driver.decided(question, decision),
        }
    }

    fn ended(&self, exit: &Exit) -> End {
        match self {
            Self::Acp(driver) => driver.ended(exit),
            Self::OneShot(driver) => driver.ended(exit),
        }
    }
}
