//! Confinement (sandboxing) of a program: the files, processes, network and resources available to
//! it. It is applied between the minder and the program, by the kernel alone.
//!
//! ```text
//!  ┌────────┐ new user and PID  ┌──────────────┐ fork, exec ┌─────────┐
//!  │ minder │ ────namespace───► │ init (PID 1) │ ─────────► │ program │ ──► all it starts
//!  └───┬────┘  `a2a-hub __init` └──────┬───────┘            └─────────┘
//!      └──────── socket: launch, then lines ──┘
//! ```
//!
//! The `init` is this executable again, single-threaded, so that none of this has to be
//! async-signal-safe. It builds the program's view of the system, gives up every right to change
//! it, and stays as PID 1. When it ends, which the minder's end causes (`PR_SET_PDEATHSIG`), the
//! kernel kills everything in the PID namespace, including double forks and new sessions.
//!
//! | mechanism | what it denies | module |
//! | --- | --- | --- |
//! | mount namespace | files and path sockets that are not named | `view` |
//! | PID namespace | processes outside the tree: signals, `/proc` | `user` |
//! | IPC namespace | System V shared memory | `init` |
//! | network namespace, without network grant | TCP, UDP, abstract sockets | `loopback` |
//! | Landlock | writes to read-only files, TCP ports, signals, abstract sockets | `landlock` |
//! | seccomp | tracing, mounting, keys, BPF, modules, new namespaces | `syscalls` |
//! | resource limits | fork bombs, core dumps, huge files, huge processes | `ceilings` |
//! | the minder's memory checks | many processes, or shared memory, without limit | `memory` |
//!
//! The order matters: Landlock and seccomp refuse the calls that build a mount namespace, so they
//! come last.

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

/// Restricts this process, irrevocably, to its open descriptors: it can open no file by name, start
/// no program, and connect to or signal nobody. Defence in depth for work on untrusted bytes.
///
/// # Errors
///
/// If the kernel has no filter for system calls.
pub(super) fn alone() -> Result<(), NotConfined> {
    let failed = NotConfined::at(Step::Filter);
    rustix::thread::set_no_new_privs(true).map_err(|why| failed(why.into()))?;
    syscalls::alone()
}

/// Files, network and resources available to a confined program. Everything else is invisible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Files and directories that the program may read, besides those of the system that every
    /// program needs.
    pub read: Vec<PathBuf>,
    /// Directories that the program may read and write. A path inside one of `hidden` counts as
    /// well.
    pub write: Vec<PathBuf>,
    /// Files and directories that appear empty, though they lie in a readable or writable
    /// directory.
    pub hidden: Vec<PathBuf>,
    /// Directories that start empty, are writable, and vanish with the program.
    pub scratch: Vec<PathBuf>,
    /// Directory that becomes the program's `/tmp`.
    pub temporary: PathBuf,
    /// Network access.
    pub network: Network,
    /// True if the program may create namespaces and mount in them, as a program does that confines
    /// its own tools (bubblewrap).
    pub nests: bool,
    /// Resource limits.
    pub ceilings: Ceilings,
}

/// Network access of a confined program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Only itself: a network namespace with its own loopback interface.
    #[default]
    Nothing,
    /// TCP to these ports of any host, and UDP, which name resolution needs. The program may not
    /// listen on TCP.
    Ports(BTreeSet<u16>),
}

/// Resource limits of a confined program and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Processes and threads of the whole tree.
    pub processes: u32,
    /// Bytes of one written file.
    pub file_bytes: u64,
    /// Bytes of memory, without mapped files. The kernel refuses more to each process; the tree is
    /// killed if all processes together exceed it. None is unlimited.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
}

impl Default for Ceilings {
    /// Enough for a build with a compiler on each of many cores, and an archive of its results.
    fn default() -> Self {
        Self { processes: 4_096, file_bytes: 16 << 30, memory_bytes: None }
    }
}

/// First argument that makes this executable the init of a confined program.
pub const INIT: &str = "__init";
