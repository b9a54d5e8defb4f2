//! A program between two turns, as it is remembered: how it was left, what it was started for, and its command.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::idle::Idle;
use super::{Cli, Job, Session};
use crate::{Command, Context, Failure};

/// A program that was parked, as it is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Program {
    /// What it was started for: [`terms`].
    terms: u64,
    /// The session that its command names.
    #[serde(default)]
    resumes: Option<String>,
    /// Its command, where that names files: the same words in other files would be another command.
    #[serde(default)]
    line: Option<CommandLine>,
    #[serde(flatten)]
    idle: Idle,
}

/// A command as it is remembered: program, arguments, variables, directory.
type CommandLine = (String, Vec<String>, Vec<(String, String)>, Option<String>);

impl Program {
    /// A program that was started by that command for that job, and is idle now.
    pub(super) fn new<C: Cli>(job: &Job, command: &Command, idle: Idle) -> Self {
        let Command { program, args, env, cwd } = command.clone();
        Self {
            terms: terms(job),
            resumes: job.session.as_ref().map(|session| session.id.clone()),
            line: names_files::<C>(job).then_some((program, args, env, cwd)),
            idle,
        }
    }

    /// The same after another turn.
    pub(super) fn after(&self, idle: Idle) -> Self {
        Self { idle, ..self.clone() }
    }

    /// Whether it was started for the same, and has the session that the client names, if it names one.
    pub(super) fn fits(&self, job: &Job) -> bool {
        let named = job.choices.resume.as_ref();
        self.terms == terms(job) && named.is_none_or(|name| *name == self.idle.session.id)
    }

    /// How its last turn left it.
    pub(super) fn idle(&self) -> &Idle {
        &self.idle
    }

    /// The command that it was started by, if it is what this job needs.
    pub(super) fn command<C: Cli>(&self, ctx: &Context, job: &Job) -> Result<Command, Failure> {
        if let Some((program, args, env, cwd)) = self.line.clone() {
            return Ok(Command { program, args, env, cwd });
        }
        let session = self.resumes.as_ref().map(Session::new);
        C::command(ctx, &Job { session, ..job.clone() })
    }
}

/// Whether the command of that job names files that were written for it.
pub(super) fn names_files<C: Cli>(job: &Job) -> bool {
    let choices = &job.choices;
    C::NAMES_FILES && (choices.instructions.is_some() || !choices.servers().is_empty())
}

/// What a program was started for, beside what its command and the hub say: a program works on with what it was told at the
/// beginning of its session. Servers hold keys, and what is remembered does not.
fn terms(job: &Job) -> u64 {
    let choices = &job.choices;
    let servers = Value::from(choices.servers()).to_string();
    let mut hasher = DefaultHasher::new();
    (job.permissions, &job.directory, &choices.model, &choices.effort).hash(&mut hasher);
    (servers, &choices.instructions).hash(&mut hasher);
    hasher.finish()
}
