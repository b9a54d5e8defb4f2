//! The system's table of processes, read from `/proc`, and killing exactly who was meant.

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

use super::procfs::{Directory, told};
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
    /// Its first thread has ended (`pthread_exit(3)`) and others go on: what the kernel tells of the process is what the first one has left,
    /// which is nothing.
    goes_on_without_first: bool,
}

impl Process {
    /// The row of `pid`, if there is one.
    pub(super) fn read(pid: Pid) -> Option<Self> {
        Self::parse(pid, &told(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads `pid (name) state parent group session …`, where the name may hold spaces, brackets and any byte.
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

    /// Where it is in `/proc`: where a thread of it is that goes on.
    fn place(&self) -> String {
        let process = self.pid;
        if !self.goes_on_without_first {
            return process.to_string();
        }
        let goes_on = |thread: &String| {
            let stat = told(format!("/proc/{thread}/stat")).ok();
            stat.and_then(|stat| Self::parse(process, &stat)).is_some_and(|it| !it.first_ended())
        };
        let mut places =
            threads(process).into_iter().map(|thread| format!("{process}/task/{thread}"));
        places.find(goes_on).unwrap_or_else(|| process.to_string())
    }

    fn first_ended(&self) -> bool {
        self.ended || self.goes_on_without_first
    }

    /// Ends this process and no other: the handle holds the number while its identity is looked at once more.
    pub(super) fn kill(&self) -> bool {
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else { return false };
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
            && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }

    /// The number of the process that would reap it; 0 for none.
    #[cfg(test)]
    pub(super) fn parent(&self) -> i32 {
        self.parent
    }

    /// Whether it is the first process, or its parent is beyond what this process sees.
    pub(super) fn has_no_parent(&self) -> bool {
        self.parent == 0
    }

    /// Its number and when it started, which together are nobody else's.
    pub(super) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }

    /// Whether it has ended, and was not reaped yet.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Its memory that is resident, in bytes.
    pub(super) fn resident(&self) -> u64 {
        kilobytes(self.place(), "status", &["VmRSS"]).unwrap_or(0)
    }

    /// Its memory that is no file's, in bytes: in the machine's and swapped, of its own and shared, with the tables of its pages.
    pub(super) fn memory(&self) -> u64 {
        kilobytes(self.place(), "status", &["RssAnon", "RssShmem", "VmSwap", "VmPTE"]).unwrap_or(0)
    }

    /// Its memory that is neither a file's nor shared, in bytes, with the tables of its pages.
    pub(super) fn own_memory(&self) -> u64 {
        kilobytes(self.place(), "status", &["RssAnon", "VmPTE"]).unwrap_or(0)
    }

    /// The same as [`memory`](Self::memory), where what is shared counts in equal parts for all that share it. Takes milliseconds for each gigabyte.
    pub(super) fn share_of_memory(&self) -> u64 {
        match kilobytes(self.pid, "smaps_rollup", &["Pss_Anon", "Pss_Shmem", "SwapPss"]) {
            Some(share) => {
                share.saturating_add(kilobytes(self.pid, "status", &["VmPTE"]).unwrap_or(0))
            }
            // One may hide it, by running a program that it cannot read.
            None => self.memory(),
        }
    }

    /// The files in memory that it holds open (`memfd_create(2)`), by device and inode, with the bytes that each takes; a file is
    /// told as often as it is open.
    pub(super) fn memory_files(&self) -> Vec<((u64, u64), u64)> {
        let mut files = Vec::new();
        for open in self.tables().filter_map(|table| Directory::open(table).ok()) {
            open.each(|name| {
                let is_memory = open.link(name, |link| link.starts_with(b"/memfd:").then_some(()));
                files.extend(is_memory.and_then(|()| open.behind(name)).map(|file| {
                    let blocks = u64::try_from(file.st_blocks).unwrap_or(0);
                    ((file.st_dev, file.st_ino), blocks.saturating_mul(512)) // of whatever size blocks are, `stat(2)` counts these
                }));
            });
        }
        files
    }

    /// Whether it does not let others of its user look at what it has open.
    pub(super) fn hides_descriptors(&self) -> bool {
        match Directory::open(format!("/proc/{}/fd", self.place())) {
            Ok(open) => open.hides_links(),
            Err(why) => why.kind() == io::ErrorKind::PermissionDenied,
        }
    }

    /// Whether `parent` would reap it.
    pub(super) fn is_child_of(&self, parent: Pid) -> bool {
        self.parent == parent.as_raw_pid()
    }

    /// Whether it started after `other` did.
    pub(super) fn is_younger_than(&self, other: &Self) -> bool {
        self.started > other.started
    }

    /// Whether it has ended, and `parent` is to reap it.
    pub(super) fn is_ended_child_of(&self, parent: Pid) -> bool {
        self.ended && self.is_child_of(parent)
    }

    /// Whether both are of one session.
    pub(super) fn shares_session(&self, other: &Self) -> bool {
        self.session == other.session
    }

    /// The inodes of the sockets that it has open.
    pub(super) fn sockets(&self) -> Vec<u64> {
        self.tables().flat_map(|table| sockets_at(&table)).collect()
    }

    /// Its tables of descriptors, of which each thread may have one of its own (`unshare(2)`).
    fn tables(&self) -> impl Iterator<Item = String> + use<> {
        let process = self.pid;
        // Where it cannot be told, a table is looked at once more than it need be.
        let others = threads(process).into_iter().filter(move |thread| {
            *thread != process.as_raw_pid() && !shares_descriptors(process, *thread)
        });
        let others = others.map(move |thread| format!("/proc/{process}/task/{thread}/fd"));
        iter::once(format!("/proc/{process}/fd")).chain(others)
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
        told(format!("/proc/{}/environ", self.place())).unwrap_or_default()
    }

    /// Whether it runs as the same user as this one; nobody else's process is ever ours.
    pub(super) fn is_own(&self) -> bool {
        is_own(self.pid)
    }
}

/// The numbers of a process's threads; none if it is gone.
fn threads(process: Pid) -> Vec<i32> {
    let threads = Directory::open(format!("/proc/{process}/task"));
    threads.map_or_else(|_| Vec::new(), |threads| threads.numbers())
}

/// Whether a process runs as the same user as this one.
pub(super) fn is_own(pid: Pid) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|entry| entry.uid() == geteuid().as_raw())
}

