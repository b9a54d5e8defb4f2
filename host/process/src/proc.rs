//! The system's process table, read from `/proc`, and race-free kills.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};

use super::procfs::{ProcDirectory, read_file};
use super::{SWEEP_WAIT, TREE_MARKER};

/// Pause between two scans of the table: a killed process needs about this long to leave it.
pub(super) const SWEEP_PAUSE: Duration = Duration::from_millis(3);

/// One row of the table, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// Process id, which another process may get once it is reaped.
    pub(super) pid: Pid,
    /// Pid of the parent; 0 for none.
    parent: i32,
    /// Session id (`setsid(2)`).
    session: i32,
    /// Start time in ticks since boot: with `pid`, an identity.
    started: u64,
    /// Ended, and not yet reaped.
    ended: bool,
    /// The first thread has ended (`pthread_exit(3)`) and others continue: the kernel then reports
    /// the first thread's resources for the process, which are none.
    goes_on_without_first: bool,
}

impl Process {
    /// Row of `pid`, if it exists.
    pub(super) fn read(pid: Pid) -> Option<Self> {
        Self::parse(pid, &read_file(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses `pid (name) state parent group session …`; the name may contain spaces, brackets and
    /// any byte.
    fn parse(pid: Pid, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let first_ended = matches!(*fields.first()?, "Z" | "X");
        let threads: u32 = fields.get(17)?.parse().ok()?;
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            ended: first_ended && threads <= 1,
            goes_on_without_first: first_ended && threads > 1,
        })
    }

    /// Path below `/proc`: that of a live thread if the first one has ended.
    fn proc_path(&self) -> String {
        let process = self.pid;
        if !self.goes_on_without_first {
            return process.to_string();
        }
        let goes_on = |thread: &String| {
            let stat = read_file(format!("/proc/{thread}/stat")).ok();
            stat.and_then(|stat| Self::parse(process, &stat)).is_some_and(|it| !it.first_ended())
        };
        let mut places =
            threads(process).into_iter().map(|thread| format!("{process}/task/{thread}"));
        places.find(goes_on).unwrap_or_else(|| process.to_string())
    }

    fn first_ended(&self) -> bool {
        self.ended || self.goes_on_without_first
    }

    /// Kills this process and no other: the pidfd holds the pid while its identity is checked
    /// again.
    pub(super) fn kill(&self) -> bool {
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else { return false };
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
            && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }

    /// False if the process was reaped, even if another one has its pid now.
    fn still_exists(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.identity() == self.identity())
    }

    /// Pid of the parent; 0 for none.
    #[cfg(test)]
    pub(super) fn parent(&self) -> i32 {
        self.parent
    }

    /// True for the first process, or if the parent is outside this PID namespace.
    pub(super) fn has_no_parent(&self) -> bool {
        self.parent == 0
    }

