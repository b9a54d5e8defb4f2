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
use std::{mem, sync::Arc, time::Duration};
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
            let failure = {
                // One at a time: the next task of the party finds it logged in.
                let _turn = self.programs.logging_in(&login.name).await;
                let begun = self.programs.begin_login(login, self.owner.clone(), &self.files);
                let Some(command) = begun.await? else { return Ok(()) };
                let Some(failure) = self.relay(command).await? else { return Ok(()) };
                failure
            };
            // While this task waits for its client, another one of the party may log in.
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
        let mut streams = [PlainOutput::default(), PlainOutput::default()];
        let mut until = Instant::now() + FIRST_WORDS;
        loop {
            let exit = read_until_quiet(&mut command, &mut streams, &mut output, until).await;
            if let Some(exit) = exit {
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
    [stdout, stderr]: &mut [PlainOutput; 2],
    output: &mut String,
    until: Instant,
) -> Option<ProgramExit> {
    let mut deadline = until;
    loop {
        let text = match timeout_at(deadline, command.child.next()).await {
            Err(_) => return None,
            Ok(Output::Exited(exit)) => return Some(exit),
            Ok(Output::MemoryExceeded(_)) => continue,
            Ok(Output::Stdout(bytes)) => stdout.read(&bytes),
            Ok(Output::Stderr(bytes)) => stderr.read(&bytes),
        };
        output.push_str(&text);
        let surplus = output.len().saturating_sub(MAX_SHOWN);
        output.drain(..output.ceil_char_boundary(surplus));
        deadline = until.min(Instant::now() + QUIET);
    }
}

/// Reader of one output stream, without the escape sequences of a terminal, which would hide the
/// address in it. A sequence or a character may be split over two reads.
#[derive(Default)]
struct PlainOutput {
    state: EscapeState,
    /// Beginning of a character whose rest was not read yet.
    incomplete: Vec<u8>,
    /// Control string so far.
    control: String,
}

impl PlainOutput {
    fn read(&mut self, bytes: &[u8]) -> String {
        self.incomplete.extend_from_slice(bytes);
        let rest = self.incomplete.len() - incomplete_end(&self.incomplete);
        let rest = self.incomplete.split_off(rest);
        let complete = mem::replace(&mut self.incomplete, rest);
        let mut text = String::new();
        String::from_utf8_lossy(&complete).chars().for_each(|c| self.pass(c, &mut text));
        text
    }

    fn pass(&mut self, c: char, text: &mut String) {
        let is_string = self.state == EscapeState::ControlString;
        if is_string && matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}' | '\n') {
            text.extend(link(&self.control).map(|address| format!("{address} ")));
            self.control.clear();
        } else if is_string && self.control.len() < MAX_SHOWN {
            self.control.push(c);
        }
        self.state = match (self.state, c) {
            (_, '\u{1b}') => EscapeState::Begun,
            // No control string goes over lines, so an unterminated one hides its line only.
            (EscapeState::Text, _) | (EscapeState::ControlString, '\n') => {
                text.push(c);
                EscapeState::Text
            }
            (EscapeState::Begun, '[') => EscapeState::Control,
            (EscapeState::Begun, ']' | 'P' | 'X' | '^' | '_') => EscapeState::ControlString,
            (EscapeState::Begun | EscapeState::Designation, '\u{20}'..='\u{2f}') => {
                EscapeState::Designation
            }
            (EscapeState::Control, '\u{40}'..='\u{7e}')
            | (EscapeState::ControlString, '\u{7}' | '\u{9c}')
            | (EscapeState::Begun | EscapeState::Designation, _) => EscapeState::Text,
            (state @ (EscapeState::Control | EscapeState::ControlString), _) => state,
        };
    }
}

/// Address of a hyperlink: `8;PARAMETERS;ADDRESS`. Its shown text may be another one.
fn link(control: &str) -> Option<&str> {
    let (_, address) = control.strip_prefix("8;")?.split_once(';')?;
    Some(address).filter(|address| !address.is_empty())
}

/// Length of a character at the end whose rest is missing.
fn incomplete_end(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
    let is_cut = str::from_utf8(last).is_err_and(|why| why.error_len().is_none());
    if is_cut { last.len() } else { 0 }
}

/// State of the reader of escape sequences (ECMA-48, sections 5.3 to 5.6; ECMA-35, section 13.2).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    Begun,
    Control,
    ControlString,
    Designation,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> String {
        let mut output = PlainOutput::default();
        let text: String = pieces.iter().map(|piece| output.read(piece)).collect();
        clean(&text).into_owned()
    }

    #[test]
    fn address_survives_styles() {
        for (output, shown) in [
            (
                &b"open \x1b[1;4mhttps://auth.example/device\x1b[0m\r\ncode \x1b[31mABCD-EFGH\x1b[0m"[..],
                "open https://auth.example/device\ncode ABCD-EFGH",
            ),
            (
                b"open \x1b]8;;https://auth.example/device\x1b\\this page\x1b]8;;\x1b\\ now",
                "open https://auth.example/device this page now",
            ),
            (b"\x1b]0;title\x07code \x1b(BABCD", "code ABCD"),
            (b"\x1b]0;title\ncode ABCD", "\ncode ABCD"),
            (b"\x1b[1\x1b[0mcode", "code"),
            (b"a\xffb", "a\u{fffd}b"),
        ] {
            assert_eq!(read(&[output]), shown);
        }
    }

    /// A pipe splits output anywhere.
    #[test]
    fn split_output_reads_as_whole() {
        let output = "\u{1b}[1;4mGer\u{e4}t\u{1b}[0m \u{1b}]8;;https://auth.example\u{7}x\u{1b}]8;;\u{7} \u{1f511}";
        let whole = read(&[output.as_bytes()]);
        assert_eq!(whole, "Ger\u{e4}t https://auth.example x \u{1f511}");
        for at in 0..output.len() {
            let (one, two) = output.as_bytes().split_at(at);
            assert_eq!(read(&[one, two]), whole, "{at}");
        }
        let bytes: Vec<_> = output.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }
}
