//! Identity of local processes: the tree below this process to which a process belongs, if any.
//!
//! An agent's program runs as the hub's own user and calls the hub like any client. Its position in
//! the system's process tree distinguishes it from the operator, and it cannot leave that position:
//! daemons and new sessions stay below their minder, which is a subreaper, and the orphans of a
//! killed minder stay below the hub.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::iter;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::proc::{self, Process};

/// Attempts to read a process's ancestors that change meanwhile.
const LOOKS: usize = 8;

/// Agent and task or other owner for which a process tree runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeOwner {
    /// See [`Launch::agent`](super::Launch::agent).
    pub agent: String,
    /// See [`Launch::owner`](super::Launch::owner).
    pub owner: String,
    /// Unique name of the tree, which outlives its owner: identifies connections.
    pub tree: String,
}

/// Relation of a process, or of a socket's holder, to this hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessOrigin {
    /// Not below this process: it belongs to the user.
    Outside,
    /// This process itself, if it is only a hub: its requests are on behalf of their initiators.
    Hub,
    /// Part of a tree that runs on this behalf.
    Tree(TreeOwner),
    /// Below this process and in no known tree; or gone, or not found.
    Unknown,
}

/// Current behalf of a tree, shared by all that know the tree.
pub(super) type Behalf = Arc<Mutex<TreeOwner>>;

/// Number of outside processes with recent connections that are checked first.
const RECENT: usize = 8;

/// Live minders with the behalf of their trees. Clones share state.
#[derive(Clone, Debug, Default)]
pub(super) struct Minders {
    all: Arc<Mutex<HashMap<i32, Behalf>>>,
    /// Outside processes with recent connections, the latest first: a client that connects for each
    /// request is found without a scan of all processes.
    recent: Arc<Mutex<VecDeque<Pid>>>,
}

impl Minders {
    /// Registers a minder until the returned guard is dropped.
    pub(super) fn register(&self, minder: Option<Pid>, behalf: Behalf) -> Registered {
        let minder = minder.map(Pid::as_raw_pid);
        self.with(|all| minder.and_then(|minder| all.insert(minder, behalf)));
        Registered { minders: self.clone(), minder }
    }

    fn with<T>(&self, f: impl FnOnce(&mut HashMap<i32, Behalf>) -> T) -> T {
        f(&mut self.all.lock())
    }

    /// Current behalf of a tree; none if it is gone.
    pub(super) fn of_tree(&self, tree: &str) -> Option<TreeOwner> {
        let all: Vec<Behalf> = self.with(|all| all.values().cloned().collect());
        all.iter().map(|behalf| behalf.lock().clone()).find(|behalf| behalf.tree == tree)
    }

    fn owner_of_minder(&self, pid: Pid) -> Option<TreeOwner> {
        let behalf = self.with(|all| all.get(&pid.as_raw_pid()).cloned())?;
        let now = behalf.lock().clone();
        Some(now)
    }

    /// Relation of the process `pid`. `adopts` is true if orphans below this process can only come
    /// from trees.
    pub(super) fn origin(&self, pid: i32, adopts: bool) -> ProcessOrigin {
        let Some(pid) = Pid::from_raw(pid) else { return ProcessOrigin::Unknown };
        let us = getpid();
        if pid == us {
            return if adopts { ProcessOrigin::Hub } else { ProcessOrigin::Outside };
        }
        let Some(line) = steady_lineage(pid) else { return ProcessOrigin::Unknown };
        let Some(index) = line.iter().position(|process| process.pid == us) else {
            return ProcessOrigin::Outside;
        };
        match line[..index].iter().rev().find_map(|process| self.owner_of_minder(process.pid)) {
            Some(behalf) => ProcessOrigin::Tree(behalf),
            None if adopts => ProcessOrigin::Unknown,
            None => ProcessOrigin::Outside,
        }
    }

    /// Relation of the process `pid`, by its session alone. A process that left its minder's
    /// session cannot be distinguished from the operator, so both are unknown.
    pub(super) fn origin_by_session(&self, pid: i32, adopts: bool) -> ProcessOrigin {
        let Some(pid) = Pid::from_raw(pid) else { return ProcessOrigin::Unknown };
        if pid == getpid() {
            return if adopts { ProcessOrigin::Hub } else { ProcessOrigin::Outside };
        }
        let minder = proc::session_of(pid).and_then(Pid::from_raw);
        minder
            .and_then(|minder| self.owner_of_minder(minder))
            .map_or(ProcessOrigin::Unknown, ProcessOrigin::Tree)
    }