/// Bytes that files in memory take on the machine (`tmpfs`, `memfd_create`, what processes share), with what of its memory is swapped: some of
/// that is theirs. 0 if the kernel does not tell.
pub(super) fn files_in_memory() -> u64 {
    let told = told("/proc/meminfo").unwrap_or_default();
    sum_of_kilobytes(&told, &["Shmem", "SwapTotal"])
        .saturating_sub(sum_of_kilobytes(&told, &["SwapFree"]))
}

/// The sum, in bytes, of what a file of `/proc/<process>` tells in kilobytes by these names; none if that is gone, or not ours to look
/// into. A process names itself as it likes, and what else the file tells is known all the same.
pub(super) fn kilobytes(process: impl Display, file: &str, names: &[&str]) -> Option<u64> {
    Some(sum_of_kilobytes(&told(format!("/proc/{process}/{file}")).ok()?, names))
}

/// The sum, in bytes, of the rows with these names.
fn sum_of_kilobytes(told: &[u8], names: &[&str]) -> u64 {
    let told = String::from_utf8_lossy(told);
    let rows = told.lines().filter_map(|line| line.split_once(':'));
    let rows = rows.filter(|(name, _)| names.contains(name));
    let number = |value: &str| value.trim().strip_suffix(" kB")?.parse::<u64>().ok();
    let sum = rows.filter_map(|(_, value)| number(value)).fold(0, u64::saturating_add);
    sum.saturating_mul(1024)
}

/// The inodes of the sockets that this process has open.
pub(super) fn own_sockets() -> HashSet<u64> {
    sockets_at("/proc/self/fd").into_iter().collect()
}

/// The inodes of the sockets that the first thread of a process has open.
pub(super) fn sockets_of(pid: Pid) -> Vec<u64> {
    sockets_at(&format!("/proc/{pid}/fd"))
}

/// The inodes of the sockets in the table of descriptors at this place; none if it is gone, or not ours to look into.
fn sockets_at(table: &str) -> Vec<u64> {
    let inode = |link: &[u8]| {
        let inode = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
        str::from_utf8(inode).ok()?.parse().ok()
    };
    let mut sockets = Vec::new();
    if let Ok(open) = Directory::open(table) {
        open.each(|name| sockets.extend(open.link::<u64>(name, inode)));
    }
    sockets
}

