//! The system's table of processes, read from `/proc`, and killing exactly who was meant.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};

use super::{SWEEP_WAIT, TREE_MARKER};

/// Between two looks at the table: a killed process needs about this long to leave it.
pub(super) const SWEEP_PAUSE: Duration = Duration::from_millis(3);

/// One row of the table, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number, which another process may get once it is reaped.
    pub(super) pid: Pid,
    /// The process that would reap it; 0 for none.
    parent: i32,
    /// The id of its session (`setsid(2)`).
    session: i32,
    /// When it started, in ticks since boot: with `pid`, an identity.
    started: u64,
    /// Ended, and not yet reaped.
    ended: bool,
}

impl Process {
    /// The row of `pid`, if there is one.
    fn read(pid: Pid) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads `pid (name) state parent group session …`, where the name may hold spaces, brackets and any byte.
    fn parse(pid: Pid, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            ended: matches!(*fields.first()?, "Z" | "X"),
        })
    }

    /// Ends this process and no other: the handle holds the number while its identity is looked at once more.
    pub(super) fn kill(&self) -> bool {
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else { return false };
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
            && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }

    /// Whether it leads, or belongs to, the session that `leader` began.
    pub(super) fn in_session(&self, leader: Pid) -> bool {
        self.session == leader.as_raw_pid()
    }

    /// Whether it was started with this variable (`NAME=value`).
    pub(super) fn was_given(&self, variable: &[u8]) -> bool {
        self.environ().split(|byte| *byte == 0).any(|entry| entry == variable)
    }

    /// Whether some minder started it, for whatever hub: the markers of trees are in nobody else's environment.
    pub(super) fn was_minded(&self) -> bool {
        let tree = variable(TREE_MARKER, Path::new(""));
        self.environ().split(|byte| *byte == 0).any(|entry| entry.starts_with(&tree))
    }

    /// The variables it was started with; none if it is gone, or not ours to ask.
    fn environ(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default()
    }

    /// Whether it runs as the same user as this one; nobody else's process is ever ours.
    fn is_own(&self) -> bool {
        fs::metadata(format!("/proc/{}", self.pid))
            .is_ok_and(|entry| entry.uid() == geteuid().as_raw())
    }
}

/// Everybody, as seen in one pass. Who comes or goes meanwhile may be missing: look again until nothing is found.
fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter_map(Process::read)
        .collect()
}

/// The children of `root`, theirs, and so on.
pub(super) fn descendants(root: Pid) -> Vec<Process> {
    let mut others = all();
    let mut family = Vec::new();
    let mut parents = HashSet::from([root.as_raw_pid()]);
    loop {
        let (children, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|process| parents.contains(&process.parent));
        if children.is_empty() {
            return family;
        }
        parents.extend(children.iter().map(|process| process.pid.as_raw_pid()));
        family.extend(children);
        others = rest;
    }
}

/// Kills what `belongs`, until a look around finds none, and says how many that were.
/// This process and those above it are spared: a hub may well run below another.
pub(super) fn sweep(belongs: impl Fn(&Process) -> bool) -> usize {
    let deadline = now() + SWEEP_WAIT;
    let mut killed = HashSet::new();
    loop {
        let spared = lineage(getpid());
        let mut found = all();
        found.retain(|process| {
            !process.ended && !spared.contains(&process.pid) && process.is_own() && belongs(process)
        });
        if found.is_empty() || now() > deadline {
            return killed.len();
        }
        killed.extend(found.iter().filter(|process| process.kill()).map(|it| (it.pid, it.started)));
        pause(SWEEP_PAUSE);
    }
}

/// `pid`, its parent, and so on up to the first process.
fn lineage(pid: Pid) -> Vec<Pid> {
    let parent = |pid: &Pid| Pid::from_raw(Process::read(*pid)?.parent);
    std::iter::successors(Some(pid), parent).collect()
}

/// `NAME=value`, as the kernel keeps it.
pub(super) fn variable(name: &str, value: &Path) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat()
}

/// Waits until one of `fds` has something, or this long.
pub(super) fn wait_for(fds: &mut [PollFd<'_>], at_most: Duration) {
    // Both errors (interrupted; longer than the clock can say) only make the caller look around early.
    if let Ok(at_most) = Timespec::try_from(at_most) {
        let _ = poll(fds, Some(&at_most));
    }
}

/// Waits this long, without a runtime.
pub(super) fn pause(time: Duration) {
    wait_for(&mut [], time);
}

/// The time, without a runtime.
#[expect(clippy::disallowed_methods, reason = "the minder and the sweep run outside any runtime")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = b"7 (a) S 9 (\xff) R 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        let parsed = Process::parse(getpid(), stat).unwrap();
        assert_eq!((parsed.parent, parsed.session, parsed.started), (3, 5, 4711));
        assert!(!parsed.ended);
        assert_eq!(Process::parse(getpid(), b"7 (cut short) S"), None);
    }

    #[test]
    fn the_table_knows_us_and_our_line() {
        let us = Process::read(getpid()).unwrap();
        assert!(all().contains(&us) && us.is_own());
        assert!(lineage(us.pid).iter().any(|pid| pid.as_raw_pid() == us.parent) || us.parent == 0);
    }
}