    /// Relation of the holders of the sockets with these inodes, in order. A holder below this
    /// process takes precedence over others.
    pub(super) fn origins_of_sockets(&self, inodes: &[u64], adopts: bool) -> Vec<ProcessOrigin> {
        let mut search = SocketSearch::new(self, inodes, adopts);
        if !adopts {
            // A program that embeds the hub is probably its client, too.
            search.check_this_process();
        }
        let mut descendants = Vec::new();
        if self.has_trees() || proc::has_children() != Some(false) {
            // The cost depends on the size of the trees, not on the machine's processes. The full
            // scan below covers what this misses.
            descendants = proc::family(getpid());
            if descendants.is_empty() {
                descendants = proc::descendants(getpid());
            }
        }
        if !descendants.is_empty() {
            search.check_descendants_and_others(&descendants);
        }
        // Last for a standalone hub, which is rarely its own client.
        search.check_this_process();
        let rest =
            if descendants.is_empty() { ProcessOrigin::Outside } else { ProcessOrigin::Unknown };
        inodes.iter().map(|inode| search.found.get(inode).unwrap_or(&rest).clone()).collect()
    }

    /// True if a tree is registered.
    fn has_trees(&self) -> bool {
        self.with(|all| !all.is_empty())
    }

    /// Records an outside process that had a connection.
    fn had(&self, pid: Pid) {
        let mut recent = self.recent.lock();
        recent.retain(|other| *other != pid);
        recent.push_front(pid);
        recent.truncate(RECENT);
    }

    /// Reaps orphans of trees that came to this process when their minder was killed. The own
    /// children of this process are those in its session, and the minders; nobody else waits for
    /// the others.
    pub(super) fn reap_orphans(&self) {
        let Some(us) = Process::read(getpid()) else { return };
        let orphans = proc::all()
            .into_iter()
            .filter(|process| process.is_ended_child_of(us.pid) && !process.shares_session(&us));
        for orphan in orphans.filter(|orphan| self.owner_of_minder(orphan.pid).is_none()) {
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG); // usually reaped already
        }
    }
}

/// Search for the holders of some sockets.
struct SocketSearch<'m> {
    minders: &'m Minders,
    adopts: bool,
    /// Relation of this process's own sockets.
    ours: ProcessOrigin,
    wanted: HashSet<u64>,
    found: HashMap<u64, ProcessOrigin>,
    /// Inodes of the sockets that this process has open.
    our_inodes: LazyCell<HashSet<u64>>,
}

impl<'m> SocketSearch<'m> {
    fn new(minders: &'m Minders, inodes: &[u64], adopts: bool) -> Self {
        let our_inodes = LazyCell::new(proc::open_sockets as fn() -> HashSet<u64>);
        let ours = if adopts { ProcessOrigin::Hub } else { ProcessOrigin::Outside };
        let wanted = inodes.iter().copied().collect();
        Self { minders, adopts, ours, wanted, found: HashMap::new(), our_inodes }
    }

    fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Checks processes below this one, then others.
    fn check_descendants_and_others(&mut self, descendants: &[Process]) {
        let us = getpid();
        for holder in descendants {
            self.at(holder.pid, &holder.sockets(), true);
        }
        let recent: Vec<Pid> = self.minders.recent.lock().iter().copied().collect();
        // The full list is read only if no recent process matches.
        let rest = iter::once_with(|| Self::other_processes(descendants)).flatten();
        let mut others = recent.into_iter().chain(rest).filter(|pid| *pid != us);
        while !self.is_over()
            && let Some(holder) = others.next()
        {
            // A process that started meanwhile is checked like any other.
            self.at(holder, &proc::sockets_of(holder), false);
        }
    }

