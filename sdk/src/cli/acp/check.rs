//! Check of a program that speaks the protocol: it opens a session, without any prompt.

use std::time::Duration;

use super::{Acp, Awaited, Speaker};
use crate::cli::{Action, Check, Driver, End, describe_exit};
use crate::{Child, Command, Context, Failure, foreign};

/// Time after which a starting program counts as hung. It answers within seconds even on a busy
/// machine, and within half a minute if the machine never read it from its disk.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(45);

/// Starts the program, and kills it once it has opened a session or refused to. `driver` is a new
/// one without a prompt.
pub fn check<S: Speaker>(
    ctx: &Context,
    driver: &mut Acp<S>,
    command: Command,
) -> Result<Check, Failure> {
    let mut child = ctx.spawn(command)?;
    let mut version = String::new();
    let mut actions = driver.greet();
    loop {
        for action in actions {
            match action {
                Action::Send(line) if driver.step != Awaited::Prompt => {
                    child.write_line(&line)?;
                }
                Action::End(End::LoginNeeded(why)) => return done(&child, version, Some(why)),
                Action::End(End::Failed { text, .. }) => return Err(Failure::Internal(text)),
                // This would send the prompt: every earlier step succeeded.
                Action::Send(_) => return done(&child, version, None),
                Action::End(_)
                | Action::EndInput
                | Action::Settled
                | Action::Remember(_)
                | Action::Restart
                | Action::Delta(_)
                | Action::Say(_)
                | Action::Report { .. }
                | Action::Commands(_)
                | Action::Retrying { .. }
                | Action::Withdrawn(_)
                | Action::Ask(_)
                | Action::Changed(_)
                | Action::Attach(_)
                | Action::AwaitQuiet { .. }
                | Action::Log(_) => {}
            }
        }
        let Some(line) = child.next_line(Some(STARTUP_TIMEOUT))? else {
            let exit = child.wait()?;
            let end = describe_exit(&exit);
            return Err(Failure::Unavailable(format!(
                "it does not start ({end}): {}",
                exit.stderr
            )));
        };
        if driver.step == Awaited::Initialize {
            let hello = foreign::read(&line).unwrap_or_default();
            let reported = hello["result"]["agentInfo"]["version"].as_str().unwrap_or_default();
            version = reported.to_owned();
        }
        actions = driver.line(&line);
    }
}

fn done(child: &Child, version: String, login_missing: Option<String>) -> Result<Check, Failure> {
    child.close_stdin();
    Ok(Check { version, login_missing })
}
