//! Programs that the operator allowed: starting them, reading them line by line, talking to them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::host::{Host, Process};
use crate::hub::Hub;
use crate::line_buffer::{LineBuffer, LineTooLong, MAX_LINE};
use crate::{Command, Context, ExitStatus, Failure, Output};

/// Enough of standard error to tell why a program failed.
const STDERR_TAIL: usize = 8 * 1024;

/// Standard input goes to the hub in pieces of this size.
const STDIN_CHUNK: usize = 64 * 1024;

/// Lines of standard error that wait to be read; who writes more than that at once is not read to the letter.
const MAX_COMPLAINTS: usize = 64;

impl Command {
    /// The program by the name under which the operator granted it, never a path.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), cwd: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable that the manifest names under `set`.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the directory to start in. Without, it is the task's, or else the first granted workspace.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<String>) -> Self {
        self.cwd = Some(directory.into());
        self
    }
}

impl ExitStatus {
    /// Whether the program ended by itself with code 0. Many a program does so after a failure.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// The code it returned, or the signal that ended it.
    pub status: ExitStatus,
    /// The last 8 KiB of its standard error.
    pub stderr: String,
}

impl Exit {
    /// Whether the program ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

impl Context {
    /// What tells the file of a program from another that may stand in its place later; [`Failure::Unavailable`] if there is
    /// none.
    pub fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        self.hub.fingerprint(program)
    }

    /// Starts a program.
    #[expect(clippy::needless_pass_by_value, reason = "a command is written where it is run")]
    pub fn spawn(&self, command: Command) -> Result<Child, Failure> {
        Ok(Child::of(self.hub.spawn(&command)?))
    }

    /// Takes up the program that an earlier task of this agent [parked](Child::park) under this key, if it lives and is what
    /// this command would start now: the same file, arguments, environment, directory and walls, for the same principal and
    /// tenant, under the same grant and permissions. None otherwise, and a program that does not fit is ended. Take it up
    /// before you write files that it is to read.
    ///
    /// Fails as [`spawn`](Self::spawn) does where the command is not granted.
    #[expect(clippy::needless_pass_by_value, reason = "a command is written where it is run")]
    pub fn take_up(&self, key: &str, command: Command) -> Result<Option<Child>, Failure> {
        Ok(self.hub.take_up(key, &command)?.map(Child::of))
    }

    /// Runs a program without input to its end, and hands over each line of its standard output.
    pub fn run_lines(
        &self,
        command: Command,
        mut each: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let mut child = self.spawn(command)?;
        child.close_stdin();
        while let Some(line) = child.next_line(None)? {
            each(&line)?;
        }
        child.wait()
    }
}

/// A running program. Dropping it ends the program and whatever it started.
pub struct Child {
    pub(crate) process: <Hub as Host>::Process,
    lines: LineBuffer,
    stderr: Vec<u8>,
    complaints: VecDeque<String>,
    exit: Option<ExitStatus>,
}

/// A line that a program wrote.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// To standard output.
    Output(String),
    /// To standard error.
    Complaint(String),
}

impl Child {
    fn of(process: <Hub as Host>::Process) -> Self {
        Self {
            process,
            lines: LineBuffer::default(),
            stderr: Vec::new(),
            complaints: VecDeque::new(),
            exit: None,
        }
    }

    /// The next line of standard output without its end; none when the program has ended.
    ///
    /// With a timeout, [`Failure::Timeout`] comes when the program was silent for that long; the next call goes on
    /// where this one stopped.
    pub fn next_line(&mut self, timeout: Option<Duration>) -> Result<Option<String>, Failure> {
        while self.lines.is_empty() && self.exit.is_none() {
            self.read(timeout)?;
        }
        self.complaints.clear();
        Ok(self.lines.pop())
    }

    /// The next line of standard output or, as far as it is no flood, of standard error. The rest is as with
    /// [`next_line`](Self::next_line).
    pub fn next_of_any(&mut self, timeout: Option<Duration>) -> Result<Option<Line>, Failure> {
        loop {
            if let Some(line) = self.complaints.pop_front() {
                return Ok(Some(Line::Complaint(line)));
            }
            if let Some(line) = self.lines.pop() {
                return Ok(Some(Line::Output(line)));
            }
            if self.exit.is_some() {
                return Ok(None);
            }
            self.read(timeout)?;
        }
    }