    /// Processes outside the known descendants, the most recently started first, as a new client
    /// probably is.
    fn other_processes(descendants: &[Process]) -> impl Iterator<Item = Pid> + use<> {
        let start_times: HashMap<_, _> = descendants.iter().map(Process::identity).collect();
        let latest_first = proc::pids().into_iter().rev();
        let (known, others): (Vec<_>, Vec<_>) =
            latest_first.partition(|pid| start_times.contains_key(pid));
        // A process that reuses the pid of a known one is checked like any other.
        let is_another = move |pid: &Pid| {
            let now = Process::read(*pid).map(|process| process.identity());
            now.is_some_and(|(_, started)| start_times.get(pid) != Some(&started))
        };
        others.into_iter().chain(known.into_iter().filter(is_another))
    }

    /// Checks the sockets of this process.
    fn check_this_process(&mut self) {
        if self.is_over() {
            return;
        }
        let matched = self.wanted.extract_if(|inode| self.our_inodes.contains(inode));
        self.found.extend(matched.map(|inode| (inode, self.ours.clone())));
    }

    /// Checks the sockets of a process. One that is not below this process counts only if it has
    /// the same user.
    fn at(&mut self, holder: Pid, sockets: &[u64], is_descendant: bool) {
        let is_wanted = |inode: &&u64| self.wanted.contains(inode);
        let matching: Vec<u64> = sockets.iter().filter(is_wanted).copied().collect();
        if matching.is_empty() || !is_descendant && !proc::is_same_user(holder) {
            return;
        }
        let mut origin = self.minders.origin(holder.as_raw_pid(), self.adopts);
        if origin == ProcessOrigin::Outside && is_descendant && self.adopts {
            // It ended between the two reads; it was below this process.
            origin = ProcessOrigin::Unknown;
        }
        if origin == ProcessOrigin::Outside && !is_descendant {
            self.minders.had(holder);
        }
        for inode in matching {
            self.wanted.remove(&inode);
            // A child before `exec` has inherited all open sockets, so those that are this
            // process's own do not count as the child's.
            let is_ours = origin != ProcessOrigin::Outside && self.our_inodes.contains(&inode);
            self.found.insert(inode, if is_ours { self.ours.clone() } else { origin.clone() });
        }
    }
}

/// Registration of a minder, removed on drop.
#[derive(Debug)]
pub(super) struct Registered {
    minders: Minders,
    minder: Option<i32>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.minders.with(|all| self.minder.and_then(|minder| all.remove(&minder)));
    }
}

