//! A task from its prompt to its end: carries out what a driver says.

use std::collections::BTreeSet;
use std::time::Duration;

use super::prompt::Request;
use super::sessions::Sessions;
use super::{Action, Cli, Decision, Driver, End, FailureReason, FileChange, Job, Kind, Question};
use crate::{Child, Context, Failure, Need, Run, Task, TaskState, TaskStatus, TextStream};

/// The client who reads along sees text at most this late.
const FLUSH_AFTER: Duration = Duration::from_millis(40);

/// A program that starts says something within seconds, even on a busy machine.
const FIRST_WORD: Duration = Duration::from_secs(60);

/// The programs' own tools give up after ten minutes, so that longer silence means that the program hangs.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// A program saves its session while it ends, in well under a second.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Every further try waits for the client to log in, which may have gone wrong twice but hardly more often.
const LOGIN_TRIES: usize = 3;

/// Does a task with a vendor's program.
///
/// The context's session goes on, and one that is gone is replaced by its history; a missing login is asked for; what the
/// program asks is decided by the operator's permissions or by the client.
pub fn run<C: Cli>(ctx: &Context, task: &Task) -> Run {
    let sessions = Sessions::of(ctx, &task.context_id);
    let request = Request::new(ctx, task)?;
    let mut session = sessions.last()?;
    let mut logins = 1;
    loop {
        let job = request.job(ctx, task, session.as_ref());
        match converse::<C>(ctx, &sessions, &job)? {
            End::Completed { text, metadata } => {
                let status = TaskStatus::new(TaskState::Completed, text);
                return Ok(status.with_metadata(&metadata).into());
            }
            End::Failed { reason, text, mut metadata } => {
                metadata.insert("reason".into(), reason.name().into());
                let status = TaskStatus::new(TaskState::Failed, text);
                return Ok(status.with_metadata(&metadata).into());
            }
            End::LoginNeeded(text) if logins == LOGIN_TRIES => {
                return ctx.fail(FailureReason::NotLoggedIn.name(), text);
            }
            End::LoginNeeded(text) => {
                ctx.ask_auth(format!(
                    "{text}\nOn the machine of the hub run `{}`, then answer this.",
                    C::LOGIN
                ))?;
                logins += 1;
                session = sessions.last()?;
            }
            End::SessionLost if session.is_none() => {
                let text = format!("{} looks for a session that nobody named", C::NAME);
                return ctx.fail(FailureReason::BrokenStream.name(), text);
            }
            End::SessionLost => {
                ctx.say(format!(
                    "{} no longer has this conversation: beginning anew with its history",
                    C::NAME
                ))?;
                sessions.forget()?;
                session = None;
            }
        }
    }
}

/// One run of the program, from the prompt to its last word.
fn converse<C: Cli>(ctx: &Context, sessions: &Sessions<'_>, job: &Job) -> Result<End, Failure> {
    let (command, mut driver) = C::start(ctx, job)?;
    let child = match ctx.spawn(command) {
        Err(Failure::Unavailable(why)) => {
            let text = format!("{why}; on the machine of the hub run `{}`", C::INSTALL);
            return Ok(End::failed(FailureReason::NotInstalled, text));
        }
        child => child?,
    };
    let stream = ctx.text_stream("answer");
    let mut talk =
        Talk { ctx, sessions, job, name: C::NAME, child, stream, changed: BTreeSet::new() };
    let mut actions = driver.begin();
    let mut patience = FIRST_WORD;
    loop {
        if let Some(end) = talk.perform(&mut driver, actions)? {
            return talk.close(end);
        }
        let waiting = talk.stream.is_waiting();
        actions = match talk.child.next_line(Some(if waiting { FLUSH_AFTER } else { patience })) {
            Ok(Some(line)) => {
                patience = SILENCE;
                driver.line(&line)
            }
            Ok(None) => return Ok(driver.ended(&talk.child.wait()?)),
            Err(Failure::Timeout) if waiting => {
                talk.stream.flush()?;
                Vec::new()
            }
            Err(Failure::Timeout) => {
                let text = format!("{} was silent for {} s", C::NAME, patience.as_secs());
                return Ok(End::failed(FailureReason::BrokenStream, text));
            }
            Err(failure) => return Err(failure),
        };
    }
}

