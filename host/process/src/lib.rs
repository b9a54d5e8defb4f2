//! Signals, process groups, exit codes and reaping: other people's programs, and how none of them outlives its owner.
//!
//! Every program runs under a *minder*: this executable again, started as `a2a-hub __mind`, with nothing to do but
//! to own one tree of processes. It is a subreaper, so whatever the program starts stays below it, also what
//! daemonises or takes a session of its own, where signals to the program's group no longer reach.
//!
//! ```text
//!           orders, fds, environment                      fork, exec
//!  ┌──────┐ ─────────────────────────► ┌────────┐ ─────────────────────► ┌─────────┐ ──► children,
//!  │ tree │        (socket)            │ minder │  SIGINT, SIGTERM: group │ program │     grandchildren,
//!  └──┬───┘ ◄───────────────────────── └────────┘  SIGKILL: everything    └────┬────┘     daemons
//!     │        started, ended, EOF                                             │
//!  ┌──┴────┐                       stdin, stdout, stderr (pipes)               │
//!  │ Child │ ◄─────────────────────────────────────────────────────────────────┘
//!  └───────┘
//! ```
//!
//! | who goes | what follows |
//! | --- | --- |
//! | the program | the minder kills what is left below it, reports, ends |
//! | the [`Child`], or somebody called [`Child::kill`] | SIGTERM to the group; after the grace, SIGKILL to all |
//! | the hub, even by SIGKILL | the minder's socket ends: the same |
//! | memory below a program that is confined | the minder says so, kills what is below it, reports, ends |
//! | the minder | its socket ends: the hub kills what carries the tree's marker or the minder's session |
//! | the hub and the minder | at the next start [`Supervisor::sweep_leftovers`] kills what carries the hub's marker |
//!
//! Who is below the hub is told by the same tree ([`Supervisor::kin`]): a program of an agent is never its operator.
//!
//! A program that kills its minder *and* sheds both environment and session gets away, unless it is confined ([`confine`]): then the
//! kernel ends it with its minder.

mod blocking;
mod child;
pub mod confine;
mod control_group;
pub mod daemon;
mod errand;
mod inside;
mod launch;
pub mod limits;
mod lineage;
pub mod mapped_file;
mod memory;
mod minder;
mod own;
mod ownership;
pub mod probe;
mod proc;
mod procfs;
mod supervisor;
mod tree;
pub mod unused_memory;
mod wire;
mod worker;

use std::time::Duration;

pub use blocking::{Panicked, run_blocking};
pub use child::{Child, MAX_CHUNK, Pruned};
pub use control_group::controllers_of_trees;

pub use errand::errand;
pub use inside::{in_agents_tree, is_below};
pub use launch::{Launch, SpawnError};
pub use lineage::{Kin, OnBehalf};
pub use supervisor::Supervisor;
pub use worker::{WorkError, WorkLimits, Worker, work};

/// The first argument that turns this executable into a minder.
pub const MIND: &str = "__mind";

/// The environment variable in which every program finds whom it belongs to.
pub const OWNER_MARKER: &str = "A2A_HUB_OWNER";

/// The environment variable that is the same for a program and all it starts, and for nobody else.
pub const TREE_MARKER: &str = "A2A_HUB_TREE";

/// The environment variable in which every program finds whose hub started it, told by the data directory.
pub const DATA_MARKER: &str = "A2A_HUB_DATA";

/// How long a killed tree may take to be gone. SIGKILL takes effect in milliseconds unless the kernel itself is
/// stuck (a dead network mount), and that no wait would cure.
const SWEEP_WAIT: Duration = Duration::from_secs(5);

/// What a program says, in the order it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes from its standard output, at most [`MAX_CHUNK`].
    Stdout(Vec<u8>),
    /// Bytes from its standard error, at most [`MAX_CHUNK`].
    Stderr(Vec<u8>),
    /// It took more memory than it may, with all it started, and is ended for that. Its exit follows.
    MemoryExceeded(MemoryExceeded),
    /// It is gone, and so is all it started.
    Exited(Exit),
}

/// How much memory a tree took, and how much it may have, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryExceeded {
    /// All its processes together, when it was looked.
    pub taken: u64,
    /// See [`confine::Ceilings::memory_bytes`].
    pub limit: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Exit {
    /// What is said of a program whose end nobody saw: all that was left of it was killed.
    const KILLED: Self = Self::Signal(rustix::process::Signal::KILL.as_raw());
}
