//! Agents that drive another program: a command line agent that talks and listens in lines of JSON.
//!
//! ```text
//! task ─► Job: prompt, images, session, permissions ─► Cli: the command and a Driver
//!                                                              │
//!              ┌── Action ◄── Driver ◄── a line ◄── the program┘
//!              ▼
//!   run, talk: tells it, asks the client beside it, remembers the session, until Action::End
//! ```
//!
//! A program that has answered, and has nothing left to do, is [kept](Idle) for the next turn of its conversation.
//!
//! A vendor's dialect is a [`Driver`]: a state machine that turns lines into actions and touches nothing, so that it is
//! tested on recorded transcripts. [`Cli`] says how the program is started and how to see that it would work. Everything
//! that a client can notice (sessions, approvals, logins, files, failures) is done here, once, so that all such agents
//! behave alike.

pub mod acp;
mod change;
mod choices;
mod handed_over;
mod health;
mod hub;
mod idle;
mod kept;
mod parked;
mod permission;
mod prompt;
mod reason;
mod retold;
mod run;
mod session;
mod sessions;
mod talk;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Card, Command, Context, Exit, Failure};

pub use change::FileChange;
pub use choices::Choices;
pub use health::{health, program_version};
pub use hub::Hub;
pub use idle::Idle;
pub use permission::{Decision, Kind, Permissions, Question, answer_text, is_below};
pub use prompt::{Attachment, Job};
pub use reason::FailureReason;
pub use run::run;
pub use session::Session;
pub use talk::retry_timeout;
pub use words::{cut, describe_exit, last_words, running};

/// A vendor's program: what is special about it.
pub trait Cli {
    /// Its dialect.
    type Driver: Driver;

    /// Its name for people.
    const NAME: &'static str;
    /// The program, as the manifest calls it.
    const PROGRAM: &'static str;
    /// The version that the driver was tested with.
    const TESTED: &'static str;
    /// The operator's way to the program.
    const INSTALL: &'static str;
    /// The operator's way to log in.
    const LOGIN: &'static str;
    /// How long a good check counts: longer for one that costs a second of the machine's time.
    const CHECK_EVERY: Duration = Duration::ZERO;
    /// Whether [`Cli::command`] or the driver hands over the operator's instructions; otherwise they begin a conversation's first prompt.
    const TAKES_INSTRUCTIONS: bool = false;
    /// Whether [`Cli::command`] writes the operator's instructions and servers to files, and names them.
    const NAMES_FILES: bool = false;
    /// The longest prompt that the program takes, in characters.
    const MAX_PROMPT_CHARS: usize = usize::MAX;

    /// How the program is started for a job. The prompt never belongs in the command: an argument may be taken for an option,
    /// and every user of the machine sees it.
    fn command(ctx: &Context, job: &Job) -> Result<Command, Failure>;

    /// The driver of a turn of that job.
    fn driver(ctx: &Context, job: &Job) -> Result<Self::Driver, Failure>;

    /// Which version is installed, and whether it is logged in: [`Failure::Unavailable`] if it is not there.
    fn check(ctx: &Context) -> Result<Check, Failure>;
}

/// The card of an agent that drives a program: what all of them can do. `about` says in a sentence whose program it is, and
/// `version` which version of the agent.
pub fn card<C: Cli>(about: &str, version: &str) -> Card {
    Card::new(C::NAME, about, version)
        .input("*/*")
        .output("text/markdown")
        .output("text/x-diff")
        .skill("code", "Write code", "Writes and changes code in a workspace", &["code", "edit"])
        .example("Add a --json flag to the list command, with a test")
        .skill("explain", "Explain code", "Reads a workspace and explains it", &["code", "review"])
        .example("Why does the login test fail now and then?")
        .skill("shell", "Run commands", "Builds, tests and uses git, with approval", &["shell"])
        .example("Run the tests and fix what is broken")
}