    /// Pid and start time, which together are unique.
    pub(super) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }

    /// True if the process has ended and was not reaped yet.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Resident memory, in bytes.
    pub(super) fn resident(&self) -> u64 {
        kilobytes(self.proc_path(), "status", &["VmRSS"]).unwrap_or(0)
    }

    /// Memory without files, in bytes: resident and swapped, private and shared, with page tables.
    pub(super) fn memory(&self) -> u64 {
        kilobytes(self.proc_path(), "status", &["RssAnon", "RssShmem", "VmSwap", "VmPTE"])
            .unwrap_or(0)
    }

    /// Memory that is neither file-backed nor shared, in bytes, with page tables.
    pub(super) fn private_memory(&self) -> u64 {
        kilobytes(self.proc_path(), "status", &["RssAnon", "VmPTE"]).unwrap_or(0)
    }

    /// Same as [`memory`](Self::memory), with shared memory divided equally among its users. Takes
    /// milliseconds for each gigabyte.
    pub(super) fn share_of_memory(&self) -> u64 {
        match kilobytes(self.pid, "smaps_rollup", &["Pss_Anon", "Pss_Shmem", "SwapPss"]) {
            Some(share) => {
                share.saturating_add(kilobytes(self.pid, "status", &["VmPTE"]).unwrap_or(0))
            }
            // A process can hide the file, by running a program that it cannot read.
            None => self.memory(),
        }
    }

    /// Memory files that the process holds open (`memfd_create(2)`), by device and inode, with
    /// their size in bytes; a file is listed once for each descriptor.
    pub(super) fn memory_files(&self) -> Vec<((u64, u64), u64)> {
        let mut files = Vec::new();
        for open in self.tables().filter_map(|table| ProcDirectory::open(table).ok()) {
            open.each(|name| {
                let is_memory = open.link(name, |link| link.starts_with(b"/memfd:").then_some(()));
                files.extend(is_memory.and_then(|()| open.target_metadata(name)).map(|file| {
                    let blocks = u64::try_from(file.st_blocks).unwrap_or(0);
                    ((file.st_dev, file.st_ino), blocks.saturating_mul(512)) // units of `stat(2)`
                }));
            });
        }
        files
    }

    /// True if the process denies other processes of its user access to its descriptors.
    pub(super) fn hides_descriptors(&self) -> bool {
        match ProcDirectory::open(format!("/proc/{}/fd", self.proc_path())) {
            Ok(open) => open.hides_links(),
            Err(why) => why.kind() == io::ErrorKind::PermissionDenied,
        }
    }

    /// True if `parent` is the process's parent.
    pub(super) fn is_child_of(&self, parent: Pid) -> bool {
        self.parent == parent.as_raw_pid()
    }

    /// True if the process started after `other`.
    pub(super) fn is_younger_than(&self, other: &Self) -> bool {
        self.started > other.started
    }

    /// True if the process has ended and `parent` has to reap it.
    pub(super) fn is_ended_child_of(&self, parent: Pid) -> bool {
        self.ended && self.is_child_of(parent)
    }

    /// True if both are in one session.
    pub(super) fn shares_session(&self, other: &Self) -> bool {
        self.session == other.session
    }

    /// Inodes of the process's open sockets.
    pub(super) fn sockets(&self) -> Vec<u64> {
        self.tables().flat_map(|table| sockets_at(&table)).collect()
    }

    /// Descriptor tables of the process; each thread may have a separate one (`unshare(2)`).
    fn tables(&self) -> impl Iterator<Item = String> + use<> {
        let process = self.pid;
        // If the kernel does not answer, a table may be read twice.
        let others = threads(process).into_iter().filter(move |thread| {
            *thread != process.as_raw_pid() && !shares_descriptors(process, *thread)
        });
        let others = others.map(move |thread| format!("/proc/{process}/task/{thread}/fd"));
        iter::once(format!("/proc/{process}/fd")).chain(others)
    }

    /// True if the process is in the session that `leader` began.
    pub(super) fn in_session(&self, leader: Pid) -> bool {
        self.session == leader.as_raw_pid()
    }

    /// True if the process was started with this variable (`NAME=value`).
    pub(super) fn has_variable(&self, variable: &[u8]) -> bool {
        self.environ().split(|byte| *byte == 0).any(|entry| entry == variable)
    }

    /// True if a minder of any hub started the process: only such processes have the tree marker.
    pub(super) fn was_minded(&self) -> bool {
        let tree = variable(TREE_MARKER, Path::new(""));
        self.environ().split(|byte| *byte == 0).any(|entry| entry.starts_with(&tree))
    }

    /// Environment at the process's start; empty if the process is gone or not accessible.
    fn environ(&self) -> Vec<u8> {
        read_file(format!("/proc/{}/environ", self.proc_path())).unwrap_or_default()
    }

    /// True if the process runs as the same user as this one; other users' processes are never
    /// ours.
    pub(super) fn is_same_user(&self) -> bool {
        is_same_user(self.pid)
    }
}

/// Thread ids of a process; empty if it is gone.
fn threads(process: Pid) -> Vec<i32> {
    let threads = ProcDirectory::open(format!("/proc/{process}/task"));
    threads.map_or_else(|_| Vec::new(), |threads| threads.numbers())
}

/// True if a process runs as the same user as this one.
pub(super) fn is_same_user(pid: Pid) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|entry| entry.uid() == geteuid().as_raw())
}

/// Bytes of memory files on the machine (`tmpfs`, `memfd_create`, shared memory), plus all swapped
/// memory, part of which may be theirs. 0 if the kernel does not report it.
pub(super) fn files_in_memory() -> u64 {
    let meminfo = read_file("/proc/meminfo").unwrap_or_default();
    sum_of_kilobytes(&meminfo, &["Shmem", "SwapTotal"])
        .saturating_sub(sum_of_kilobytes(&meminfo, &["SwapFree"]))
}