/// Ancestors of a process, itself first; none if they cannot be determined.
///
/// A parent that ends meanwhile leaves its child to another process and its pid to reuse. So a
/// chain that does not reach the first process, or has a parent younger than its child, is read
/// again.
fn steady_lineage(pid: Pid) -> Option<Vec<Process>> {
    (0..LOOKS).find_map(|_| {
        let line = proc::lineage(pid);
        let is_complete = line.last().is_some_and(Process::has_no_parent);
        let is_steady = line.windows(2).all(|pair| !pair[1].is_younger_than(&pair[0]));
        (is_complete && is_steady).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;
    use std::process::{Command, Stdio};

    fn behalf() -> TreeOwner {
        TreeOwner { agent: "codex".to_owned(), owner: "t".to_owned(), tree: "1.0".to_owned() }
    }

    fn shared() -> Behalf {
        Arc::new(Mutex::new(behalf()))
    }

    /// A child process with no inherited sockets.
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn child() -> std::process::Child {
        Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn process_kin_follows_registered_minder() {
        let minders = Minders::default();
        let mut below = child();
        let pid = i32::try_from(below.id()).unwrap();
        assert_eq!(minders.origin(pid, true), ProcessOrigin::Unknown, "an orphan of some tree");
        assert_eq!(
            minders.origin(pid, false),
            ProcessOrigin::Outside,
            "a child of who embeds the hub"
        );
        let registered = minders.register(Pid::from_raw(pid), shared());
        assert_eq!(minders.origin(pid, true), ProcessOrigin::Tree(behalf()));
        drop(registered);
        assert_eq!(minders.origin(pid, true), ProcessOrigin::Unknown, "its minder is gone");

        assert_eq!(minders.origin(getpid().as_raw_pid(), true), ProcessOrigin::Hub, "it is us");
        assert_eq!(
            minders.origin(getpid().as_raw_pid(), false),
            ProcessOrigin::Outside,
            "who embeds the hub"
        );
        let above = Process::read(getpid()).map(|us| us.parent());
        assert_eq!(
            above.map(|above| minders.origin(above, true)),
            Some(ProcessOrigin::Outside),
            "above us"
        );
        below.kill().unwrap();
        below.wait().unwrap();
        assert_eq!(minders.origin(pid, true), ProcessOrigin::Unknown, "gone");
        assert_eq!(minders.origin(0, true), ProcessOrigin::Unknown);
    }

    fn inode_of(socket: &TcpStream) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    /// A child process that also has the socket open.
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn copy_in_a_child(socket: &TcpStream) -> std::process::Child {
        let copy = std::os::fd::OwnedFd::from(socket.try_clone().unwrap());
        Command::new("/bin/sleep").arg("1000").stdin(Stdio::from(copy)).spawn().unwrap()
    }

    #[test]
    fn socket_kin_follows_its_holder() {
        let minders = Minders::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let inode = inode_of(&client);
        let mut idle = child();
        let whose = |adopts| minders.origins_of_sockets(&[inode], adopts).remove(0);
        assert_eq!(whose(false), ProcessOrigin::Outside, "ours, beside a child");
        assert_eq!(whose(true), ProcessOrigin::Hub);

        #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
        let holder = Command::new("/bin/sleep")
            .arg("1000")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(client)))
            .spawn();
        let mut holder = holder.unwrap();
        let pid = Pid::from_child(&holder);
        let both = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut inherits = copy_in_a_child(&both);
        let inherited = minders.register(Some(Pid::from_child(&inherits)), shared());
        assert_eq!(
            minders.origins_of_sockets(&[inode_of(&both)], false),
            [ProcessOrigin::Outside],
            "ours, although a child has it, too"
        );
        inherits.kill().unwrap();
        inherits.wait().unwrap();
        drop(inherited);
        let registered = minders.register(Some(pid), shared());
        assert_eq!(whose(true), ProcessOrigin::Tree(behalf()));
        drop(registered);
        assert_eq!(whose(true), ProcessOrigin::Unknown);
        for child in [&mut holder, &mut idle] {
            child.kill().unwrap();
        }
        holder.wait().unwrap();
        assert_eq!(whose(true), ProcessOrigin::Unknown, "nobody holds it");
        idle.wait().unwrap();
    }

    #[test]
    fn recent_clients_are_checked_first() {
        let minders = Minders::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut idle = child();
        // Its parent exits at once, so it is not below this process.
        let hold = |client: TcpStream| {
            let inode = inode_of(&client);
            #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
            let told = Command::new("/bin/sh")
                .args(["-c", "exec 3<&0; sleep 1000 <&3 3<&- >/dev/null 2>&1 & echo $!"])
                .stdin(Stdio::from(std::os::fd::OwnedFd::from(client)))
                .output();
            let pid = String::from_utf8(told.unwrap().stdout).unwrap().trim().parse().unwrap();
            (Pid::from_raw(pid).unwrap(), inode)
        };
        let whose = |inode| minders.origins_of_sockets(&[inode], true).remove(0);
        let recent = || minders.recent.lock().iter().copied().collect::<Vec<_>>();
        let ((first, its), (second, others)) = (hold(connect()), hold(connect()));
        assert_eq!((whose(its), recent()), (ProcessOrigin::Outside, vec![first]));
        assert_eq!((whose(others), recent()), (ProcessOrigin::Outside, vec![second, first]));
        assert_eq!((whose(its), recent()), (ProcessOrigin::Outside, vec![first, second]));

        // A process that reuses a client's pid is checked like any other.
        minders.had(Pid::from_child(&idle));
        let ours = connect();
        assert_eq!(whose(inode_of(&ours)), ProcessOrigin::Hub);
        for pid in [first, second] {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            while Process::read(pid).is_some_and(|it| !it.has_ended()) {
                proc::pause(proc::SWEEP_PAUSE);
            }
        }
        assert_eq!(whose(its), ProcessOrigin::Unknown, "nobody holds it");
        (0..2 * i32::try_from(RECENT).unwrap())
            .for_each(|pid| minders.had(Pid::from_raw(pid + 1).unwrap()));
        assert_eq!(recent().len(), RECENT);
        idle.kill().unwrap();
        idle.wait().unwrap();
    }
}
