//! Agents that drive a command line agent of a vendor, which exchanges lines of JSON.
//!
//! ```text
//! task ─► Job: prompt, images, session, permissions ─► Cli: the command and a Driver
//!                                                              │
//!              ┌── Action ◄── Driver ◄── a line ◄── the program┘
//!              ▼
//!   run, talk: reports it, asks the client meanwhile, stores the session, until Action::End
//! ```
//!
//! A program that has answered and is idle is [reused](Idle) for the next turn of its conversation.
//!
//! A vendor's dialect is a [`Driver`]: a state machine that turns lines into actions without any
//! I/O, so recorded transcripts test it. [`Cli`] says how to start and check the program.
//! Everything that clients can notice (sessions, approvals, logins, files, failures) is implemented
//! here once, so that all such agents behave alike.

pub mod acp;
mod activity;
mod change;
mod choices;
mod command_list;
mod commands;
mod conversation;
mod handed_over;
mod health;
mod hub;
mod idle;
mod interrupt;
mod permission;
mod plan;
mod program_record;
mod prompt;
mod question_text;
mod reason;
mod reuse;
mod run;
mod session;
mod sessions;
mod talk;
mod tool_calls;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Artifact, Card, Command, Context, Exit, Failure};

pub use activity::{ToolFacts, context, plan, tool_ended};
pub use change::FileChange;
pub use choices::Choices;
pub use command_list::CommandList;
pub use health::{health, program_version};
pub use hub::Hub;
pub use idle::Idle;
pub use permission::{
    ChoiceKind, Decision, Kind, Permissions, Question, VendorOption, answer_text, is_inside,
};
pub use plan::Plan;
pub use prompt::{Attachment, Job};
pub use reason::FailureReason;
pub use run::run;
pub use session::Session;
pub use talk::retry_timeout;
pub use words::{cut, describe_exit, last_words, running, skipped};

/// Metadata member of a failure for lack of quota: the time of the reset.
const QUOTA_RESETS_AT: &str = "quotaResetsAt";

/// Facts about a program, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name for people.
    pub name: String,
    /// Program, as the manifest calls it.
    pub program: String,
    /// Version that the driver was tested with, if any.
    pub tested: Option<String>,
    /// Command by which the operator installs the program, if known.
    pub install: Option<String>,
    /// Command by which the operator logs in, if known.
    pub login: Option<String>,
}

impl Profile {
    /// Step by which the operator installs the program.
    pub(crate) fn install_step(&self) -> String {
        self.install
            .clone()
            .unwrap_or_else(|| format!("install `{}` as its makers say", self.program))
    }

    /// Steps by which the operator logs in.
    pub(crate) fn login_step(&self) -> String {
        let by_hand = || format!("log in to `{}` as its makers say", self.program);
        self.login.as_ref().map_or_else(by_hand, |command| format!("run `{command}`"))
    }
}

/// Vendor-specific part of an agent that drives a program.
pub trait Cli {
    /// Driver of the program's dialect.
    type Driver: Driver;

    /// Name for people.
    const NAME: &'static str;
    /// Program, as the manifest calls it.
    const PROGRAM: &'static str;
    /// Version that the driver was tested with.
    const TESTED: &'static str;
    /// Command by which the operator installs the program.
    const INSTALL: &'static str;
    /// Command by which the operator logs in.
    const LOGIN: &'static str;
    /// Time for which a good check is cached: longer if a check costs a second of CPU time.
    const CHECK_EVERY: Duration = Duration::ZERO;
    /// True if [`Cli::command`] or the driver passes the operator's instructions. Otherwise they
    /// precede a conversation's first prompt.
    const TAKES_INSTRUCTIONS: bool = false;
    /// True if [`Cli::command`] writes the operator's instructions and servers to files and names
    /// the files.
    const NAMES_FILES: bool = false;
    /// True if clients and the operator may choose the mode of a session.
    const TAKES_MODE: bool = false;
    /// True if [`Cli::command`] or the driver passes the additional directories of a job. Otherwise
    /// a task that names any fails.
    const TAKES_DIRECTORIES: bool = false;
    /// Longest prompt that the program takes, in characters.
    const MAX_PROMPT_CHARS: usize = usize::MAX;

