//! Where an agent has programs run that its operator allowed.

use crate::failure::Failure;
use std::{collections::BTreeSet, time::Duration};

/// A program to start, found allowed. Where it is, and what its passed variables hold, only the hub knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its name in the grant.
    pub program: String,
    /// The arguments of the program, without its name.
    pub args: Vec<String>,
    /// Variables the guest sets.
    pub set: Vec<(String, String)>,
    /// Variables passed on from the hub's environment.
    pub pass: BTreeSet<String>,
    /// Where it starts; if left out, where the task is at home.
    pub cwd: Option<String>,
    /// How many of this program the agent may have running at once.
    pub max_running: usize,
}

/// Something a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It wrote to its standard output; at most 64 KiB at a time.
    Stdout(Vec<u8>),
    /// It wrote to its standard error.
    Stderr(Vec<u8>),
    /// It ended by itself, with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

/// The hub's side: starts programs.
#[async_trait::async_trait]
pub trait ProcessPort: Send + Sync {
    /// What tells the file that a program is from another that may stand there later; [`Failure::Unavailable`] if there is
    /// none.
    async fn fingerprint(&self, program: &str) -> Result<String, Failure>;
    /// Starts a program that was found allowed.
    async fn spawn(&self, launch: Launch) -> Result<Box<dyn ChildPort>, Failure>;
    /// Takes up the program that is kept under this key of the agent's, if it is what `launch` would start; none otherwise.
    async fn take_up(
        &self,
        key: &str,
        launch: Launch,
    ) -> Result<Option<Box<dyn ChildPort>>, Failure>;
}

/// The hub's side of one running program. Dropping it ends the whole process tree.
#[async_trait::async_trait]
pub trait ChildPort: Send + Sync {
    /// What it does next; the end comes once, last. May be dropped and called again.
    async fn next(&mut self) -> Result<Said, Failure>;
    /// Sends bytes to its standard input; waits while it does not read.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure>;
    /// Ends its standard input.
    fn close_stdin(&mut self);
    /// Asks it to interrupt what it does.
    fn interrupt(&mut self);
    /// Asks the process tree to end, then ends it.
    fn kill(&mut self);
    /// Ends its standard input, and lets go of it: its tree is ended if it has not ended by itself within that time. What it
    /// still says is lost.
    fn retire(self: Box<Self>, within: Duration);
    /// What runs of its tree now stays when it is parked.
    async fn settled(&mut self);
    /// Lets go of it with its tree alive, to be taken up under this key; `unread` is what it said that nobody was told yet.
    /// Where this fails, the program is ended.
    async fn park(self: Box<Self>, key: String, unread: Option<Said>) -> Result<(), Failure>;
}
