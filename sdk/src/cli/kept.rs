//! Programs that are there before their turn: one kept from the turn before, or one started ahead.
//!
//! ```text
//! a turn ends with an answer ─► Driver::idle ─► remembered with the session, and the program parked
//! the next turn: the same terms, the same command, alive, and nothing said meanwhile? ─► Driver::again
//!                anything else ─► the program is ended, and another one started, with the session to resume
//! ```
//! A start takes a program seconds, and what it keeps is its own record of the conversation as it was, which some cannot load
//! again. Whether the hub still has the program is not known before it is asked for: whatever is remembered here may be out of
//! date, and is then no more than a question too many.

use std::time::Duration;

use super::idle::Idle;
use super::parked::{Program, names_files};
use super::sessions::Sessions;
use super::{Action, Choices, Cli, Driver, Job, Session};
use crate::{Child, Command, Context, Failure, Level, Line, Task};

/// Lines that a program may have said since its last turn. One that says more has found something to do.
const MAX_MEANWHILE: usize = 256;

/// How long a program that is ended may take to be gone: the hub does not wait for a deaf one for longer.
const GONE_WITHIN: Duration = Duration::from_secs(8);

/// A program that is there before its turn.
pub(super) enum Ready {
    /// It answered the conversation's last turn, and was left so.
    Kept(Child, Box<Program>),
    /// It was started ahead, and greeted.
    Ahead(Child),
}

/// The program for the next turn of a conversation, if there is one: what it is to go on with is `session`. It is asked for before
/// the client's files are written, for a program that is walled in sees the files of the task that it works for.
pub(super) fn ready<C: Cli>(
    ctx: &Context,
    task: &Task,
    sessions: &Sessions<'_>,
    choices: &Choices,
    session: Option<&Session>,
) -> Result<Option<Ready>, Failure> {
    let job = Job::without_words(ctx, task, choices);
    if let Some(named) = &choices.resume {
        take_away::<C>(ctx, sessions, &job, named)?;
    }
    if let Some(kept) = last::<C>(ctx, sessions, &job)? {
        return Ok(Some(kept));
    }
    let job = Job { session: session.cloned(), ..job };
    if !is_wanted(ctx) || names_files::<C>(&job) {
        return Ok(None);
    }
    let Ok(command) = C::command(ctx, &job) else { return Ok(None) };
    Ok(taken_up(ctx, &ahead(&job), command)?.map(Ready::Ahead))
}

/// The program that answered last. One that was started on other terms is ended.
fn last<C: Cli>(
    ctx: &Context,
    sessions: &Sessions<'_>,
    job: &Job,
) -> Result<Option<Ready>, Failure> {
    let Some(program) = sessions.program()? else { return Ok(None) };
    let Ok(command) = program.command::<C>(ctx, job) else { return Ok(None) };
    let Some(child) = taken_up(ctx, &sessions.park_key(), command)? else { return Ok(None) };
    if program.fits(job) {
        return Ok(Some(Ready::Kept(child, Box::new(program))));
    }
    end(child);
    Ok(None)
}

/// Ends the program that another conversation keeps with this session: no session takes two writers.
fn take_away<C: Cli>(
    ctx: &Context,
    sessions: &Sessions<'_>,
    job: &Job,
    session: &str,
) -> Result<(), Failure> {
    let Some((holder, program)) = sessions.holder(session)? else { return Ok(()) };
    let Ok(command) = program.command::<C>(ctx, job) else { return Ok(()) };
    if let Some(child) = taken_up(ctx, &holder.park_key(), command)? {
        end(child);
    }
    Ok(())
}

/// Ends a program, and waits until it is gone: the next one is to have its session, which takes one writer.
pub(super) fn end(mut child: Child) {
    child.kill();
    while let Ok(Some(_)) = child.next_of_any(Some(GONE_WITHIN)) {}
}

/// A program that cannot be had is none: the one that is started in its place will say why.
fn taken_up(ctx: &Context, key: &str, command: Command) -> Result<Option<Child>, Failure> {
    match ctx.take_up(key, command) {
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        taken => Ok(taken.ok().flatten()),
    }
}

/// What a kept program is told for another turn; none if it has ended, or found something to do meanwhile.
pub(super) fn again(
    child: &mut Child,
    driver: &mut impl Driver,
    idle: &Idle,
) -> Result<Option<Vec<Action>>, Failure> {
    let Some(first) = driver.again(idle) else { return Ok(None) };
    for _ in 0..MAX_MEANWHILE {
        match child.next_of_any(Some(Duration::ZERO)) {
            Ok(Some(Line::Output(line))) if driver.line(&line).is_empty() => {}
            Ok(Some(Line::Complaint(_))) => {}
            Ok(Some(Line::Output(_)) | None) => return Ok(None),
            Err(Failure::Timeout) => {
                // What the last task left was ended when the program was parked.
                child.settled();
                return Ok(Some(first));
            }
            Err(Failure::Cancelled) => return Err(Failure::Cancelled),
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Lets go of a program for the next turn. The hub may keep none, or not this one: that is no failure of the turn.
pub(super) fn park(ctx: &Context, child: Child, key: &str) {
    if let Err(why) = child.park(key) {
        ctx.log(Level::Debug, format!("{key} is not kept: {}", why.text()));
    }
}

/// Starts a program ahead, where the operator wants that: the first turn of another conversation finds it running. One a
/// directory: what was started ahead before is ended.
pub(super) fn start_ahead<C: Cli>(ctx: &Context, job: &Job) {
    let job = Job {
        permissions: job.permissions,
        directory: job.directory.clone(),
        choices: job.choices.clone(),
        ..Job::default()
    };
    if !is_wanted(ctx) || names_files::<C>(&job) {
        return;
    }
    let started = C::command(ctx, &job).and_then(|command| {
        let (child, mut driver) = (ctx.spawn(command)?, C::driver(ctx, &job)?);
        for action in driver.greet() {
            if let Action::Send(line) = action {
                child.write_line(&line)?;
            }
        }
        // What it starts before it has work stays with it.
        child.settled();
        child.park(&ahead(&job))
    });
    if let Err(why) = started {
        ctx.log(Level::Debug, format!("no program is started ahead: {}", why.text()));
    }
}

/// Whether the operator wants a program started ahead: `settings.warm = 1`.
fn is_wanted(ctx: &Context) -> bool {
    ctx.setting("warm").is_some_and(|setting| setting == "1")
}

/// Under which key a program is started ahead.
fn ahead(job: &Job) -> String {
    format!("ahead/{}", job.directory.as_deref().unwrap_or_default())
}