/// Sum, in bytes, of these rows of a file of `/proc/<process>`, which reports kilobytes; none if
/// the file is gone or not accessible. An arbitrary process name in the file does not disturb the
/// other rows.
pub(super) fn kilobytes(process: impl Display, file: &str, names: &[&str]) -> Option<u64> {
    Some(sum_of_kilobytes(&read_file(format!("/proc/{process}/{file}")).ok()?, names))
}

/// Sum, in bytes, of the rows with these names.
fn sum_of_kilobytes(content: &[u8], names: &[&str]) -> u64 {
    let content = String::from_utf8_lossy(content);
    let rows = content.lines().filter_map(|line| line.split_once(':'));
    let rows = rows.filter(|(name, _)| names.contains(name));
    let number = |value: &str| value.trim().strip_suffix(" kB")?.parse::<u64>().ok();
    let sum = rows.filter_map(|(_, value)| number(value)).fold(0, u64::saturating_add);
    sum.saturating_mul(1024)
}

/// Inodes of the sockets that this process has open.
pub(super) fn open_sockets() -> HashSet<u64> {
    sockets_at("/proc/self/fd").into_iter().collect()
}

/// Inodes of the sockets that a process's first thread has open.
pub(super) fn sockets_of(pid: Pid) -> Vec<u64> {
    sockets_at(&format!("/proc/{pid}/fd"))
}

/// Inodes of the sockets in a descriptor table; empty if it is gone or not accessible.
fn sockets_at(table: &str) -> Vec<u64> {
    let inode = |link: &[u8]| {
        let inode = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
        str::from_utf8(inode).ok()?.parse().ok()
    };
    let mut sockets = Vec::new();
    if let Ok(open) = ProcDirectory::open(table) {
        open.each(|name| sockets.extend(open.link::<u64>(name, inode)));
    }
    sockets
}

/// All processes, in one pass. Processes that start or end meanwhile may be missing: repeat until
/// nothing is found.
pub(super) fn all() -> Vec<Process> {
    pids().into_iter().filter_map(Process::read).collect()
}

/// Pids of all processes.
pub(super) fn pids() -> Vec<Pid> {
    let numbers = ProcDirectory::open("/proc").map_or_else(|_| Vec::new(), |all| all.numbers());
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

/// True if the process and the thread share one descriptor table, as threads of most programs do.
/// This costs a hundredth of reading another table. False if the kernel denies the answer.
fn shares_descriptors(process: Pid, thread: i32) -> bool {
    #[cfg(target_os = "linux")]
    {
        /// `KCMP_FILES` of `linux/kcmp.h`.
        const FILES: libc::c_int = 2;
        let process = process.as_raw_pid();
        // SAFETY: `kcmp(2)` takes numbers, and compares without a change to anything.
        #[expect(unsafe_code, reason = "no library has this call")]
        let order = unsafe { libc::syscall(libc::SYS_kcmp, process, thread, FILES, 0, 0) };
        order == 0
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (process, thread);
        false
    }
}

/// True if this process has children; none if the kernel does not report them
/// (`CONFIG_PROC_CHILDREN`), or if a thread ended meanwhile, whose children moved to another
/// thread. Reads one file for each thread, which takes microseconds instead of milliseconds for the
/// whole table.
pub(super) fn has_children() -> Option<bool> {
    let threads = ProcDirectory::open("/proc/self/task").ok()?;
    let before = threads.numbers();
    for thread in &before {
        if !threads.read_file(format!("{thread}/children")).ok()?.is_empty() {
            return Some(true);
        }
    }
    let after: HashSet<_> =
        ProcDirectory::open("/proc/self/task").ok()?.numbers().into_iter().collect();
    before.iter().all(|thread| after.contains(thread)).then_some(false)
}

/// Descendants of `root`, like [`descendants`], but read from each process's list of children if
/// the kernel has it: the cost depends on the tree, not on the machine's processes.
pub(super) fn family(root: Pid) -> Vec<Process> {
    if fs::metadata("/proc/thread-self/children").is_err() {
        return descendants(root);
    }
    let (mut known, mut family) = (HashSet::new(), Vec::new());
    let mut add_descendants = |mut pending: Vec<Pid>| {
        while let Some(pid) = pending.pop() {
            let Some(child) = Process::read(pid) else { continue };
            if known.insert(child.identity()) {
                // Empty for most processes, which then need no second look.
                let children = children(pid);
                if !children.is_empty() && child.still_exists() {
                    pending.extend(children);
                }
                family.push(child);
            }
        }
    };
    add_descendants(children(root));
    // The first thread of `root` is read again at the end: it adopts orphans, and the children of
    // threads that ended meanwhile.
    let first = ProcDirectory::open(format!("/proc/{root}/task"));
    add_descendants(
        first
            .map_or_else(|_| Vec::new(), |threads| children_of_thread(&threads, root.as_raw_pid())),
    );
    family
}

/// Children of all threads of one process; empty if it is gone.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = ProcDirectory::open(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let numbers = threads.numbers().into_iter();
    numbers.flat_map(|thread| children_of_thread(&threads, thread)).collect()
}

