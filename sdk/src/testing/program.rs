//! Scripts of programs: their output, the points at which they wait for input, their exit.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::Value;

use crate::{Command, ExitStatus, Failure, Output};

/// Script of one run of a program, and afterwards its record.
pub struct Program(pub(super) Rc<RefCell<ProgramScript>>);

pub(super) struct ProgramScript {
    pub(super) program: String,
    args: Option<Vec<String>>,
    pub(super) refused: Option<Failure>,
    steps: VecDeque<ScriptStep>,
    exit: ExitStatus,
    pub(super) stdin: Vec<u8>,
    lines_read: usize,
    pub(super) stdin_closed: bool,
}

enum ScriptStep {
    Write(Output),
    Read,
    Pause,
}

impl Program {
    fn change(self, change: impl FnOnce(&mut ProgramScript)) -> Self {
        change(&mut self.0.borrow_mut());
        self
    }

    fn step(self, step: ScriptStep) -> Self {
        self.change(|script| script.steps.push_back(step))
    }

    /// Restricts the script to these arguments. By default any match.
    pub fn args(self, args: &[&str]) -> Self {
        self.change(|script| script.args = Some(args.iter().map(|&arg| arg.into()).collect()))
    }

    /// Writes one chunk of standard output.
    pub fn stdout(self, chunk: impl AsRef<[u8]>) -> Self {
        self.step(ScriptStep::Write(Output::Stdout(chunk.as_ref().into())))
    }

    /// Writes one chunk of standard error.
    pub fn stderr(self, chunk: impl AsRef<[u8]>) -> Self {
        self.step(ScriptStep::Write(Output::Stderr(chunk.as_ref().into())))
    }

    /// Waits for a line of standard input.
    pub fn reads(self) -> Self {
        self.step(ScriptStep::Read)
    }

    /// Plays a recorded conversation: writes the text after each `< `, and waits for a line at each
    /// `> `.
    pub fn plays(self, recording: &str) -> Self {
        recording.lines().fold(self, |program, line| match line.split_once(' ') {
            Some(("<", said)) => program.stdout(format!("{said}\n")),
            Some((">", _)) => program.reads(),
            _ => program,
        })
    }

    /// Is silent until one wait of the agent has timed out.
    pub fn pauses(self) -> Self {
        self.step(ScriptStep::Pause)
    }

    /// Exits with that code instead of 0.
    pub fn exit(self, code: i32) -> Self {
        self.change(|script| script.exit = ExitStatus::Code(code))
    }

    /// Fails to start.
    pub fn refused(self, failure: Failure) -> Self {
        self.change(|script| script.refused = Some(failure))
    }

    /// Standard input written by the agent.
    pub fn stdin(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow().stdin).into_owned()
    }

    /// Standard input written by the agent, each line as JSON. Panics at a line that is not JSON.
    pub fn told(&self) -> Vec<Value> {
        self.stdin().lines().map(json).collect()
    }

    /// True if the agent closed standard input.
    pub fn stdin_closed(&self) -> bool {
        self.0.borrow().stdin_closed
    }
}

impl ProgramScript {
    pub(super) fn new(program: &str) -> Self {
        Self {
            program: program.into(),
            args: None,
            refused: None,
            steps: VecDeque::new(),
            exit: ExitStatus::Code(0),
            stdin: Vec::new(),
            lines_read: 0,
            stdin_closed: false,
        }
    }

    pub(super) fn fits(&self, command: &Command) -> bool {
        self.program == command.program && self.args.as_ref().is_none_or(|a| *a == command.args)
    }

    fn has_unread_line(&self) -> bool {
        self.stdin.iter().filter(|&&byte| byte == b'\n').count() > self.lines_read
    }

    /// True if the agent can read without waiting.
    pub(super) fn is_ready(&self) -> bool {
        match self.steps.front() {
            None | Some(ScriptStep::Write(_)) => true,
            Some(ScriptStep::Read) => self.has_unread_line() || self.stdin_closed,
            Some(ScriptStep::Pause) => false,
        }
    }

    /// True if only the exit is left to report.
    pub(super) fn has_ended(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn end(&mut self, status: ExitStatus) {
        self.steps.clear();
        self.exit = status;
    }

    /// Next chunk, or `None` while the program is silent. A wait without a timeout skips pauses.
    pub(super) fn advance(&mut self, patient: bool) -> Option<Output> {
        loop {
            match self.steps.front() {
                None => return Some(Output::Exited(self.exit)),
                Some(ScriptStep::Write(output)) => {
                    let output = output.clone();
                    self.steps.pop_front();
                    return Some(output);
                }
                Some(ScriptStep::Pause) => {
                    self.steps.pop_front();
                    if !patient {
                        return None;
                    }
                }
                Some(ScriptStep::Read) if self.has_unread_line() => {
                    self.lines_read += 1;
                    self.steps.pop_front();
                }
                // At the end of input, a program that reads to the end continues.
                Some(ScriptStep::Read) if self.stdin_closed => {
                    self.steps.pop_front();
                }
                Some(ScriptStep::Read) => return None,
            }
        }
    }
}

/// Parses a line as JSON. Panics if it is not JSON.
pub(super) fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))
}
