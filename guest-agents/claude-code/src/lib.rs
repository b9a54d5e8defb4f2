//! Claude Code as an agent: one `claude` process a task, told and heard in its line-JSON dialect.
//!
//! - [`driver`] knows what a line means: a state machine without a world.
//! - [`permission`] turns the CLI's questions into questions to the client, and the answers back.
//! - [`launch`] knows how the CLI is started safely, and how healthy it is.
//! - This file connects them: it carries out what the driver says.

pub mod driver;
pub mod launch;
pub mod permission;

use std::time::Duration;

use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::{Child, TaskState, TaskStatus, TextStream};

use driver::{Action, Driver, End, Session};

/// The client who reads along sees text at most this late.
const FLUSH_AFTER: Duration = Duration::from_millis(40);

/// The CLI's own shell tool gives up after ten minutes, so that longer silence means that the CLI hangs.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The CLI saves its session while it ends, in well under a second.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Every further try waits for the client to log in, which may have gone wrong twice but hardly more often.
const LOGIN_TRIES: usize = 3;

/// The CLI `claude`, driven on behalf of an A2A client.
pub struct ClaudeCode;

impl Agent for ClaudeCode {
    fn card() -> Card {
        Card::new(
            "Claude Code",
            "Anthropic's coding agent: reads, explains and changes code, and runs commands, asking before it does",
            env!("CARGO_PKG_VERSION"),
        )
        .skill("code", "Write code", "Writes and changes code in a workspace", &["code", "edit"])
        .example("Add a --json flag to the list command, with a test")
        .skill("explain", "Explain code", "Reads a workspace and explains it", &["code", "review"])
        .example("Why does the login test fail now and then?")
        .skill("shell", "Run commands", "Builds, tests and uses git, with approval", &["shell"])
        .example("Run the tests and mend what is broken")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        if task.text().trim().is_empty() {
            return Err(Failure::Invalid("the message has no text part to tell claude".into()));
        }
        let key = format!("session/{}", task.context_id);
        let mut session = ctx.recall::<Session>(&key)?;
        let mut logins = 1;
        loop {
            match converse(ctx, task, &key, session.as_ref())? {
                End::Completed { text, metadata } => {
                    let status = TaskStatus::new(TaskState::Completed, text);
                    return Ok(status.with_metadata(&metadata).into());
                }
                End::Failed { reason, text, mut metadata } => {
                    metadata.insert("reason".into(), reason.into());
                    let status = TaskStatus::new(TaskState::Failed, text);
                    return Ok(status.with_metadata(&metadata).into());
                }
                End::LoginNeeded(text) if logins == LOGIN_TRIES => {
                    return ctx.fail("not_logged_in", text);
                }
                End::LoginNeeded(text) => {
                    ctx.ask_auth(format!(
                        "{text}\nOn the machine of the hub run `{}`, then answer this.",
                        launch::LOGIN
                    ))?;
                    logins += 1;
                }
                End::SessionLost if session.is_none() => {
                    return ctx
                        .fail("broken_stream", "claude looks for a session that nobody named");
                }
                End::SessionLost => {
                    ctx.say(
                        "claude no longer has this conversation: beginning anew with its history",
                    )?;
                    ctx.forget(&key)?;
                    session = None;
                }
            }
        }
    }

    fn health(ctx: &Context) -> Health {
        launch::health(ctx)
    }
}
export!(ClaudeCode, manifest = "../manifest.toml");

/// One run of the CLI, from the prompt to its last word.
fn converse(
    ctx: &Context,
    task: &Task,
    key: &str,
    session: Option<&Session>,
) -> Result<End, Failure> {
    let resume = session.map(|session| session.id.as_str());
    let mut child = match ctx.spawn(launch::command(task, resume)) {
        Err(Failure::Unavailable(why)) => {
            let text = format!("{why}; on the machine of the hub run `{}`", launch::INSTALL);
            return Ok(End::failed("not_installed", text));
        }
        child => child?,
    };
    // A program that ends before it reads says why on its output, which is read next.
    let _ = child.write_line(&launch::prompt(task, resume.is_some()));
    let mut driver = Driver::new(session.cloned());
    let mut stream = ctx.text_stream("answer");
    loop {
        let patience = if stream.is_waiting() { FLUSH_AFTER } else { SILENCE };
        match child.next_line(Some(patience)) {
            Ok(Some(line)) => {
                for action in driver.line(&line) {
                    if let Action::End(end) = action {
                        return close(end, stream, child);
                    }
                    perform(ctx, key, action, &mut stream, &child)?;
                }
            }
            Ok(None) => return Ok(driver.ended(&child.wait()?)),
            Err(Failure::Timeout) if stream.is_waiting() => stream.flush()?,
            Err(Failure::Timeout) => {
                return Ok(End::failed("broken_stream", "claude was silent for 15 minutes"));
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn perform(
    ctx: &Context,
    key: &str,
    action: Action,
    stream: &mut TextStream<'_>,
    child: &Child,
) -> Result<(), Failure> {
    match action {
        Action::Remember(session) => ctx.remember(key, &session),
        Action::Restart => {
            stream.restart();
            Ok(())
        }
        Action::Delta(text) => stream.push(&text),
        Action::Say(text) => {
            stream.flush()?;
            ctx.say(text)
        }
        Action::Ask(question) => {
            stream.flush()?;
            let answer = match ctx.ask(question.prompt()) {
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                answer => answer.ok(),
            };
            child.write_line(&question.answer(answer.as_ref()))
        }
        Action::Send(line) => child.write_line(&line),
        Action::End(_) => Ok(()),
    }
}

/// Publishes the answer, and lets the CLI end by itself, for it saves its session while it ends.
fn close(end: End, stream: TextStream<'_>, mut child: Child) -> Result<End, Failure> {
    match &end {
        End::Completed { text, .. } => stream.finish(text)?,
        End::LoginNeeded(_) => child.kill(),
        End::Failed { .. } | End::SessionLost => {}
    }
    child.close_stdin();
    while let Ok(Some(_)) = child.next_line(Some(EXIT_GRACE)) {}
    Ok(end)
}
