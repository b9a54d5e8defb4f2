//! POSIX: sessions, process groups, `kill` and `waitid`, and nothing else. The base of a port,
//! which adds its system's list of processes.
//!
//! A tree is the process group of its program. A process that leaves the group, by `setsid` or as a
//! job of an interactive shell, is in no tree and outlives the program.

use super::interface::{LostTree, OperatingSystem};
use crate::{
    SWEEP_WAIT,
    confine::{NotConfined, Step},
    proc::{Process, SWEEP_PAUSE, now, pause, session_of},
};
use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
    },
};
use std::{io, os::fd::OwnedFd, thread};

/// See the module.
pub(super) struct Posix;

impl OperatingSystem for Posix {
    /// Orphans go to the first process of the system.
    fn become_subreaper(&self) -> io::Result<()> {
        Ok(())
    }

    fn become_hub(&self) -> io::Result<()> {
        Ok(())
    }

    fn may_confine(&self) -> Result<(), NotConfined> {
        Err(NotConfined {
            step: Step::System,
            errno: Errno::NOSYS.raw_os_error(),
            path: String::new(),
        })
    }

    /// Reading end of a pipe that a thread closes once `waitid` has returned.
    fn end_of(&self, program: Pid) -> io::Result<OwnedFd> {
        let (ended, lives) = io::pipe()?;
        thread::Builder::new().spawn(move || {
            let until_end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // Any other error means that the minder has reaped the program.
            while matches!(waitid(WaitId::Pid(program), until_end), Err(Errno::INTR)) {}
            drop(lives);
        })?;
        Ok(ended.into())
    }

    fn lists_processes(&self) -> bool {
        false
    }

    fn descendants(&self, _root: Pid) -> Option<Vec<Process>> {
        None
    }

    fn group_of(&self, program: Pid) -> Option<Pid> {
        Some(program)
    }

    /// Kills the group of an ended program: once the program is reaped, another process may get its
    /// number. The program is the only child of the minder, which adopts nothing.
    fn may_reap(&self, program: Pid) -> bool {
        match status_of(program) {
            Ok(Some(_)) => {
                kill_group(program);
                true
            }
            Ok(None) => false,
            Err(_reaped) => true,
        }
    }

    fn kill_descendants(&self, program: Pid, reap: &mut dyn FnMut() -> bool) -> usize {
        if status_of(program).is_ok() {
            kill_group(program);
        }
        let deadline = now() + SWEEP_WAIT;
        // Both sides: a group may live on without its leader.
        while reap() | group_exists(program) {
            if now() > deadline {
                return 1; // at least
            }
            pause(SWEEP_PAUSE);
        }
        0
    }

    /// Kills the group unless its number belongs to another session by now. Without a leader the
    /// number is the group's as long as the group exists.
    fn kill_lost(&self, tree: &LostTree) -> usize {
        let (Some(minder), Some(group)) = (tree.minder, tree.group) else { return 0 };
        if session_of(group).is_some_and(|session| session != minder.as_raw_pid())
            || !kill_group(group)
        {
            return 0;
        }
        let deadline = now() + SWEEP_WAIT;
        while group_exists(group) && now() < deadline {
            pause(SWEEP_PAUSE);
        }
        1
    }

    /// None: without a list, only a minder finds its tree, and it ends the tree with its hub.
    fn kill_leftovers(&self, _hub: &[u8]) -> usize {
        0
    }
}

/// Status of an unreaped child; none while it runs, an error if it was reaped.
fn status_of(child: Pid) -> Result<Option<rustix::process::WaitIdStatus>, Errno> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), options)
}

/// True if the group existed.
fn kill_group(group: Pid) -> bool {
    kill_process_group(group, Signal::KILL).is_ok()
}

fn group_exists(group: Pid) -> bool {
    test_kill_process_group(group).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;

    /// A child in a new group of this process's session.
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn child() -> (std::process::Child, Pid) {
        let mut command = std::process::Command::new("/bin/sleep");
        let child = command.arg("1000").process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&child);
        (child, pid)
    }

    #[test]
    fn reused_group_number_is_spared() {
        let (mut child, pid) = child();
        // Not the session itself, which may be outside the PID namespace.
        let minder = rustix::process::getpid();
        let lost = |minder, group| LostTree { minder, group, markers: [vec![], vec![]] };
        // A minder is the leader of its session, and this child is not.
        assert_eq!(Posix.kill_lost(&lost(Some(pid), Some(pid))), 0);
        assert_eq!(Posix.kill_lost(&lost(None, Some(pid))), 0);
        assert_eq!(Posix.kill_lost(&lost(Some(minder), None)), 0);
        assert!(child.try_wait().unwrap().is_none(), "it runs");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Posix.kill_lost(&lost(Some(minder), Some(pid))), 0, "gone");
    }

    #[test]
    fn end_of_child_leaves_it_unreaped() {
        let (mut child, pid) = child();
        let handle = Posix.end_of(pid).unwrap();
        let is_over = |at_most| {
            let mut fds = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
            crate::proc::wait_for(&mut fds, at_most);
            !fds[0].revents().is_empty()
        };
        assert!(!is_over(std::time::Duration::from_millis(20)));
        child.kill().unwrap();
        assert!(is_over(std::time::Duration::from_secs(20)));
        assert!(matches!(status_of(pid), Ok(Some(_))), "it can still be reaped");
        child.wait().unwrap();
        assert!(status_of(pid).is_err());
    }
}