    /// Facts about the program, which are constants unless the agent drives any of several.
    fn profile(_ctx: &Context) -> Profile {
        Profile {
            name: Self::NAME.to_owned(),
            program: Self::PROGRAM.to_owned(),
            tested: Some(Self::TESTED.to_owned()),
            install: Some(Self::INSTALL.to_owned()),
            login: Some(Self::LOGIN.to_owned()),
        }
    }

    /// Command that starts the program for a job. It never contains the prompt: an argument may be
    /// read as an option, and every user of the machine sees it.
    fn command(ctx: &Context, job: &Job) -> Result<Command, Failure>;

    /// Steps by which the operator mends a missing login, other than [`Cli::LOGIN`]; `why` is the
    /// program's reason.
    fn login_steps(_why: &str) -> Option<String> {
        None
    }

    /// Creates the driver of a turn of that job.
    fn driver(ctx: &Context, job: &Job) -> Result<Self::Driver, Failure>;

    /// Checks the installed version and the login; [`Failure::Unavailable`] if the program is not
    /// installed.
    fn check(ctx: &Context) -> Result<Check, Failure>;
}

/// Card of an agent that drives a program, with the skills that all of them have. `about` describes
/// the agent in a sentence, `version` is the agent's version.
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

/// State machine of one turn of a program in its dialect. It ignores lines and members that it does
/// not know: dialects grow with every release.
///
/// ```text
/// newly started program    greet, begin ─► line, complaint, decided ─► Action::End ─► idle
/// started ahead            (greet) begin ─► …
/// parked after a turn      again ─► …
/// cancelled task           interrupt ─► line ─► Action::End ─► idle
/// ```
pub trait Driver {
    /// First actions for a program that has just started, for any job.
    fn greet(&mut self) -> Vec<Action> {
        Vec::new()
    }

    /// Actions that begin the job, before the program has written anything.
    fn begin(&mut self) -> Vec<Action>;

    /// First actions for a parked program, in place of [`greet`](Self::greet) and
    /// [`begin`](Self::begin): it answered an earlier turn of this conversation and [became
    /// idle](Self::idle). `None` if the program cannot be reused.
    fn again(&mut self, _idle: &Idle) -> Option<Vec<Action>> {
        None
    }

    /// State of the program after an answer or an [interrupt](Self::interrupt); `None` if it may
    /// still be busy, or serves one turn only.
    fn idle(&self) -> Option<Idle> {
        None
    }

    /// Handles a line of standard output.
    fn line(&mut self, line: &str) -> Vec<Action>;

    /// Handles a line of standard error.
    fn complaint(&mut self, _line: &str) -> Vec<Action> {
        Vec::new()
    }

    /// Handles the silence that [`Action::AwaitQuiet`] waited for.
    fn quiet(&mut self) -> Vec<Action> {
        Vec::new()
    }

    /// Actions that interrupt the turn, so that the program can be [reused](Self::idle) after it.
    /// The turn ends with an [`Action::End`] in answer to a later line. Empty if the program has no
    /// such turn, or cannot be interrupted: it is killed then.
    fn interrupt(&mut self) -> Vec<Action> {
        Vec::new()
    }

    /// Handles the decision about a question.
    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action>;

    /// Maps the program's exit without [`Action::End`], which is never a success.
    fn ended(&self, exit: &Exit) -> End;
}

