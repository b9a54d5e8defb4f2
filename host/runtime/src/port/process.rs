//! Port for programs that the operator has allowed.

use crate::failure::Failure;
use std::{collections::BTreeSet, time::Duration};

/// A permitted program launch. Only the hub knows the program's path, and the values of its passed
/// variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermittedLaunch {
    /// Name in the grant.
    pub program: String,
    /// Arguments, without the program's name.
    pub args: Vec<String>,
    /// Variables that the guest sets.
    pub set: Vec<(String, String)>,
    /// Variables passed from the hub's environment.
    pub pass: BTreeSet<String>,
    /// Working directory; defaults to the task's.
    pub cwd: Option<String>,
    /// Limit of the agent's concurrent instances of this program.
    pub max_running: usize,
}

/// Event of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEvent {
    /// Standard output; at most 64 KiB at a time.
    Stdout(Vec<u8>),
    /// Standard error.
    Stderr(Vec<u8>),
    /// Exit with this code.
    Code(i32),
    /// End by this signal.
    Signal(i32),
}

/// Starts programs.
#[async_trait::async_trait]
pub trait ProcessPort: Send + Sync {
    /// Fingerprint of a program's file, which changes if the file is replaced;
    /// [`Failure::Unavailable`] if none can be made.
    async fn fingerprint(&self, program: &str) -> Result<String, Failure>;
    /// Starts a permitted program.
    async fn spawn(&self, launch: PermittedLaunch) -> Result<Box<dyn ChildPort>, Failure>;
    /// Resumes the agent's idle program with this key, if `launch` would start the same; none
    /// otherwise.
    async fn take_up(
        &self,
        key: &str,
        launch: PermittedLaunch,
    ) -> Result<Option<Box<dyn ChildPort>>, Failure>;
}

/// One running program. Dropping it kills the whole process tree.
#[async_trait::async_trait]
pub trait ChildPort: Send + Sync {
    /// Next event; the end comes once, last. Cancel-safe.
    async fn next(&mut self) -> Result<ProgramEvent, Failure>;
    /// Writes to its standard input; waits while the program does not read.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure>;
    /// Closes its standard input.
    fn close_stdin(&mut self);
    /// Asks it to interrupt its current work.
    fn interrupt(&mut self);
    /// Terminates the process tree, then kills it.
    fn kill(&mut self);
    /// Closes its standard input and releases it: the process tree is killed if it has not ended by
    /// itself within that time. Further output is lost.
    fn retire(self: Box<Self>, within: Duration);
    /// Marks the processes that its tree has now as those that stay when it becomes idle.
    async fn settled(&mut self);
    /// Releases it with its process tree alive, to be resumed under this key; `unread` is output
    /// that nobody has received. On failure the program is killed.
    async fn park(
        self: Box<Self>,
        key: String,
        unread: Option<ProgramEvent>,
    ) -> Result<(), Failure>;
}