/// Children of one of these threads: those that it started, and adopted orphans.
fn children_of_thread(threads: &ProcDirectory, thread: i32) -> Vec<Pid> {
    let content = threads.read_file(format!("{thread}/children")).unwrap_or_default();
    let numbers = str::from_utf8(&content).unwrap_or_default().split_ascii_whitespace();
    numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

/// Descendants of `root`. A child whose parent ended during the scan is missing: another process
/// may have the parent's pid, and the child may be that one's.
pub(super) fn descendants(root: Pid) -> Vec<Process> {
    descendants_among(all(), root, Process::still_exists)
}

/// Descendants of `root` among `others`, of parents that still exist.
fn descendants_among(
    mut others: Vec<Process>,
    root: Pid,
    exists: impl Fn(&Process) -> bool,
) -> Vec<Process> {
    let mut family = Vec::new();
    let mut parents = HashSet::from([root.as_raw_pid()]);
    loop {
        let (children, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|process| parents.contains(&process.parent));
        if children.is_empty() {
            return family;
        }
        let existing = children.iter().filter(|process| exists(process));
        parents.extend(existing.map(|process| process.pid.as_raw_pid()));
        family.extend(children);
        others = rest;
    }
}

/// Kills the processes that `belongs` selects, until a scan finds none; returns their number. This
/// process and its ancestors are spared, because a hub may run below another one.
pub(super) fn sweep(belongs: impl Fn(&Process) -> bool) -> usize {
    let deadline = now() + SWEEP_WAIT;
    let mut killed = HashSet::new();
    loop {
        let spared: Vec<_> = lineage(getpid()).iter().map(|process| process.pid).collect();
        let mut found = all();
        found.retain(|process| {
            !process.ended
                && !spared.contains(&process.pid)
                && process.is_same_user()
                && belongs(process)
        });
        if found.is_empty() || now() > deadline {
            return killed.len();
        }
        killed.extend(found.iter().filter(|process| process.kill()).map(|it| (it.pid, it.started)));
        pause(SWEEP_PAUSE);
    }
}

/// A process and its ancestors, as far as they can be read.
pub(super) fn lineage(pid: Pid) -> Vec<Process> {
    let parent = |process: &Process| Process::read(Pid::from_raw(process.parent)?);
    iter::successors(Process::read(pid), parent).collect()
}

/// Session of the process `pid`: the process number of its leader, 0 if the leader is outside the
/// PID namespace; none if the process is gone. `rustix` takes no 0.
pub(super) fn session_of(pid: Pid) -> Option<i32> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_pid());
    nix::unistd::getsid(Some(pid)).ok().map(nix::unistd::Pid::as_raw)
}

/// `NAME=value`, as the kernel stores it.
pub(super) fn variable(name: &str, value: &Path) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat()
}

