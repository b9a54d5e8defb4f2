//! A task from its prompt to its end: runs the program, with retries, and reports the result.

use super::health;
use super::program_record::ProgramRecord;
use super::prompt::Request;
use super::reuse::{self, Ready};
use super::sessions::Sessions;
use super::talk::{Talk, actions};
use super::words::final_status;
use super::{Action, Choices, Cli, CommandList, Driver, End, FailureReason, Job, Profile, Session};
use crate::{Command, Context, Failure, Run, Task, TaskState, TaskStatus};

/// Limit of attempts to log in: each waits for the client, whose login may well go wrong twice.
const LOGIN_TRIES: usize = 3;

/// Works on a task with a vendor's program.
///
/// Reuses the context's program, or else resumes its session; a lost session is replaced by its
/// history. A missing login is requested from the client. The operator's permissions or the client
/// decide the program's questions.
pub fn run<C: Cli>(ctx: &Context, task: &Task) -> Run {
    let sessions = Sessions::new(ctx, &task.context_id);
    let choices = Choices::new(ctx, task)?;
    let choices = if C::TAKES_MODE { choices.in_mode(ctx, task)? } else { choices };
    let profile = C::profile(ctx);
    must_take_directories::<C>(&Job::without_words(ctx, task, &choices), &profile.name)?;
    let resumed = choices.resume.as_ref().map(Session::new);
    let mut session = resumed.clone().map_or_else(|| sessions.last(), |named| Ok(Some(named)))?;
    let mut ready = reuse::ready::<C>(ctx, task, &sessions, &choices, session.as_ref())?;
    let request = Request::new(ctx, task, choices)?;
    let mut logins = 1;
    loop {
        let job =
            |session: Option<&Session>| request.job(ctx, task, session, C::TAKES_INSTRUCTIONS);
        let end = match ready.take() {
            Some(Ready::Idle(child, program)) => {
                let job = job(Some(&program.idle().session));
                must_fit::<C>(&job, &profile.name)?;
                let talk = Talk::new(ctx, &sessions, &job, &profile.name, child);
                go_on::<C>(talk, &program)?
            }
            Some(Ready::Ahead(child)) => {
                let job = job(session.as_ref());
                must_fit::<C>(&job, &profile.name)?;
                let talk = Talk::new(ctx, &sessions, &job, &profile.name, child);
                begin_ahead::<C>(talk)?
            }
            None => None,
        };
        let end = match end {
            Some(end) => end,
            None => {
                let job = job(session.as_ref());
                must_fit::<C>(&job, &profile.name)?;
                converse::<C>(ctx, &sessions, &job, &profile)?
            }
        };
        match end {
            End::Completed { text, metadata } => {
                health::login_works(ctx);
                let text = final_status(text, "; the artifact `answer` has the whole text");
                let status = TaskStatus::new(TaskState::Completed, text);
                return Ok(status.with_metadata(&metadata).into());
            }
            End::Failed { reason, text, mut metadata } => {
                metadata.insert("reason".into(), reason.name().into());
                let status = TaskStatus::new(TaskState::Failed, final_status(text, ""));
                return Ok(status.with_metadata(&metadata).into());
            }
            End::LoginNeeded(text) if logins == LOGIN_TRIES => {
                health::login_refused(ctx, &text);
                return ctx.fail(FailureReason::NotLoggedIn.name(), text);
            }
            End::LoginNeeded(text) => {
                health::login_refused(ctx, &text);
                let steps = C::login_steps(&text);
                let steps = steps.unwrap_or_else(|| profile.login_step());
                ctx.ask_auth(format!(
                    "{text}\nOn the machine of the hub {steps}, then answer this."
                ))?;
                logins += 1;
                session = sessions.last()?.or(session);
            }
            End::SessionLost if session.is_none() => {
                let text = format!("{} looks for a session that nobody named", profile.name);
                return ctx.fail(FailureReason::BrokenStream.name(), text);
            }
            // A new session would not be what the client asked for.
            End::SessionLost if resumed.is_some() && session == resumed => {
                let name = session.map(|session| session.id).unwrap_or_default();
                return Err(Failure::Invalid(format!(
                    "{} cannot go on with the session `{name}`: it has none of that name here, or keeps none",
                    profile.name
                )));
            }
            End::SessionLost => {
                ctx.say(format!(
                    "{} no longer has this conversation: beginning anew with its history",
                    profile.name
                ))?;
                sessions.forget()?;
                session = None;
            }
        }
    }
}

/// Refuses additional directories for a program that takes none.
fn must_take_directories<C: Cli>(job: &Job, name: &str) -> Result<(), Failure> {
    if C::TAKES_DIRECTORIES || job.additional.is_empty() {
        return Ok(());
    }
    Err(Failure::Invalid(format!(
        "{name} works in one directory, and takes none besides it (`additionalDirectories`); leave them out, or name a working \
         directory that contains them"
    )))
}

