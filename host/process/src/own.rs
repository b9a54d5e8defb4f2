//! What of a tree is the program's own, and stays when its task is over: the program, and the helpers that it had before it was given
//! anything to do. What it started later did the task's work, whatever session, group or parent it gave itself since: it is
//! told by when it came, which no process can change.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, getpid};

use super::proc::{self, Process, SWEEP_PAUSE, now, pause};
use super::wire::{Look, Seen};

/// How long strangers may take to be gone once they were killed.
const PRUNE_WAIT: Duration = Duration::from_secs(1);

/// Looks in a row that find no stranger. One look may miss a process that forks while it is taken.
const CLEAN_LOOKS: usize = 2;

/// The processes below this one that are a program's own.
pub(super) struct Own(HashSet<(Pid, u64)>);

impl Own {
    /// Those that are there now.
    pub(super) fn of_now() -> Self {
        Self::of(&proc::family(getpid()))
    }

    fn of(family: &[Process]) -> Self {
        Self(family.iter().map(Process::identity).collect())
    }

    /// Does what is to be done about the tree, and says what was found.
    pub(super) fn look(&mut self, look: Look) -> Seen {
        if look == Look::Prune {
            return self.prune();
        }
        let family = proc::family(getpid());
        if look == Look::Settle {
            *self = Self::of(&family);
        }
        Seen { killed: 0, left: 0, resident: resident(&family) }
    }

    /// Kills the others until a few looks find none of them.
    fn prune(&self) -> Seen {
        let deadline = now() + PRUNE_WAIT;
        let (mut killed, mut clean) = (HashSet::new(), 0);
        loop {
            let family = proc::family(getpid());
            let strangers = || family.iter().filter(|process| self.is_stranger(process));
            let left = strangers().count();
            clean = if left == 0 { clean + 1 } else { 0 };
            if clean == CLEAN_LOOKS || now() > deadline {
                return Seen { killed: killed.len(), left, resident: resident(&family) };
            }
            killed.extend(strangers().filter(|it| it.kill()).map(Process::identity));
            if left > 0 {
                pause(SWEEP_PAUSE);
            }
        }
    }

    /// One that has ended and waits for its parent to ask does nothing any more.
    fn is_stranger(&self, process: &Process) -> bool {
        !process.has_ended() && !self.0.contains(&process.identity())
    }
}

fn resident(family: &[Process]) -> u64 {
    family.iter().map(Process::resident).sum()
}