    /// Whether a line can be had without waiting.
    pub fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Sends a line to standard input.
    pub fn write_line(&self, line: &str) -> Result<(), Failure> {
        self.write(format!("{line}\n").as_bytes())
    }

    /// Sends bytes to standard input; waits while the program does not read.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        bytes.chunks(STDIN_CHUNK).try_for_each(|chunk| Process::write(&self.process, chunk))
    }

    /// Ends standard input.
    pub fn close_stdin(&self) {
        Process::close_stdin(&self.process);
    }

    /// Asks the program to interrupt what it does.
    pub fn interrupt(&self) {
        Process::interrupt(&self.process);
    }

    /// Ends the program and whatever it started.
    pub fn kill(&self) {
        Process::kill(&self.process);
    }

    /// Waits for the end; lines not read yet are lost.
    pub fn wait(mut self) -> Result<Exit, Failure> {
        loop {
            if let Some(status) = self.exit {
                return Ok(Exit { status, stderr: self.stderr() });
            }
            self.lines.clear();
            self.read(None)?;
        }
    }

    /// Ends its input and lets go of the program: it may end by itself within that time, at most five seconds, and is ended
    /// then. The task does not wait for it.
    pub fn retire(self, within: Duration) {
        Process::retire(self.process, within);
    }

    /// Says that what runs of its tree now belongs to the program: its helpers, the servers that it started for a session. That
    /// stays when it is parked; what it starts from now on is the task's, and dies before. Unless said, the program alone
    /// stays. Say it before the program is given anything to do.
    pub fn settled(&self) {
        Process::settled(&self.process);
    }

    /// Lets go of the program with its tree alive, for a later task of this agent to [take up](Context::take_up) under this key:
    /// 1 to 256 bytes without control characters. What was kept there before is ended. Whole lines that were read and not
    /// asked for are lost; what it says from now on is heard by whoever takes it up.
    ///
    /// Where this fails, the program is ended as by [`kill`](Self::kill): [`Failure::Invalid`] key, [`Failure::Unavailable`] if
    /// the program has ended or is in the middle of a line, [`Failure::Exhausted`] if the agent may keep none,
    /// [`Failure::Denied`] outside of a task, [`Failure::Cancelled`].
    pub fn park(self, key: &str) -> Result<(), Failure> {
        let unparked = |why: &str| Failure::Unavailable(format!("park a program: {why}"));
        if self.exit.is_some() {
            return Err(unparked("it has ended"));
        }
        if self.lines.is_amid() {
            return Err(unparked("it is in the middle of a line"));
        }
        Process::park(self.process, key)
    }

    /// How the program ended, once all that it wrote was read.
    pub fn exit(&self) -> Option<Exit> {
        let status = self.exit.filter(|_| self.lines.is_empty())?;
        Some(Exit { status, stderr: self.stderr() })
    }

    /// What the program last said on standard error, up to 8 KiB.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end().to_owned()
    }

    fn read(&mut self, timeout: Option<Duration>) -> Result<(), Failure> {
        match Process::next(&self.process, timeout)? {
            Output::Stdout(bytes) => self.lines.push(&bytes).map_err(|LineTooLong| {
                let why = format!("the program wrote a line of more than {MAX_LINE} bytes");
                Failure::Exhausted(why)
            })?,
            Output::Stderr(bytes) => {
                self.complain(&bytes);
                self.stderr.extend(bytes);
                let excess = self.stderr.len().saturating_sub(STDERR_TAIL);
                self.stderr.drain(..excess);
            }
            Output::Exited(status) => {
                self.exit = Some(status);
                self.lines.end();
            }
        }
        Ok(())
    }

    /// Whole lines only: the beginning of one that goes on is at the end of what was said before.
    fn complain(&mut self, bytes: &[u8]) {
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else { return };
        let begun = self.stderr.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let said = [begun, &bytes[..end]].concat();
        // A flood is looked at from its end, and no further than what is kept of it.
        let last = said.rsplit(|&byte| byte == b'\n').take(MAX_COMPLAINTS);
        let last: Vec<_> = last.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        self.complaints.extend(last.into_iter().rev());
        let excess = self.complaints.len().saturating_sub(MAX_COMPLAINTS);
        self.complaints.drain(..excess);
    }
}