/// Waits until one of `fds` is ready, or for this long.
pub(super) fn wait_for(fds: &mut [PollFd<'_>], timeout: Duration) {
    // Both errors (interrupted; a duration beyond the clock's range) only make the caller check
    // early.
    if let Ok(timeout) = Timespec::try_from(timeout) {
        let _ = poll(fds, Some(&timeout));
    }
}

/// Sleeps, without a runtime.
pub(super) fn pause(time: Duration) {
    wait_for(&mut [], time);
}

/// Current time, without a runtime.
#[expect(clippy::disallowed_methods, reason = "the minder and the sweep run outside any runtime")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn stat_is_parsed_with_any_name() {
        let stat = b"7 (a) S 9 (\xff) R 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        let parsed = Process::parse(getpid(), stat).unwrap();
        assert_eq!((parsed.parent, parsed.session, parsed.started), (3, 5, 4711));
        assert!(!parsed.ended && !parsed.first_ended());
        let zombie = |threads: u32| {
            let stat = format!("7 (a) Z 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0");
            let parsed = Process::parse(getpid(), stat.as_bytes()).unwrap();
            (parsed.ended, parsed.goes_on_without_first)
        };
        assert_eq!((zombie(1), zombie(2)), ((true, false), (false, true)));
        assert_eq!(Process::parse(getpid(), b"7 (cut short) S"), None);
    }

    #[test]
    fn children_of_reused_pid_are_no_descendants() {
        let process = |pid: i32, parent: i32| {
            let stat = format!("{pid} (a) S {parent} 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0");
            Process::parse(Pid::from_raw(pid).unwrap(), stat.as_bytes()).unwrap()
        };
        let all = [process(5, 4), process(2, 1), process(3, 2), process(4, 2), process(6, 3)];
        let pids = |reused: i32| {
            let exists = |process: &Process| process.pid.as_raw_pid() != reused;
            let found = descendants_among(all.to_vec(), Pid::from_raw(1).unwrap(), exists);
            found.iter().map(|process| process.pid.as_raw_pid()).collect::<Vec<_>>()
        };
        assert_eq!(pids(0), [2, 3, 4, 5, 6]);
        assert_eq!(pids(4), [2, 3, 4, 6], "5 may be another process's child");
        assert_eq!(pids(2), [2]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn has_children_sees_running_child() {
        let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        assert_ne!(has_children(), Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    #[expect(unsafe_code, reason = "a table of descriptors of its own is what is tested")]
    fn unshared_descriptors_of_threads_are_found() {
        let descriptors = |thread: Pid| {
            let process = Process::read(getpid()).unwrap();
            let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
            let inode = fs::metadata(format!("/proc/self/fd/{}", one.as_raw_fd())).unwrap().ino();
            drop(other);
            let shares = shares_descriptors(getpid(), thread.as_raw_pid());
            (shares, process.sockets().iter().filter(|it| **it == inode).count())
        };
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            held.recv().unwrap_err();
        });
        let (shares, seen) = descriptors(told.recv().unwrap());
        // Some sandboxes deny the call; then each table is read.
        assert!(if shares { seen == 1 } else { seen >= 2 }, "{shares}, {seen}");
        drop(hold);
        thread.join().unwrap();

        let (tell, told) = std::sync::mpsc::channel();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: from here on, only this thread uses the descriptors that it opens.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }.unwrap();
            let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
            let inode =
                fs::metadata(format!("/proc/thread-self/fd/{}", one.as_raw_fd())).unwrap().ino();
            tell.send((rustix::thread::gettid(), inode)).unwrap();
            held.recv().unwrap_err();
        });
        let (hidden, inode) = told.recv().unwrap();
        assert!(!shares_descriptors(getpid(), hidden.as_raw_pid()));
        let us = Process::read(getpid()).unwrap();
        assert!(!sockets_of(us.pid).contains(&inode), "the first thread does not have it");
        assert!(us.sockets().contains(&inode), "and it is found all the same");
        drop(hold);
        thread.join().unwrap();
    }

    #[test]
    fn binary_name_does_not_hide_memory() {
        std::thread::spawn(|| {
            rustix::thread::set_name(c"\xff: \xff").unwrap();
            let all = fs::read("/proc/thread-self/status").unwrap();
            assert!(str::from_utf8(&all).is_err(), "the kernel tells the name as it is");
            assert!(kilobytes("thread-self", "status", &["VmRSS"]).unwrap() > 0);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn table_contains_own_process_and_ancestors() {
        let us = Process::read(getpid()).unwrap();
        assert!(all().contains(&us) && us.is_same_user());
        assert!(
            lineage(us.pid).iter().any(|it| it.pid.as_raw_pid() == us.parent) || us.parent == 0
        );
    }
}