/// A run in the middle.
struct Talk<'a> {
    ctx: &'a Context,
    sessions: &'a Sessions<'a>,
    job: &'a Job,
    name: &'static str,
    child: Child,
    stream: TextStream<'a>,
    /// Files that have an artifact already.
    changed: BTreeSet<String>,
}

impl Talk<'_> {
    /// Carries out actions, those too that follow from a decision, up to an end.
    fn perform(
        &mut self,
        driver: &mut impl Driver,
        actions: Vec<Action>,
    ) -> Result<Option<End>, Failure> {
        for action in actions {
            match action {
                // A program that ends before it reads says why on its output, which is read next.
                Action::Send(line) => {
                    if self.child.write_line(&line) == Err(Failure::Cancelled) {
                        return Err(Failure::Cancelled);
                    }
                }
                Action::EndInput => self.child.close_stdin(),
                Action::Remember(session) => self.sessions.keep(&session)?,
                Action::Restart => self.stream.restart(),
                Action::Delta(text) => self.stream.push(&text)?,
                Action::Say(text) => {
                    self.stream.flush()?;
                    self.ctx.say(text)?;
                }
                Action::Changed(change) => self.tell(&change)?,
                Action::Ask(question) => {
                    let decision = self.decide(&question)?;
                    let next = driver.decided(&question, &decision);
                    if let Some(end) = self.perform(driver, next)? {
                        return Ok(Some(end));
                    }
                }
                Action::End(end) => return Ok(Some(end)),
            }
        }
        Ok(None)
    }

    /// One artifact a file, and a part of it a change.
    fn tell(&mut self, change: &FileChange) -> Result<(), Failure> {
        self.stream.flush()?;
        let again = !self.changed.insert(change.path.clone());
        let artifact = change.artifact();
        if again { self.ctx.append(artifact, true) } else { self.ctx.artifact(artifact) }
    }

    fn decide(&mut self, question: &Question) -> Result<Decision, Failure> {
        self.stream.flush()?;
        if question.kind == Kind::Read && self.job.files.iter().any(|file| question.is_about(file))
        {
            return Ok(Decision::Allow);
        }
        if let Some(decision) = self.job.permissions.decide(question.kind) {
            if let Decision::Deny(why) = &decision {
                self.ctx.say(format!("denied {}: {why}", question.tool))?;
            }
            return Ok(decision);
        }
        let millis = self.ctx.setting("approval_timeout").and_then(|text| text.parse().ok());
        let within = millis.map(Duration::from_millis);
        match self.ctx.ask_within(Need::Input, question.prompt(self.name), within) {
            Ok(answer) => Ok(question.decision(answer)),
            Err(Failure::Cancelled) => Err(Failure::Cancelled),
            Err(Failure::Timeout) => Ok(Decision::Deny("nobody answered in time".into())),
            Err(failure) => Ok(Decision::Deny(format!("nobody can be asked: {}", failure.text()))),
        }
    }

    /// Publishes the answer, and lets the program end by itself, for it saves its session while it ends.
    fn close(mut self, end: End) -> Result<End, Failure> {
        match &end {
            End::Completed { text, .. } if !text.is_empty() => self.stream.finish(text)?,
            // What there was of an answer may be worth more than none.
            End::Failed { .. } => self.stream.flush()?,
            End::Completed { .. } | End::SessionLost => {}
            End::LoginNeeded(_) => self.child.kill(),
        }
        self.child.close_stdin();
        while let Ok(Some(_)) = self.child.next_line(Some(EXIT_GRACE)) {}
        Ok(end)
    }
}
