//! A task from its prompt to its end: runs the program, again where that helps, and tells how it went.

use super::prompt::Request;
use super::sessions::Sessions;
use super::talk::{Talk, actions};
use super::{Cli, Driver, End, FailureReason, Job};
use crate::{Context, Failure, Run, Task, TaskState, TaskStatus};

/// Every further try waits for the client to log in, which may have gone wrong twice but hardly more often.
const LOGIN_TRIES: usize = 3;

/// Does a task with a vendor's program.
///
/// The context's session goes on, and one that is gone is replaced by its history; a missing login is asked for; what the
/// program asks is decided by the operator's permissions or by the client.
pub fn run<C: Cli>(ctx: &Context, task: &Task) -> Run {
    let sessions = Sessions::of(ctx, &task.context_id);
    let request = Request::new(ctx, task)?;
    let resumed = request.resumed();
    let mut session = resumed.clone().map_or_else(|| sessions.last(), |named| Ok(Some(named)))?;
    let mut logins = 1;
    loop {
        let job = request.job(ctx, task, session.as_ref(), C::TAKES_INSTRUCTIONS);
        must_fit::<C>(&job)?;
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
                session = sessions.last()?.or(session);
            }
            End::SessionLost if session.is_none() => {
                let text = format!("{} looks for a session that nobody named", C::NAME);
                return ctx.fail(FailureReason::BrokenStream.name(), text);
            }
            // To begin anew would be something else than what was asked for.
            End::SessionLost if resumed.is_some() && session == resumed => {
                let name = session.map(|session| session.id).unwrap_or_default();
                return Err(Failure::Invalid(format!(
                    "{} cannot go on with the session `{name}`: it has none of that name here, or keeps none",
                    C::NAME
                )));
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

/// Refuses a prompt that the program would refuse, with what it may be.
fn must_fit<C: Cli>(job: &Job) -> Result<(), Failure> {
    let (chars, max) = (job.prompt.chars().count(), C::MAX_PROMPT_CHARS);
    if chars <= max {
        return Ok(());
    }
    let name = C::NAME;
    Err(Failure::Invalid(format!(
        "the prompt has {chars} characters, and {name} takes {max} at most; send what is long as a file, or leave it in a \
         workspace"
    )))
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
    let mut talk = Talk::new(ctx, sessions, job, C::NAME, child);
    let mut next = driver.begin();
    loop {
        if let Some(end) = talk.perform(next)? {
            return talk.close(end);
        }
        next = match actions(&mut driver, talk.next()?) {
            Ok(actions) => actions,
            Err(end) => return talk.close(end),
        };
    }
}
