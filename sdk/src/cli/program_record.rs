//! Stored record of a parked program: its state, its terms, and its command.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::idle::Idle;
use super::{Cli, Job, Session};
use crate::{Command, Context, Failure};

/// Stored record of a parked program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ProgramRecord {
    /// Hash of the terms on which it was started: [`terms`].
    terms: u64,
    /// Session that its command names.
    #[serde(default)]
    resumes: Option<String>,
    /// Command, if it names files: the same arguments with other files would be another command.
    #[serde(default)]
    line: Option<CommandLine>,
    /// Digest of the commands that it listed.
    #[serde(default)]
    commands: Option<u64>,
    #[serde(flatten)]
    idle: Idle,
}

/// Stored form of a command: program, arguments, variables, directory.
type CommandLine = (String, Vec<String>, Vec<(String, String)>, Option<String>);

impl ProgramRecord {
    /// Creates the record of an idle program that this command started for this job.
    pub(super) fn new<C: Cli>(job: &Job, command: &Command, idle: Idle) -> Self {
        let Command { program, args, env, cwd } = command.clone();
        Self {
            terms: terms(job),
            resumes: job.session.as_ref().map(|session| session.id.clone()),
            line: names_files::<C>(job).then_some((program, args, env, cwd)),
            commands: None,
            idle,
        }
    }

    /// Record of a program that listed the commands with this digest.
    pub(super) fn with_commands(self, digest: u64) -> Self {
        Self { commands: Some(digest), ..self }
    }

    /// Digest of the commands that the program listed in earlier turns.
    pub(super) fn commands(&self) -> Option<u64> {
        self.commands
    }

    /// Record after another turn.
    pub(super) fn after(&self, idle: Idle) -> Self {
        Self { idle, ..self.clone() }
    }

    /// True if the program was started on the same terms, and has the session that the client
    /// names, if any.
    pub(super) fn fits(&self, job: &Job) -> bool {
        let named = job.choices.resume.as_ref();
        self.terms == terms(job) && named.is_none_or(|name| *name == self.idle.session.id)
    }

    /// State after the last turn.
    pub(super) fn idle(&self) -> &Idle {
        &self.idle
    }

    /// Command that started the program, in the form that this job needs.
    pub(super) fn command<C: Cli>(&self, ctx: &Context, job: &Job) -> Result<Command, Failure> {
        if let Some((program, args, env, cwd)) = self.line.clone() {
            return Ok(Command { program, args, env, cwd });
        }
        let session = self.resumes.as_ref().map(Session::new);
        C::command(ctx, &Job { session, ..job.clone() })
    }
}

/// True if the command of that job names files that were written for it.
pub(super) fn names_files<C: Cli>(job: &Job) -> bool {
    let choices = &job.choices;
    C::NAMES_FILES && (choices.instructions.is_some() || !choices.servers().is_empty())
}

/// Hash of the terms of a start that neither the command nor the hub covers: a program keeps
/// working with the instructions of its session's start. The stored hash contains no secrets, while
/// servers do.
fn terms(job: &Job) -> u64 {
    let choices = &job.choices;
    let servers = Value::from(choices.servers()).to_string();
    let mut hasher = DefaultHasher::new();
    (job.permissions, &job.directory, &choices.model, &choices.effort).hash(&mut hasher);
    job.additional.hash(&mut hasher);
    (servers, &choices.instructions, &choices.mode).hash(&mut hasher);
    hasher.finish()
}
