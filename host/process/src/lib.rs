//! Process supervision: signals, process groups, exit codes and reaping of other people's programs,
//! such that no program outlives its owner.
//!
//! Every program runs under a *minder*: this executable again, started as `a2a-hub __mind`, whose
//! only job is to own one process tree. The minder is a subreaper, so all that the program starts
//! stays below it, including daemons and processes in new sessions, which signals to the program's
//! group do not reach.
//!
//! ```text
//!           orders, fds, environment                      fork, exec
//!  ┌──────┐ ─────────────────────────► ┌────────┐ ─────────────────────► ┌─────────┐ ──► its
//!  │ tree │        (socket)            │ minder │  SIGINT, SIGTERM: group │ program │    children,
//!  └──┬───┘ ◄───────────────────────── └────────┘  SIGKILL: everything    └────┬────┘    daemons
//!     │        started, ended, EOF                                             │
//!  ┌──┴────┐                       stdin, stdout, stderr (pipes)               │
//!  │ Child │ ◄─────────────────────────────────────────────────────────────────┘
//!  └───────┘
//! ```
//!
//! | end of | consequence |
//! | --- | --- |
//! | the program | the minder kills what is left below it, reports, exits |
//! | the [`Child`], also by [`Child::kill`] | SIGTERM to the group, later SIGKILL |
//! | the hub, even by SIGKILL | the minder's socket closes: the same |
//! | memory of a confined program's tree | the minder reports, kills what is below it, exits |
//! | the minder | its socket closes: the hub kills processes with the tree's marker or session |
//! | both | the next [`Supervisor::sweep_leftovers`] kills processes with the hub's marker |
//!
//! The tree also identifies callers of the hub ([`Supervisor::origin`]): an agent's program never
//! counts as the operator.
//!
//! The table holds for Linux. The module `system` lists what the operating system does for a tree,
//! and what a tree lacks with POSIX only.
//!
//! A program that kills its minder *and* sheds both environment and session escapes, unless it is
//! confined ([`confine`]): then the kernel kills it with its minder.

mod baseline_processes;
mod blocking;
mod child;
pub mod confine;
mod control_group;
pub mod daemon;
mod inherited;
mod inside;
mod launch;
pub mod limits;
mod lineage;
pub mod mapped_file;
mod memory;
mod minder;
mod ownership;
pub mod probe;
mod proc;
mod procfs;
pub mod socket_owner;
mod subcommand;
mod supervisor;
mod system;
mod tree;
pub mod unused_memory;
mod wire;
mod worker;
mod working_directory;

use std::time::Duration;

pub use blocking::{Panicked, run_blocking};
pub use child::{Child, MAX_CHUNK, Pruned};
pub use control_group::controllers_of_trees;

pub use inside::{in_agents_tree, is_descendant_of};
pub use launch::{Launch, SpawnError};
pub use lineage::{ProcessOrigin, TreeOwner};
pub use subcommand::subcommand;
pub use supervisor::Supervisor;
pub use system::System;
pub use worker::{WorkError, WorkLimits, Worker, WorkerPriority, work};
pub use working_directory::WorkingDirectory;

/// First argument that makes this executable a minder.
pub const SUPERVISE: &str = "__mind";

/// Environment variable that names the owner to every program.
pub const OWNER_MARKER: &str = "A2A_HUB_OWNER";

/// Environment variable with a value unique to one process tree.
pub const TREE_MARKER: &str = "A2A_HUB_TREE";

/// Environment variable that names the hub's data directory to every program.
pub const DATA_MARKER: &str = "A2A_HUB_DATA";

/// Time that a killed tree may take to vanish. SIGKILL takes effect in milliseconds, unless the
/// kernel itself is stuck (a dead network mount); waiting longer does not help then.
const SWEEP_WAIT: Duration = Duration::from_secs(5);

/// Output of a program, in the order in which it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes from standard output, at most [`MAX_CHUNK`].
    Stdout(Vec<u8>),
    /// Bytes from standard error, at most [`MAX_CHUNK`].
    Stderr(Vec<u8>),
    /// The tree exceeded its memory limit and is being killed. Its exit follows.
    MemoryExceeded(MemoryExceeded),
    /// The program and its whole tree are gone.
    Exited(ProgramExit),
}

/// Memory of a tree and its limit, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryExceeded {
    /// Memory of all processes of the tree at the time of the check.
    pub taken: u64,
    /// See [`confine::Ceilings::memory_bytes`].
    pub limit: u64,
}

/// Exit of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    /// Exit code.
    Code(i32),
    /// Number of the signal that killed the program.
    Signal(i32),
}

impl ProgramExit {
    /// Exit of a program whose end nobody observed: the rest of its tree was killed.
    const KILLED: Self = Self::Signal(rustix::process::Signal::KILL.as_raw());
}
