//! Programs that the operator allowed: starting them, reading their lines, writing to them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::host::{Host, Process};
use crate::hub::Hub;
use crate::line_buffer::{LineBuffer, LineTooLong, MAX_LINE};
use crate::{Command, Context, ExitStatus, Failure, Output};

/// Size of the kept tail of standard error, enough to say why a program failed.
const STDERR_TAIL: usize = 8 * 1024;

/// Size of the chunks in which standard input is sent to the hub.
const STDIN_CHUNK: usize = 64 * 1024;

/// Limit of buffered lines of standard error; of a longer burst only the last lines are kept.
const MAX_COMPLAINTS: usize = 64;

impl Command {
    /// Creates a command. `program` is the name under which the operator granted it, never a path.
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

    /// Sets an environment variable that the manifest lists under `set`.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory. The default is the task's, or else the first granted workspace.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<String>) -> Self {
        self.cwd = Some(directory.into());
        self
    }
}

impl ExitStatus {
    /// True if the program exited with code 0. Many programs do so after a failure.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// Exit of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// Exit code, or the signal that ended the program.
    pub status: ExitStatus,
    /// Last 8 KiB of standard error.
    pub stderr: String,
}

impl Exit {
    /// True if the program exited with code 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

impl Context {
    /// Fingerprint that distinguishes the program's file from a later one at the same path;
    /// [`Failure::Unavailable`] if the program does not exist.
    pub fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        self.hub.fingerprint(program)
    }

    /// Starts a program.
    #[expect(clippy::needless_pass_by_value, reason = "a command is written where it is run")]
    pub fn spawn(&self, command: Command) -> Result<Child, Failure> {
        Ok(Child::new(self.hub.spawn(&command)?))
    }

    /// Resumes the program that an earlier task of this agent [parked](Child::park) under this key.
    /// It must be alive and match what this command would start now: the same file, arguments,
    /// environment, directory and confinement, for the same principal and tenant, under the same
    /// grant and permissions. Otherwise the result is `None`, and a program that does not match is
    /// killed. Resume the program before you write files that it is to read.
    ///
    /// Fails as [`spawn`](Self::spawn) does if the command is not granted.
    #[expect(clippy::needless_pass_by_value, reason = "a command is written where it is run")]
    pub fn take_up(&self, key: &str, command: Command) -> Result<Option<Child>, Failure> {
        Ok(self.hub.take_up(key, &command)?.map(Child::new))
    }

    /// Runs a program without input to its end, and passes each line of its standard output to
    /// `each`.
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

/// Running program. Dropping it kills the program and its descendants.
pub struct Child {
    pub(crate) process: <Hub as Host>::Process,
    lines: LineBuffer,
    stderr: Vec<u8>,
    complaints: VecDeque<String>,
    exit: Option<ExitStatus>,
}

/// Line that a program wrote.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Line of standard output.
    Output(String),
    /// Line of standard error.
    Complaint(String),
}

impl Child {
    fn new(process: <Hub as Host>::Process) -> Self {
        Self {
            process,
            lines: LineBuffer::default(),
            stderr: Vec::new(),
            complaints: VecDeque::new(),
            exit: None,
        }
    }

    /// Next line of standard output without its line ending; `None` once the program has ended.
    ///
    /// If the program is silent for the timeout, the result is [`Failure::Timeout`]; the next call
    /// continues from there.
    pub fn next_line(&mut self, timeout: Option<Duration>) -> Result<Option<String>, Failure> {
        while self.lines.is_empty() && self.exit.is_none() {
            self.read(timeout)?;
        }
        self.complaints.clear();
        Ok(self.lines.pop())
    }

    /// Next line of standard output or standard error. Of a burst on standard error only the last
    /// lines are returned. Otherwise as [`next_line`](Self::next_line).
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

    /// Next piece of output as the program wrote it, or its exit, for output that may be no lines.
    /// Lines that other calls have buffered are not part of it.
    pub fn next_output(&mut self, timeout: Option<Duration>) -> Result<Output, Failure> {
        let output = Process::next(&self.process, timeout)?;
        if let Output::Exited(status) = &output {
            self.exit = Some(*status);
        }
        Ok(output)
    }

    /// True if a line is buffered.
    pub fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Writes a line to standard input.
    pub fn write_line(&self, line: &str) -> Result<(), Failure> {
        self.write(format!("{line}\n").as_bytes())
    }

    /// Writes bytes to standard input. Blocks while the program does not read.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        bytes.chunks(STDIN_CHUNK).try_for_each(|chunk| Process::write(&self.process, chunk))
    }

    /// Closes standard input.
    pub fn close_stdin(&self) {
        Process::close_stdin(&self.process);
    }

    /// Sends the program an interrupt.
    pub fn interrupt(&self) {
        Process::interrupt(&self.process);
    }

    /// Kills the program and its descendants.
    pub fn kill(&self) {
        Process::kill(&self.process);
    }

    /// Waits for the program's exit and discards unread lines.
    pub fn wait(mut self) -> Result<Exit, Failure> {
        loop {
            if let Some(status) = self.exit {
                return Ok(Exit { status, stderr: self.stderr() });
            }
            self.lines.clear();
            self.read(None)?;
        }
    }

    /// Closes standard input and detaches the program: it may exit by itself within that time, at
    /// most five seconds, and is killed after that. The task does not wait for it.
    pub fn retire(self, within: Duration) {
        Process::retire(self.process, within);
    }

    /// Marks the descendants that run now as part of the program, such as helpers and servers of a
    /// session. They stay alive when the program is parked, while processes started later belong to
    /// the task and are killed before. By default only the program itself stays. Call this before
    /// the program gets any work.
    pub fn settled(&self) {
        Process::settled(&self.process);
    }

    /// Parks the program, with the descendants that [belong to it](Self::settled), for a later task
    /// of this agent to [resume](Context::take_up) under this key: 1 to 256 bytes without control
    /// characters. A program already parked under the key is killed. Buffered lines are lost; the
    /// task that resumes the program reads its later output.
    ///
    /// If parking fails, the program is killed as by [`kill`](Self::kill): [`Failure::Invalid`]
    /// key, [`Failure::Unavailable`] if the program has ended or is in the middle of a line,
    /// [`Failure::Exhausted`] if the agent may park no more programs, [`Failure::Denied`] outside
    /// of a task, [`Failure::Cancelled`].
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

    /// Exit of the program, once all of its output was read.
    pub fn exit(&self) -> Option<Exit> {
        let status = self.exit.filter(|_| self.lines.is_empty())?;
        Some(Exit { status, stderr: self.stderr() })
    }

    /// Tail of standard error, up to 8 KiB.
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

    /// Buffers the complete lines of a chunk of standard error. The beginning of the first line may
    /// be the unfinished end of the previous chunk.
    fn complain(&mut self, bytes: &[u8]) {
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else { return };
        let begun = self.stderr.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let output = [begun, &bytes[..end]].concat();
        // Only the last lines of a burst are split off, since no more are kept.
        let last = output.rsplit(|&byte| byte == b'\n').take(MAX_COMPLAINTS);
        let last: Vec<_> = last.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        self.complaints.extend(last.into_iter().rev());
        let excess = self.complaints.len().saturating_sub(MAX_COMPLAINTS);
        self.complaints.drain(..excess);
    }
}
