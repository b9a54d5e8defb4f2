//! Confinement (sandboxing) of a program: what it may see, write, reach and use up, applied between the minder and the
//! program, by the kernel alone.
//!
//! ```text
//!  ┌────────┐ new user and PID  ┌──────────────┐ fork, exec ┌─────────┐
//!  │ minder │ ────namespace───► │ init (PID 1) │ ─────────► │ program │ ──► all it starts
//!  └───┬────┘  `a2a-hub __init` └──────┬───────┘            └─────────┘
//!      └──────── socket: launch, then lines ──┘
//! ```
//!
//! The `init` is this executable once more, single-threaded, so that nothing of this has to be async-signal-safe. It makes
//! the world that the program finds, gives up every right to change it, and stays as PID 1: with its end, which the minder's
//! end brings about (`PR_SET_PDEATHSIG`), the kernel kills all that is in the PID namespace, double forks and sessions too.
//!
//! | wall | what is behind it | where |
//! | --- | --- | --- |
//! | mount namespace | every file and path socket that is not named: another user's, the hub's, the session's | `view` |
//! | PID namespace | every process that is not of the tree: signals, `/proc` | `user` |
//! | IPC namespace | System V shared memory | `init` |
//! | network namespace, if nothing is granted | TCP, UDP, abstract sockets | `loopback` |
//! | Landlock | writing where it may only read; TCP to other ports and listening; signals and abstract sockets of others | `landlock` |
//! | seccomp | tracing, mounting, keys, BPF, modules, namespaces of its own | `syscalls` |
//! | resource limits | fork bombs, core dumps, files without end, processes without end of memory | `ceilings` |
//! | the minder's looks | many processes, or what they share, without end of memory | `memory` |
//!
//! The order matters: Landlock and seccomp refuse what makes a mount namespace, so they come last.

mod ceilings;
mod init;
mod landlock;
mod loopback;
mod program_files;
mod step;
mod support;
mod syscalls;
mod system;
mod user;
mod view;

use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, path::PathBuf};

pub(super) use init::init;
pub use program_files::files_of;
pub use step::{NotConfined, Step};
pub use support::{Shortfall, Support};
pub(super) use user::enter_namespaces;

/// Leaves this process, for good, with the descriptors that it has: no file is opened by its name, no program started, nobody called or
/// signalled. A second wall around work on bytes that nobody vouches for.
///
/// # Errors
///
/// If the kernel has no filter for system calls.
pub(super) fn alone() -> Result<(), NotConfined> {
    let failed = NotConfined::at(Step::Filter);
    rustix::thread::set_no_new_privs(true).map_err(|why| failed(why.into()))?;
    syscalls::alone()
}

/// What a confined program may see, write, reach and use up. What is not named is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Files and directories it may read, besides those of the system that every program needs.
    pub read: Vec<PathBuf>,
    /// Directories it may read and write. A file or directory inside one of `hidden` counts all the same.
    pub write: Vec<PathBuf>,
    /// Files and directories that are empty for it, though they lie in one that it may read or write.
    pub hidden: Vec<PathBuf>,
    /// Directories that begin empty for it, may be written to, and are gone with it.
    pub scratch: Vec<PathBuf>,
    /// The directory that is its `/tmp`.
    pub temporary: PathBuf,
    /// What of the network it may reach.
    pub network: Network,
    /// Whether it may make namespaces and mount in them, as a program does that confines its own tools (bubblewrap).
    pub nests: bool,
    /// What it may use up.
    pub ceilings: Ceilings,
}

/// What of the network a confined program may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Nothing but itself: a network namespace with its own loopback interface.
    #[default]
    Nothing,
    /// TCP to these ports, of any host, and UDP, without which no name is resolved. It may not listen on TCP.
    Ports(BTreeSet<u16>),
}

/// What a confined program, with all that it starts, may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Processes and threads at once, of the whole tree.
    pub processes: u32,
    /// Bytes of one file that it writes.
    pub file_bytes: u64,
    /// Bytes of memory, beside what is mapped of files: of each process, which the kernel refuses more, and of all together, which are
    /// ended where it is more. None is bounded if this is none.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
}

impl Default for Ceilings {
    /// A build with a compiler on each of many cores, and an archive of its results.
    fn default() -> Self {
        Self { processes: 4_096, file_bytes: 16 << 30, memory_bytes: None }
    }
}

/// The first argument that turns this executable into the init of a confined program.
pub const INIT: &str = "__init";
