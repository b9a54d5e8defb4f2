//! Interface between the supervision of process trees and the operating system.

use crate::{confine::NotConfined, proc::Process};
use rustix::process::Pid;
use std::{io, os::fd::OwnedFd};

/// Operating system calls that own, list and end process trees.
///
/// The methods with a `program` run in its minder, which is the parent of the program and the
/// leader of its session. The program is the leader of its process group.
pub(crate) trait OperatingSystem: Sync {
    /// Makes this minder the parent of all orphans below it, where the system can.
    fn become_subreaper(&self) -> io::Result<()>;

    /// Prepares a process that is only a hub: orphans of a killed minder stay below it, where the
    /// system can.
    fn become_hub(&self) -> io::Result<()>;

    /// Refuses confinement on a system that has none. Success promises nothing: each step of a
    /// confinement reports its own failure.
    fn may_confine(&self) -> Result<(), NotConfined>;

    /// Handle that polls as ready once `program` has ended. The program stays unreaped.
    fn end_of(&self, program: Pid) -> io::Result<OwnedFd>;

    /// True if the system reports all processes with their parents and environments.
    fn lists_processes(&self) -> bool;

    /// Processes below `root`; none if the system has no list of processes.
    fn descendants(&self, root: Pid) -> Option<Vec<Process>>;

    /// Process group that the hub must know to end the tree without its minder; none if it finds
    /// the tree in the list of processes.
    fn group_of(&self, program: Pid) -> Option<Pid>;

    /// Runs before the minder reaps its children, while the pid of `program` cannot be reused yet.
    /// False if the minder must not reap any of them now, because `program` runs.
    fn may_reap(&self, program: Pid) -> bool;

    /// Kills the tree of `program` and reaps with `reap`, which returns false if the minder has no
    /// children; returns the number of known survivors. The program may have been reaped before.
    fn kill_descendants(&self, program: Pid, reap: &mut dyn FnMut() -> bool) -> usize;

    /// Kills what is left of a tree whose minder was killed and is not reaped yet; returns the
    /// number of kills.
    fn kill_lost(&self, tree: &LostTree) -> usize;

    /// Kills processes of minders with this variable (`NAME=value`), which names an earlier hub's
    /// data directory; returns the number of kills.
    fn kill_leftovers(&self, hub: &[u8]) -> usize;
}

/// A tree without its minder.
pub(crate) struct LostTree {
    /// Pid of the unreaped minder, which is also the number of the tree's session.
    pub(crate) minder: Option<Pid>,
    /// See [`OperatingSystem::group_of`].
    pub(crate) group: Option<Pid>,
    /// Variables (`NAME=value`) that each process of the tree was given.
    pub(crate) markers: [Vec<u8>; 2],
}
