//! Whether this process runs below an agent's program: in a tree that a minder owns, whichever hub started it.
//!
//! A hub tells its own agents' programs from its operator by itself ([`Supervisor::kin`](super::Supervisor::kin)). This is for a command
//! that changes files of a hub while none is there to ask.

use super::{
    MIND, TREE_MARKER,
    confine::INIT,
    proc::{self, Process},
};
use rustix::process::{Pid, getpid};
use std::fs;

/// Whether this process runs in the tree of an agent's program: below a minder, or below the init of a confined one; or its environment
/// says so, which a program that lost its minder still has.
pub fn in_agents_tree() -> bool {
    let environment = fs::read("/proc/self/environ").unwrap_or_default();
    let is_marker = |variable: &[u8]| {
        variable.strip_prefix(TREE_MARKER.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    let is_marked = environment.split(|byte| *byte == 0).any(is_marker);
    is_marked || proc::lineage(getpid()).iter().any(minds)
}

/// Whether this process is the one with the number `pid`, or runs below it.
pub fn is_below(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    proc::lineage(getpid()).iter().any(|process| process.pid == pid)
}

/// Whether a process is a minder, or the init of a confined program, by the first argument that it was started with.
fn minds(process: &Process) -> bool {
    let told = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let first = told.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    first == MIND.as_bytes() || first == INIT.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_below_itself_and_its_parent() {
        let us = getpid().as_raw_pid();
        let parent = rustix::process::getppid().map(Pid::as_raw_pid);
        assert!(is_below(us) && parent.is_none_or(is_below));
        // Above the most that Linux gives, and none at all.
        assert!(!is_below(1 << 23) && !is_below(0));
    }
}