/// One turn of a program in its dialect. Lines and members that it does not know are ignored: dialects grow with every
/// release.
///
/// ```text
/// a program that was just started    greet, begin ─► line, complaint, decided ─► Action::End ─► idle
/// one that was started ahead         (greet) begin ─► …
/// one that is kept from a turn       again ─► …
/// ```
pub trait Driver {
    /// What to tell a program that has just started, whatever it is started for.
    fn greet(&mut self) -> Vec<Action> {
        Vec::new()
    }

    /// What to tell it then, before it has said anything.
    fn begin(&mut self) -> Vec<Action>;

    /// In place of [`greet`](Self::greet) and [`begin`](Self::begin): what to tell a program that has answered a turn of this
    /// conversation and was [left so](Self::idle). None where that cannot be.
    fn again(&mut self, _left: &Idle) -> Option<Vec<Action>> {
        None
    }

    /// How the turn leaves the program, after an answer: none where it may have something left to do, or is good for one turn.
    fn idle(&self) -> Option<Idle> {
        None
    }

    /// Takes a line of standard output.
    fn line(&mut self, line: &str) -> Vec<Action>;

    /// Takes a line of standard error.
    fn complaint(&mut self, _line: &str) -> Vec<Action> {
        Vec::new()
    }

    /// Takes what was decided about a question.
    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action>;

    /// The program ended without [`Action::End`]: never a success.
    fn ended(&self, exit: &Exit) -> End;
}

/// What to do about a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Tell the program this line.
    Send(String),
    /// Tell the program that there is no more to be told.
    EndInput,
    /// The program is up, and with it the helpers and servers that stay with it; what it starts from now on is the task's.
    Settled,
    /// Keep this for the next task of the context, as long as the agent's memory has room for it.
    Remember(Session),
    /// A message begins: its text replaces what was streamed before.
    Restart,
    /// Text of the message.
    Delta(String),
    /// Tell what is being done.
    Say(String),
    /// Tell that the program tries again what failed. Should that go on for longer than the operator's `retry_timeout`, the
    /// run ends so.
    Retrying {
        /// What to tell.
        status: String,
        /// How it ends if it goes on.
        end: End,
    },
    /// Have it decided.
    Ask(Box<Question>),
    /// The program takes back the question of that id, or has its answer from elsewhere.
    Withdrawn(Value),
    /// A file was changed.
    Changed(FileChange),
    /// The run is over.
    End(End),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With an answer.
    Completed {
        /// The answer.
        text: String,
        /// Model, usage and cost of this run.
        metadata: Map<String, Value>,
    },
    /// Without one.
    Failed {
        /// The reason, for machines.
        reason: FailureReason,
        /// The vendor's words.
        text: String,
        /// Model, usage and cost of this run.
        metadata: Map<String, Value>,
    },
    /// The program or its API does not know who is asking.
    LoginNeeded(String),
    /// The session to resume is gone.
    SessionLost,
}

impl End {
    /// A failure before there was anything to count.
    pub fn failed(reason: FailureReason, text: impl Into<String>) -> Self {
        Self::Failed { reason, text: text.into(), metadata: Map::new() }
    }

    /// The same, with another text.
    pub(crate) fn after(mut self, words: impl FnOnce(&str) -> String) -> Self {
        if let Self::Failed { text, .. } | Self::LoginNeeded(text) | Self::Completed { text, .. } =
            &mut self
        {
            *text = words(text);
        }
        self
    }

    /// The reason for an HTTP status with which an API refused; none where a login is what is missing.
    pub fn of_status(status: u16, text: impl Into<String>) -> Self {
        match status {
            401 | 403 => Self::LoginNeeded(text.into()),
            429 => Self::failed(FailureReason::RateLimited, text),
            503 | 529 => Self::failed(FailureReason::Overloaded, text),
            _ => Self::failed(FailureReason::ApiError, text),
        }
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The version that is installed.
    pub version: String,
    /// Why work would fail for want of a login.
    pub login_missing: Option<String>,
}