/// Refuses a prompt that is too long for the program, with the limit.
fn must_fit<C: Cli>(job: &Job, name: &str) -> Result<(), Failure> {
    let (chars, max) = (job.prompt.chars().count(), C::MAX_PROMPT_CHARS);
    if chars <= max {
        return Ok(());
    }
    Err(Failure::Invalid(format!(
        "the prompt has {chars} characters, and {name} takes {max} at most; send what is long as a file, or leave it in a \
         workspace"
    )))
}

/// Runs a turn of a newly started program.
fn converse<C: Cli>(
    ctx: &Context,
    sessions: &Sessions<'_>,
    job: &Job,
    profile: &Profile,
) -> Result<End, Failure> {
    let (command, mut driver) = (C::command(ctx, job)?, C::driver(ctx, job)?);
    let child = match ctx.spawn(command.clone()) {
        Err(Failure::Unavailable(why)) => {
            let step = profile.install.as_ref().map(|command| format!("run `{command}`"));
            let step = step.unwrap_or_else(|| profile.install_step());
            let text = format!("{why}; on the machine of the hub {step}");
            return Ok(End::failed(FailureReason::NotInstalled, text));
        }
        child => child?,
    };
    let mut first = driver.greet();
    first.extend(driver.begin());
    let talk = Talk::new(ctx, sessions, job, &profile.name, child);
    let end = first_turn::<C>(talk, &command, driver, first)?;
    Ok(end.unwrap_or(End::SessionLost))
}

/// Runs a turn of a program that was started ahead; `None` if the program is unusable.
fn begin_ahead<C: Cli>(talk: Talk<'_>) -> Result<Option<End>, Failure> {
    let (ctx, job) = (talk.ctx, talk.job);
    let (command, mut driver) = (C::command(ctx, job)?, C::driver(ctx, job)?);
    // The greeting was sent when the program was started.
    driver.greet();
    let first = driver.begin();
    first_turn::<C>(talk.started_ahead(), &command, driver, first)
}

/// Runs the first turn of a program that this command started. Afterwards the next program is
/// started ahead, if enabled.
fn first_turn<C: Cli>(
    talk: Talk<'_>,
    command: &Command,
    mut driver: C::Driver,
    first: Vec<Action>,
) -> Result<Option<End>, Failure> {
    let (ctx, job) = (talk.ctx, talk.job);
    let idle_program =
        |driver: &C::Driver| driver.idle().map(|idle| ProgramRecord::new::<C>(job, command, idle));
    let end = turn(talk, &mut driver, first, idle_program)?;
    if let Some(End::Completed { .. }) = end {
        reuse::start_ahead::<C>(ctx, job);
    }
    Ok(end)
}

/// Runs another turn of a parked program; `None` if the program is unusable by now.
fn go_on<C: Cli>(mut talk: Talk<'_>, program: &ProgramRecord) -> Result<Option<End>, Failure> {
    let mut driver = C::driver(talk.ctx, talk.job)?;
    let Some(mut first) = reuse::again(&mut talk.child, &mut driver, program.idle())? else {
        reuse::end(talk.child);
        return Ok(None);
    };
    // The program listed its commands in an earlier turn, and this task reports them, too.
    if let Some(digest) = program.commands()
        && !first.iter().any(|action| matches!(action, Action::Commands(_)))
    {
        first.extend(CommandList::stored(talk.ctx, digest)?.map(Action::Commands));
    }
    let idle_program = |driver: &C::Driver| driver.idle().map(|idle| program.after(idle));
    turn(talk.reused(), &mut driver, first, idle_program)
}

/// Runs a turn from its first actions to its end. `None` if the program ran before and exited
/// without any effect: another program then takes over the job. The program of a cancelled task is
/// interrupted and parked, if it can be reused.
fn turn<D: Driver>(
    mut talk: Talk<'_>,
    driver: &mut D,
    first: Vec<Action>,
    idle_program: impl Fn(&D) -> Option<ProgramRecord>,
) -> Result<Option<End>, Failure> {
    let (end, has_exited) = match until_end(&mut talk, driver, first) {
        Err(Failure::Cancelled) => {
            talk.interrupt(driver, idle_program);
            return Err(Failure::Cancelled);
        }
        ended => ended?,
    };
    if talk.may_be_replaced(&end, has_exited) {
        reuse::end(talk.child);
        return Ok(None);
    }
    let program = idle_program(driver);
    talk.close(end, program).map(Some)
}

/// Relays between the driver and the program up to the end of the turn; true if the program is
/// gone.
fn until_end(
    talk: &mut Talk<'_>,
    driver: &mut impl Driver,
    first: Vec<Action>,
) -> Result<(End, bool), Failure> {
    let mut next = first;
    loop {
        if let Some(end) = talk.perform(next)? {
            return Ok((end, false));
        }
        match actions(driver, talk.next()?) {
            Ok(actions) => next = actions,
            Err(end) => return Ok((end, true)),
        }
    }
}
