//! Scripted programs at run time, and those that are parked for a later task.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::program::ProgramScript;
use crate::host::Process;
use crate::{Command, ExitStatus, Failure, Output};

/// Exit statuses of an interrupted and of a killed program: SIGINT and SIGTERM.
const INTERRUPTED: ExitStatus = ExitStatus::Signal(2);
const KILLED: ExitStatus = ExitStatus::Signal(15);

/// Check that fails once the task is cancelled.
pub(super) type Stop = Box<dyn Fn() -> Result<(), Failure>>;

/// Programs that an agent parked. Clones share one list.
#[derive(Clone, Default)]
pub struct KeptPrograms(Rc<RefCell<Shelf>>);

#[derive(Default)]
struct Shelf {
    kept: Vec<ParkedProgram>,
    taken_up: Vec<(String, Command)>,
    refusal: Option<Failure>,
}

/// Parked program.
struct ParkedProgram {
    key: String,
    command: Command,
    script: Rc<RefCell<ProgramScript>>,
}

impl KeptPrograms {
    /// Keys of the programs parked now. A program's script continues with the task that resumes it;
    /// a program without remaining steps has ended.
    pub fn keys(&self) -> Vec<String> {
        self.0.borrow().kept.iter().map(|kept| kept.key.clone()).collect()
    }

    /// Attempts of the agent to resume a program, successful or not: key and command.
    pub fn asked(&self) -> Vec<(String, Command)> {
        self.0.borrow().taken_up.clone()
    }

    /// Kills the program parked under this key, as the hub may at any time.
    pub fn end(&self, key: &str) {
        self.0.borrow_mut().kept.retain(|kept| kept.key != key);
    }

    /// Refuses to park programs from now on, for this reason.
    pub fn refuse(&self, why: Failure) {
        self.0.borrow_mut().refusal = Some(why);
    }

    pub(super) fn take_up(
        &self,
        key: &str,
        command: &Command,
        stop: Stop,
    ) -> Option<ScriptedProcess> {
        let mut shelf = self.0.borrow_mut();
        shelf.taken_up.push((key.into(), command.clone()));
        let at = shelf.kept.iter().position(|kept| kept.key == key)?;
        let ParkedProgram { command: then, script, .. } = shelf.kept.swap_remove(at);
        let fits = then == *command && !script.borrow().has_ended();
        fits.then(|| ScriptedProcess { command: then, script, kept: self.clone(), stop })
    }
}

/// Program that follows its script.
pub(crate) struct ScriptedProcess {
    command: Command,
    script: Rc<RefCell<ProgramScript>>,
    kept: KeptPrograms,
    stop: Stop,
}

impl ScriptedProcess {
    pub(super) fn start(
        command: &Command,
        script: Rc<RefCell<ProgramScript>>,
        kept: KeptPrograms,
        stop: Stop,
    ) -> Result<Self, Failure> {
        let refused = script.borrow().refused.clone();
        refused.map_or(Ok(Self { command: command.clone(), script, kept, stop }), Err)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.script.borrow().is_ready()
    }
}

impl Process for ScriptedProcess {
    fn next(&self, timeout: Option<Duration>) -> Result<Output, Failure> {
        (self.stop)()?;
        let mut script = self.script.borrow_mut();
        script.advance(timeout.is_none()).ok_or_else(|| match timeout {
            Some(_) => Failure::Timeout,
            None => Failure::Internal(format!(
                "deadlock: `{}` waits for a line, the agent for output",
                script.program
            )),
        })
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        (self.stop)()?;
        self.script.borrow_mut().stdin.extend(bytes);
        Ok(())
    }

    fn close_stdin(&self) {
        self.script.borrow_mut().stdin_closed = true;
    }

    fn interrupt(&self) {
        self.script.borrow_mut().end(INTERRUPTED);
    }

    fn kill(&self) {
        self.script.borrow_mut().end(KILLED);
    }

    fn retire(self, _: Duration) {
        self.script.borrow_mut().stdin_closed = true;
    }

    fn settled(&self) {}

    fn park(self, key: &str) -> Result<(), Failure> {
        (self.stop)()?;
        let Self { command, script, kept, .. } = self;
        if script.borrow().has_ended() {
            return Err(Failure::Unavailable("park a program: it has ended".into()));
        }
        let mut shelf = kept.0.borrow_mut();
        if let Some(why) = &shelf.refusal {
            return Err(why.clone());
        }
        shelf.kept.retain(|kept| kept.key != key);
        shelf.kept.push(ParkedProgram { key: key.into(), command, script });
        Ok(())
    }
}
