//! Linux: minders are subreapers, `/proc` lists all processes, and handles (`pidfd`) make kills
//! free of races.

use super::interface::{LostTree, OperatingSystem};
use crate::{
    SWEEP_WAIT,
    confine::NotConfined,
    control_group,
    proc::{self, Process, SWEEP_PAUSE, now, pause},
};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};
use std::{io, os::fd::OwnedFd};

/// See the module.
pub(super) struct Linux;

impl OperatingSystem for Linux {
    fn become_subreaper(&self) -> io::Result<()> {
        Ok(set_child_subreaper(Some(getpid()))?)
    }

    /// Also takes over a delegated control group in which the hub is alone.
    fn become_hub(&self) -> io::Result<()> {
        self.become_subreaper()?;
        control_group::take_over();
        Ok(())
    }

    fn may_confine(&self) -> Result<(), NotConfined> {
        Ok(())
    }

    fn end_of(&self, program: Pid) -> io::Result<OwnedFd> {
        Ok(pidfd_open(program, PidfdFlags::empty())?)
    }

    fn lists_processes(&self) -> bool {
        true
    }

    fn descendants(&self, root: Pid) -> Option<Vec<Process>> {
        Some(proc::family(root))
    }

    fn group_of(&self, _program: Pid) -> Option<Pid> {
        None
    }

    fn may_reap(&self, _program: Pid) -> bool {
        true
    }

    /// The children of a killed process become the minder's, so having none is proof, however fast
    /// they fork.
    fn kill_descendants(&self, _program: Pid, reap: &mut dyn FnMut() -> bool) -> usize {
        let deadline = now() + SWEEP_WAIT;
        while reap() {
            let family = proc::descendants(getpid());
            if now() > deadline {
                return family.len();
            }
            for process in family {
                process.kill();
            }
            pause(SWEEP_PAUSE);
        }
        0
    }

    /// Processes of the tree have its markers, or are in the minder's session.
    fn kill_lost(&self, tree: &LostTree) -> usize {
        proc::sweep(|process| {
            tree.minder.is_some_and(|session| process.in_session(session))
                || tree.markers.iter().all(|marker| process.has_variable(marker))
        })
    }

    /// A user may have set the hub's variable for a whole desktop session. Only a minder sets a
    /// tree's variable.
    fn kill_leftovers(&self, hub: &[u8]) -> usize {
        proc::sweep(|process| process.has_variable(hub) && process.was_minded())
    }
}