/// Everybody, as seen in one pass. Who comes or goes meanwhile may be missing: look again until nothing is found.
pub(super) fn all() -> Vec<Process> {
    pids().into_iter().filter_map(Process::read).collect()
}

/// The numbers of all processes.
pub(super) fn pids() -> Vec<Pid> {
    let numbers = Directory::open("/proc").map_or_else(|_| Vec::new(), |all| all.numbers());
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

/// Whether the process and the thread have one table of descriptors, as all threads of most programs do. To ask costs a hundredth of looking into
/// another one. False if the kernel does not tell, or not us.
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

/// Whether this process has children; none if the kernel does not tell (`CONFIG_PROC_CHILDREN`), or a thread ended meanwhile, whose
/// children are another's now. Asks for each thread, and so takes microseconds where the whole table takes milliseconds.
pub(super) fn has_children() -> Option<bool> {
    let threads = Directory::open("/proc/self/task").ok()?;
    let before = threads.numbers();
    for thread in &before {
        if !threads.told(format!("{thread}/children")).ok()?.is_empty() {
            return Some(true);
        }
    }
    let after: HashSet<_> =
        Directory::open("/proc/self/task").ok()?.numbers().into_iter().collect();
    before.iter().all(|thread| after.contains(thread)).then_some(false)
}

/// What is below `root`, as [`descendants`] has it, by asking each process for its children where the kernel tells: that costs what the
/// tree is large, and not what the machine runs.
pub(super) fn family(root: Pid) -> Vec<Process> {
    if fs::metadata("/proc/thread-self/children").is_err() {
        return descendants(root);
    }
    let (mut known, mut family) = (HashSet::new(), Vec::new());
    let mut below = |mut asked: Vec<Pid>| {
        while let Some(pid) = asked.pop() {
            let Some(child) = Process::read(pid) else { continue };
            if known.insert(child.identity()) {
                asked.extend(children(pid));
                family.push(child);
            }
        }
    };
    below(children(root));
    // Its first thread is asked once more at the end: that has the orphans that came to it meanwhile, and the children of threads that ended.
    let first = Directory::open(format!("/proc/{root}/task"));
    below(
        first
            .map_or_else(|_| Vec::new(), |threads| children_of_thread(&threads, root.as_raw_pid())),
    );
    family
}

/// The children of one process, of all its threads; none if it is gone.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = Directory::open(format!("/proc/{parent}/task")) else { return Vec::new() };
    let numbers = threads.numbers().into_iter();
    numbers.flat_map(|thread| children_of_thread(&threads, thread)).collect()
}

/// The children that one of these threads has started, and orphans that came to it.
fn children_of_thread(threads: &Directory, thread: i32) -> Vec<Pid> {
    let told = threads.told(format!("{thread}/children")).unwrap_or_default();
    let numbers = str::from_utf8(&told).unwrap_or_default().split_ascii_whitespace();
    numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
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
        let spared: Vec<_> = lineage(getpid()).iter().map(|process| process.pid).collect();
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

/// `pid`, its parent, and so on up to the first process, as far as they can be read.
pub(super) fn lineage(pid: Pid) -> Vec<Process> {
    let parent = |process: &Process| Process::read(Pid::from_raw(process.parent)?);
    iter::successors(Process::read(pid), parent).collect()
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
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_name_may_hold_anything() {
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
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn the_kernel_tells_of_children() {
        let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        assert_ne!(has_children(), Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    #[expect(unsafe_code, reason = "a table of descriptors of its own is what is tested")]
    fn a_thread_shares_its_descriptors_unless_it_has_some_of_its_own() {
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
        // Some sandboxes deny the question; then each table is looked at.
        assert!(if shares { seen == 1 } else { seen >= 2 }, "{shares}, {seen}");
        drop(hold);
        thread.join().unwrap();

        let (tell, told) = std::sync::mpsc::channel();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: what this thread opens from here on, it uses itself.
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
    fn no_name_hides_what_a_process_takes() {
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
    fn the_table_knows_us_and_our_line() {
        let us = Process::read(getpid()).unwrap();
        assert!(all().contains(&us) && us.is_own());
        assert!(
            lineage(us.pid).iter().any(|it| it.pid.as_raw_pid() == us.parent) || us.parent == 0
        );
    }
}
