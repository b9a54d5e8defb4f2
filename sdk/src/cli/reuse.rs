//! Reuse of running programs: one that is idle since the previous turn, or one started ahead.
//!
//! ```text
//! a turn ends with an answer ─► Driver::idle ─► stored with the session, and the program parked
//! the next turn: same terms, same command, alive, and silent meanwhile? ─► Driver::again
//!                anything else ─► the program is killed, and a new one resumes the session
//! ```
//! A start costs seconds. Besides, a running program holds its own record of the conversation,
//! which some programs cannot load again. The hub may have ended the program meanwhile: stored
//! state may be stale, which costs one needless request.

use std::time::Duration;

use super::idle::Idle;
use super::program_record::{ProgramRecord, names_files};
use super::sessions::Sessions;
use super::{Action, Choices, Cli, Driver, Job, Session};
use crate::{Child, Command, Context, Failure, Level, Line, Task};

/// Limit of lines that an idle program may have written. A program that wrote more is busy.
const MAX_MEANWHILE: usize = 256;

/// Time within which a killed program must exit: the hub does not wait longer for an unresponsive
/// one.
const EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// Program that runs before its turn.
pub(super) enum Ready {
    /// Program that answered the conversation's last turn and was parked.
    Idle(Child, Box<ProgramRecord>),
    /// Program that was started ahead and greeted.
    Ahead(Child),
}

/// Finds the running program for the next turn of a conversation, which resumes `session`. This
/// precedes writing the client's files, since a confined program sees the files of its task.
pub(super) fn ready<C: Cli>(
    ctx: &Context,
    task: &Task,
    sessions: &Sessions<'_>,
    choices: &Choices,
    session: Option<&Session>,
) -> Result<Option<Ready>, Failure> {
    let job = Job::without_words(ctx, task, choices);
    if let Some(named) = &choices.resume {
        kill_holder::<C>(ctx, sessions, &job, named)?;
    }
    if let Some(program) = last::<C>(ctx, sessions, &job)? {
        return Ok(Some(program));
    }
    let job = Job { session: session.cloned(), ..job };
    if !is_wanted(ctx) || names_files::<C>(&job) {
        return Ok(None);
    }
    let Ok(command) = C::command(ctx, &job) else { return Ok(None) };
    Ok(taken_up(ctx, &ahead(&job), command)?.map(Ready::Ahead))
}

/// Program of the last turn. A program that was started on other terms is killed.
fn last<C: Cli>(
    ctx: &Context,
    sessions: &Sessions<'_>,
    job: &Job,
) -> Result<Option<Ready>, Failure> {
    let Some(program) = sessions.program()? else { return Ok(None) };
    let Ok(command) = program.command::<C>(ctx, job) else { return Ok(None) };
    let Some(child) = taken_up(ctx, &sessions.park_key(), command)? else { return Ok(None) };
    if program.fits(job) {
        return Ok(Some(Ready::Idle(child, Box::new(program))));
    }
    end(child);
    Ok(None)
}

/// Kills the program that another conversation keeps with this session: a session takes one writer.
fn kill_holder<C: Cli>(
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

/// Kills a program and waits for its exit: its session takes one writer, and the next program needs
/// it.
pub(super) fn end(mut child: Child) {
    child.kill();
    while let Ok(Some(_)) = child.next_of_any(Some(EXIT_TIMEOUT)) {}
}

/// Resumes a parked program; any failure except cancellation counts as none. The program started
/// instead will report the reason.
fn taken_up(ctx: &Context, key: &str, command: Command) -> Result<Option<Child>, Failure> {
    match ctx.take_up(key, command) {
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        taken => Ok(taken.ok().flatten()),
    }
}

/// First actions of another turn with a parked program, and the list of commands that it wrote
/// while it was idle, if any; `None` if it has ended or is busy.
pub(super) fn again(
    child: &mut Child,
    driver: &mut impl Driver,
    idle: &Idle,
) -> Result<Option<Vec<Action>>, Failure> {
    let Some(mut first) = driver.again(idle) else { return Ok(None) };
    let mut listed = None;
    for _ in 0..MAX_MEANWHILE {
        match child.next_of_any(Some(Duration::ZERO)) {
            Ok(Some(Line::Output(line))) => {
                let is_list = |action: &Action| matches!(action, Action::Commands(_));
                let mut actions = driver.line(&line);
                if !actions.iter().all(|it| is_list(it) || matches!(it, Action::Log(_))) {
                    return Ok(None);
                }
                actions.retain(is_list);
                listed = actions.pop().or(listed);
            }
            Ok(Some(Line::Complaint(_))) => {}
            Ok(None) => return Ok(None),
            Err(Failure::Timeout) => {
                // Processes of the last task were killed when the program was parked.
                child.settled();
                first.extend(listed);
                return Ok(Some(first));
            }
            Err(Failure::Cancelled) => return Err(Failure::Cancelled),
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Parks a program for the next turn. The hub may refuse; that is no failure of the turn.
pub(super) fn park(ctx: &Context, child: Child, key: &str) {
    if let Err(why) = child.park(key) {
        ctx.log(Level::Debug, format!("cannot keep the program idle as {key}: {}", why.text()));
    }
}

/// Starts a program ahead for the first turn of another conversation, if the operator enables it.
/// One program per directory: an earlier one is killed.
pub(super) fn start_ahead<C: Cli>(ctx: &Context, job: &Job) {
    let job = Job {
        permissions: job.permissions,
        directory: job.directory.clone(),
        additional: job.additional.clone(),
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
        // Processes that it starts before it has work stay with it.
        child.settled();
        child.park(&ahead(&job))
    });
    if let Err(why) = started {
        ctx.log(Level::Debug, format!("cannot start a program ahead: {}", why.text()));
    }
}

/// True if the operator enables starting ahead: `settings.warm = 1`.
fn is_wanted(ctx: &Context) -> bool {
    ctx.setting("warm").is_some_and(|setting| setting == "1")
}

/// Key under which a program started ahead is parked.
fn ahead(job: &Job) -> String {
    format!("ahead/{}", job.directory.as_deref().unwrap_or_default())
}
