//! A run that waits, before its agent starts, until the party that began its task is logged in.

use crate::{
    agent::task_ports::TaskPorts,
    port::{
        files::InstanceFiles,
        programs::{LoginCommand, Programs},
    },
};
use a2a_hub_core::{identity::LoginUser, text::terminal::clean};
use a2a_hub_process::{Output, ProgramExit, run_blocking};
use a2a_hub_protocol::message::{Message, Role};
use a2a_hub_runtime::{
    Ended, Failure, Run, RunAfter, StartAgent,
    port::tasks::{Need, TaskPort},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Longest output of a login command that is shown, in bytes: its last part.
const MAX_SHOWN: usize = 4_000;

/// Time for a login command to say what to do.
const FIRST_WORDS: Duration = Duration::from_secs(30);

/// Pause in the output after which a login command is taken to wait.
const QUIET: Duration = Duration::from_secs(1);

/// Time for a login command to end after the client has answered.
const AFTER_ANSWER: Duration = Duration::from_secs(20);

/// Task whose party may lack a login.
pub(super) struct LoginWait {
    programs: Arc<Programs>,
    user: LoginUser,
    /// Working directory of the task.
    directory: Option<String>,
    port: Arc<dyn TaskPort>,
    /// Owner of the login command's processes.
    owner: String,
    files: Arc<InstanceFiles>,
}

impl LoginWait {
    /// Wait of the task with these ports, in this working directory. `owner` is that of the login
    /// command's processes, with their files.
    pub(super) fn new(
        programs: &Arc<Programs>,
        ports: &TaskPorts,
        directory: Option<String>,
        (owner, files): (String, Arc<InstanceFiles>),
    ) -> Self {
        let (user, port) = (ports.login_user.clone(), Arc::clone(&ports.task));
        Self { programs: Arc::clone(programs), user, directory, port, owner, files }
    }

    /// Starts the agent once the party is logged in. Until then the task is `auth-required`: each
    /// answer of the client has the logins read again, or is input of the vendor's login command.
    pub(super) fn run(self, start: StartAgent) -> Box<dyn Run> {
        let cancelled = CancellationToken::new();
        let cancellation = cancelled.clone();
        let before = async move {
            let waited = cancellation.run_until_cancelled(self.wait()).await;
            waited.unwrap_or(Err(Failure::Cancelled)).err().map(Ended::Failed)
        };
        Box::new(RunAfter::new(before, start, move || cancelled.cancel()))
    }

    async fn wait(self) -> Result<(), Failure> {
        loop {
            let (programs, user) = (Arc::clone(&self.programs), self.user.clone());
            let directory = self.directory.clone();
            let choose = move || programs.login_of(&user, directory.as_deref());
            let chosen = run_blocking(choose).await;
            let login = match chosen.map_err(|why| Failure::Internal(why.to_string()))? {
                Ok(None) => return Ok(()),
                Ok(Some(login)) => login,
                Err(why) => {
                    self.ask(format!("{why}. Then answer this question, with any text.")).await?;
                    continue;
                }
            };
            // One at a time: the next task of the party finds it logged in.
            let _turn = self.programs.logging_in(&login.name).await;
            let begun = self.programs.begin_login(login, self.owner.clone(), &self.files);
            let Some(command) = begun.await? else { return Ok(()) };
            let Some(failure) = self.relay(command).await? else { return Ok(()) };
            let again = "Answer this question, with any text, to try the login again.";
            self.ask(format!("{failure}\n\n{again}")).await?;
        }
    }

    async fn ask(&self, text: String) -> Result<String, Failure> {
        let prompt = Message::text(Role::Agent, text);
        let answer = self.port.ask(Need::Auth, prompt, None).await?;
        Ok(answer.message.joined_text())
    }

    /// Shows the output of a login command to the client, and types the client's answers. Returns
    /// the reason if the login failed.
    async fn relay(&self, mut command: LoginCommand) -> Result<Option<String>, Failure> {
        let mut output = String::new();
        let mut until = Instant::now() + FIRST_WORDS;
        loop {
            if let Some(exit) = read_until_quiet(&mut command, &mut output, until).await {
                if exit == ProgramExit::Code(0) {
                    command.complete().map_err(|why| {
                        Failure::Unavailable(format!("mark the login as complete: {why}"))
                    })?;
                    return Ok(None);
                }
                return Ok(Some(format!("The login failed.\n\n{}", clean(&output))));
            }
            let answer = self
                .ask(format!(
                    "{}\n\nDo this, then answer this question: with the code, if a page shows one, or else with any text.",
                    clean(output.trim())
                ))
                .await?;
            let line = answer.lines().next().unwrap_or_default();
            // A command that needs no code has ended, or ignores it.
            let _ = command.child.write_stdin(format!("{line}\n").as_bytes()).await;
            until = Instant::now() + AFTER_ANSWER;
        }
    }
}

/// Reads a login command's output until it pauses, or until `until` if nothing comes. Returns the
/// exit of a command that has ended. Answered commands may be silent until they end, so text that
/// was shown before does not count.
async fn read_until_quiet(
    command: &mut LoginCommand,
    output: &mut String,
    until: Instant,
) -> Option<ProgramExit> {
    let mut deadline = until;
    loop {
        match timeout_at(deadline, command.child.next()).await {
            Err(_) => return None,
            Ok(Output::Exited(exit)) => return Some(exit),
            Ok(Output::MemoryExceeded(_)) => {}
            Ok(Output::Stdout(bytes) | Output::Stderr(bytes)) => {
                output.push_str(&without_escapes(&bytes));
                let surplus = output.len().saturating_sub(MAX_SHOWN);
                output.drain(..output.ceil_char_boundary(surplus));
                deadline = until.min(Instant::now() + QUIET);
            }
        }
    }
}

/// Text of output without the escape sequences of a terminal, which would hide the address in it.
fn without_escapes(bytes: &[u8]) -> String {
    let (mut text, mut state) = (String::new(), EscapeState::Text);
    for c in String::from_utf8_lossy(bytes).chars() {
        state = match (state, c) {
            (EscapeState::Text, '\u{1b}') => EscapeState::Begun,
            (EscapeState::Text, c) => {
                text.push(c);
                EscapeState::Text
            }
            (EscapeState::Begun, '[') => EscapeState::Control,
            (EscapeState::Control, c) if !('\u{40}'..='\u{7e}').contains(&c) => {
                EscapeState::Control
            }
            (EscapeState::Begun | EscapeState::Control, _) => EscapeState::Text,
        };
    }
    text
}

/// State of the reader of escape sequences (ECMA-48, sections 5.3 and 5.4).
#[derive(Clone, Copy)]
enum EscapeState {
    Text,
    Begun,
    Control,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_survives_styles() {
        let output = without_escapes(
            b"open \x1b[1;4mhttps://auth.example/device\x1b[0m\r\ncode \x1b[31mABCD-EFGH\x1b[0m",
        );
        assert_eq!(clean(&output), "open https://auth.example/device\ncode ABCD-EFGH");
    }
}
