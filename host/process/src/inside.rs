//! Detection of agents' programs: true if this process runs in a tree that a minder of any hub
//! owns.
//!
//! A hub identifies its own agents' programs with
//! [`Supervisor::origin`](super::Supervisor::origin). This module is for commands that change a
//! hub's files while no hub runs.

use super::{
    SUPERVISE, TREE_MARKER,
    confine::INIT,
    proc::{self, Process},
};
use rustix::process::{Pid, getpid};
use std::fs;

/// True if this process runs in the tree of an agent's program: below a minder, or below the init
/// of a confined program. The environment's marker counts as well, because a program that lost its
/// minder still has it.
pub fn in_agents_tree() -> bool {
    let environment = fs::read("/proc/self/environ").unwrap_or_default();
    let is_marker = |variable: &[u8]| {
        variable.strip_prefix(TREE_MARKER.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    let is_marked = environment.split(|byte| *byte == 0).any(is_marker);
    is_marked || proc::lineage(getpid()).iter().any(is_minder_or_init)
}

/// True if this process is `pid` or a descendant of it.
pub fn is_descendant_of(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    proc::lineage(getpid()).iter().any(|process| process.pid == pid)
}

/// True if a process is a minder or the init of a confined program, by its first argument.
fn is_minder_or_init(process: &Process) -> bool {
    let cmdline = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let first = cmdline.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    first == SUPERVISE.as_bytes() || first == INIT.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_below_itself_and_parent() {
        let us = getpid().as_raw_pid();
        let parent = rustix::process::getppid().map(Pid::as_raw_pid);
        assert!(is_descendant_of(us) && parent.is_none_or(is_descendant_of));
        // Above the highest pid of Linux, and zero.
        assert!(!is_descendant_of(1 << 23) && !is_descendant_of(0));
    }
}
