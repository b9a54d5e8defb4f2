//! Gemini CLI as an agent: one `gemini` process a conversation, as long as it is kept.
//!
//! - It speaks the Agent Client Protocol ([`acp`]): it asks before it acts, and streams what it writes and does. It cannot
//!   load a session of its own again (google-gemini/gemini-cli#29288), so a new process is told its conversation so far.
//! - With the setting `mode = "one-shot"` it is told a prompt and answers ([`one_shot`]): it asks nobody, and goes on with
//!   its own sessions.

pub mod one_shot;
pub mod retry;

use std::time::Duration;

use a2a_hub_sdk::cli::acp::{self, Acp, Refusal, Speaker};
use a2a_hub_sdk::cli::{
    self, Action, Check, Cli, Decision, Driver, End, FailureReason, Idle, Job, Kind, Permissions,
    Question,
};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::{Exit, serde_json::Value};

use one_shot::OneShot;

/// The CLI `gemini`, driven on behalf of an A2A client.
pub struct Gemini;

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

    fn command(ctx: &Context, job: &Job) -> Result<Command, Failure> {
        Ok(match Mode::of(ctx)? {
            // Where it tells that it tries again: nowhere else, in this dialect.
            Mode::Acp => command().arg("--acp").env("GEMINI_DEBUG_LOG_FILE", "/dev/stderr"),
            Mode::OneShot => one_shot::command(command(), job),
        })
    }

    fn driver(ctx: &Context, job: &Job) -> Result<Dialect, Failure> {
        match Mode::of(ctx)? {
            Mode::Acp => {
                let directory = acp::directory(job)?;
                Ok(Dialect::Acp(Box::new(Acp::new(job.clone(), directory))))
            }
            Mode::OneShot if !job.choices.mcp_servers.is_empty() => Err(Failure::Invalid(
                "the operator's setting `mcp_servers` needs `mode = \"acp\"`: this mode takes no servers".into(),
            )),
            Mode::OneShot if one_shot::ignores_tools(job) => Err(Failure::Invalid(
                "the operator's setting `allowed_tools` needs `mode = \"acp\"`: this mode asks nobody, so no list answers for \
                 anybody; a message whose metadata has `allowedTools` as an empty list does without them"
                    .into(),
            )),
            Mode::OneShot => Ok(Dialect::OneShot(OneShot::new(job))),
        }
    }

    fn check(ctx: &Context) -> Result<Check, Failure> {
        let directory = ctx.setting("workspace");
        let command = command().arg("--acp");
        acp::check::<Self>(ctx, command, directory.as_deref().unwrap_or("/"))
    }
}

/// How it is talked to.
enum Mode {
    Acp,
    OneShot,
}

impl Mode {
    fn of(ctx: &Context) -> Result<Self, Failure> {
        match ctx.setting("mode").as_deref() {
            None | Some("acp") => Ok(Self::Acp),
            Some("one-shot") => Ok(Self::OneShot),
            Some(mode) => Err(Failure::Invalid(format!(
                "the operator's setting `mode` is `{mode}`, and can be `acp` or `one-shot`"
            ))),
        }
    }
}

/// What is the same in both ways: without it the CLI would start a second process of its own, which takes a second.
fn command() -> Command {
    Command::new("gemini").env("GEMINI_CLI_NO_RELAUNCH", "true").env("NO_COLOR", "1")
}

impl Speaker for Gemini {
    const LOADS: bool = false;
    const SUMS_UP: bool = false;
    const STARTS_SERVERS: Option<&'static str> = Some("only in a directory that its user trusts");

    /// What more than asking is allowed is allowed by us: in a directory that it does not trust, and then runs no hooks and
    /// servers of, the CLI has no other modes.
    fn mode(permissions: Permissions) -> &'static str {
        match permissions {
            Permissions::ReadOnly => "plan",
            Permissions::Ask | Permissions::Edit | Permissions::Full => "default",
        }
    }

    fn end(refusal: &Refusal) -> End {
        let text = refusal.text.as_str();
        match u16::try_from(refusal.code) {
            _ if refusal.code == -32000 || text.contains("API key not valid") => {
                End::LoginNeeded(text.into())
            }
            // Node's word for a connection that was cut.
            Ok(_) if text == "terminated" => End::failed(FailureReason::BrokenStream, text),
            Ok(status @ 400..600) => End::of_status(status, text),
            _ => End::failed(FailureReason::AgentError, text),
        }
    }

    /// Its permission to edit is a mode, which it has in trusted directories only.
    fn keeps_approval(kind: Kind) -> bool {
        kind != Kind::Edit
    }

    /// When the model's stream breaks for the second time, the CLI says that the turn ended, and counts no tokens.
    fn is_whole(result: &Value) -> bool {
        let usage = result["_meta"]["quota"]["model_usage"].as_array();
        usage.is_none_or(|models| !models.is_empty())
    }

    /// What it writes into the answer when an approval for the session changes its mode.
    fn is_remark(text: &str) -> bool {
        text.starts_with("[MODE_UPDATE] ")
    }
}

/// Either way to talk to it.
pub enum Dialect {
    /// The Agent Client Protocol.
    Acp(Box<Acp<Gemini>>),
    /// A prompt and an answer.
    OneShot(OneShot),
}

impl Driver for Dialect {
    fn greet(&mut self) -> Vec<Action> {
        match self {
            Self::Acp(driver) => driver.greet(),
            Self::OneShot(driver) => driver.greet(),
        }
    }

    fn again(&mut self, left: &Idle) -> Option<Vec<Action>> {
        match self {
            Self::Acp(driver) => driver.again(left),
            Self::OneShot(driver) => driver.again(left),
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
        retry::told(line).into_iter().collect()
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