/// Effect that a driver requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Write this line to the program.
    Send(String),
    /// Close the program's standard input.
    EndInput,
    /// Mark the program's running helpers and servers as its own; processes started later belong to
    /// the task.
    Settled,
    /// Store this session for the next task of the context, if the agent's memory has capacity.
    Remember(Session),
    /// Start a new message: its text replaces the streamed one.
    Restart,
    /// Append text to the message.
    Delta(String),
    /// Send a status text.
    Say(String),
    /// Send a status with facts for editors, such as those of [`ToolFacts`]. Without a text, only
    /// programs notice it.
    Report {
        /// Status text; empty for none.
        text: String,
        /// Members of the status's metadata.
        facts: Map<String, Value>,
    },
    /// Report the commands of the program, once a turn and after each change. They are listed only.
    Commands(CommandList),
    /// Report that the program retries a failed request. If this goes on for longer than the
    /// operator's `retry_timeout`, the run ends with `end`.
    Retrying {
        /// Status text.
        status: String,
        /// End of the run after the timeout.
        end: End,
    },
    /// Ask for a decision.
    Ask(Box<Question>),
    /// Withdraw the question with this id: the program took it back or has another answer.
    Withdrawn(Value),
    /// Report a changed file.
    Changed(FileChange),
    /// Send an artifact beside the answer, such as a picture.
    Attach(Box<Artifact>),
    /// Wait until the program has written no line to standard output for `silence`, but no longer
    /// than `limit`, and then call [`Driver::quiet`]. The exit of the program counts as silence.
    /// Lines in the meantime are handled as usual.
    AwaitQuiet {
        /// Time without a line.
        silence: Duration,
        /// Longest wait.
        limit: Duration,
    },
    /// Write a line to the hub's log.
    Log(String),
    /// End the run.
    End(End),
}

impl Action {
    /// True if the action shows that the program no longer retries a failed request.
    fn ends_retries(&self) -> bool {
        !matches!(self, Self::Send(_) | Self::Retrying { .. } | Self::Log(_) | Self::Commands(_))
    }

    /// True if the action reflects an effect of the program, not only input to it.
    fn is_effect(&self) -> bool {
        match self {
            Self::Send(_)
            | Self::EndInput
            | Self::Settled
            | Self::Remember(_)
            | Self::Commands(_)
            | Self::Log(_)
            | Self::AwaitQuiet { .. }
            | Self::End(_) => false,
            Self::Restart
            | Self::Delta(_)
            | Self::Say(_)
            | Self::Report { .. }
            | Self::Retrying { .. }
            | Self::Ask(_)
            | Self::Withdrawn(_)
            | Self::Attach(_)
            | Self::Changed(_) => true,
        }
    }
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Run with an answer.
    Completed {
        /// Answer.
        text: String,
        /// Model, usage and cost of this run.
        metadata: Map<String, Value>,
    },
    /// Run without an answer.
    Failed {
        /// Reason for machines.
        reason: FailureReason,
        /// Text of the vendor.
        text: String,
        /// Model, usage and cost of this run.
        metadata: Map<String, Value>,
    },
    /// The program or its API requires a login.
    LoginNeeded(String),
    /// The session to resume does not exist any more.
    SessionLost,
}

impl End {
    /// Creates a failure without any usage.
    pub fn failed(reason: FailureReason, text: impl Into<String>) -> Self {
        Self::Failed { reason, text: text.into(), metadata: Map::new() }
    }

    /// Adds the time of the reset, in seconds or milliseconds since 1970, to a failure for lack of
    /// quota. The hub has the task wait for it, if the operator wants that. Any other end, and an
    /// unknown time, change nothing.
    #[must_use]
    pub fn resetting_at(mut self, time: Option<u64>) -> Self {
        if let (Self::Failed { reason: FailureReason::RateLimited, metadata, .. }, Some(time)) =
            (&mut self, time)
        {
            metadata.insert(QUOTA_RESETS_AT.to_owned(), time.into());
        }
        self
    }

    /// Replaces the text.
    pub(crate) fn after(mut self, words: impl FnOnce(&str) -> String) -> Self {
        if let Self::Failed { text, .. } | Self::LoginNeeded(text) | Self::Completed { text, .. } =
            &mut self
        {
            *text = words(text);
        }
        self
    }

    /// Maps an HTTP status with which an API refused to a failure, or to a missing login.
    pub fn of_status(status: u16, text: impl Into<String>) -> Self {
        match status {
            401 | 403 => Self::LoginNeeded(text.into()),
            429 => Self::failed(FailureReason::RateLimited, text),
            503 | 529 => Self::failed(FailureReason::Overloaded, text),
            _ => Self::failed(FailureReason::ApiError, text),
        }
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Installed version.
    pub version: String,
    /// Reason why work would fail without a login; `None` if logged in.
    pub login_missing: Option<String>,
}
