//! Whose a process is: in which tree below this process it runs, if it is in one.
//!
//! An agent's program runs as the hub's own user, and knocks at the hub's doors like anybody else. What tells it from its
//! operator is where it stands in the system's tree of processes, which it cannot leave: daemons and new sessions
//! stay below their minder, which is a subreaper, and the orphans of a minder that was killed stay below the hub.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::iter;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::proc::{self, Process};

/// How often the way up from a process is looked at anew that changed meanwhile.
const LOOKS: usize = 8;

/// On whose behalf the processes of a tree run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnBehalf {
    /// As [`Launch::agent`](super::Launch::agent) says.
    pub agent: String,
    /// As [`Launch::owner`](super::Launch::owner) says.
    pub owner: String,
    /// The tree, which is nobody else's at any time: what a connection is known by that outlives the owner.
    pub tree: String,
}

/// Whose a process, or whoever holds a socket, is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kin {
    /// Nobody's below this process: it is the user's.
    Outside,
    /// This process itself, which is the hub's alone: what it sends is on behalf of whoever had it send.
    Own,
    /// It runs in a tree that was started on this behalf.
    Tree(OnBehalf),
    /// It is below this process, and in no tree that is known; or it is gone, or cannot be found.
    Unknown,
}

/// On whose behalf a tree runs now, as all that know of the tree see it.
pub(super) type Behalf = Arc<Mutex<OnBehalf>>;

/// How many of those beside this process that had a connection are asked first when there is another.
const RECENT: usize = 8;

/// The minders that live, each with the behalf on which its tree runs. Clones are one register.
#[derive(Clone, Debug, Default)]
pub(super) struct Minders {
    all: Arc<Mutex<HashMap<i32, Behalf>>>,
    /// Who beside this process had a connection, the latest first: a client that connects for each request is found without a look at all
    /// that the machine runs.
    recent: Arc<Mutex<VecDeque<Pid>>>,
}

impl Minders {
    /// Registers a minder until what is returned is dropped.
    pub(super) fn register(&self, minder: Option<Pid>, behalf: Behalf) -> Registered {
        let minder = minder.map(Pid::as_raw_pid);
        self.with(|all| minder.and_then(|minder| all.insert(minder, behalf)));
        Registered { minders: self.clone(), minder }
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashMap<i32, Behalf>) -> T) -> T {
        look(&mut self.all.lock())
    }

    /// On whose behalf a tree runs now; none if it is gone.
    pub(super) fn of_tree(&self, tree: &str) -> Option<OnBehalf> {
        let all: Vec<Behalf> = self.with(|all| all.values().cloned().collect());
        all.iter().map(|behalf| behalf.lock().clone()).find(|behalf| behalf.tree == tree)
    }

    fn on_behalf(&self, pid: Pid) -> Option<OnBehalf> {
        let behalf = self.with(|all| all.get(&pid.as_raw_pid()).cloned())?;
        let now = behalf.lock().clone();
        Some(now)
    }

    /// Whose the process with this number is. `adopts` says whether orphans of ours can only be those of trees.
    pub(super) fn kin(&self, pid: i32, adopts: bool) -> Kin {
        let Some(pid) = Pid::from_raw(pid) else { return Kin::Unknown };
        let us = getpid();
        if pid == us {
            return if adopts { Kin::Own } else { Kin::Outside };
        }
        let Some(line) = steady_lineage(pid) else { return Kin::Unknown };
        let Some(below) = line.iter().position(|process| process.pid == us) else {
            return Kin::Outside;
        };
        match line[..below].iter().rev().find_map(|process| self.on_behalf(process.pid)) {
            Some(behalf) => Kin::Tree(behalf),
            None if adopts => Kin::Unknown,
            None => Kin::Outside,
        }
    }

    /// Whose the sockets with these inodes are, in that order. Who is below this process and holds one counts before all others that do.
    pub(super) fn kin_of_sockets(&self, inodes: &[u64], adopts: bool) -> Vec<Kin> {
        let mut look = Look::new(self, inodes, adopts);
        if !adopts {
            // Whoever embeds the hub is likely to be its client, too.
            look.at_own();
        }
        let mut below = Vec::new();
        if self.has_trees() || proc::has_children() != Some(false) {
            // What the trees are large, and not what the machine runs. Where that misses somebody, the look at all below does not.
            below = proc::family(getpid());
            if below.is_empty() {
                below = proc::descendants(getpid());
            }
        }
        if !below.is_empty() {
            look.below_and_beside(&below);
        }
        // Last where the hub is a program of its own, for it is seldom its own client.
        look.at_own();
        let rest = if below.is_empty() { Kin::Outside } else { Kin::Unknown };
        inodes.iter().map(|inode| look.found.get(inode).unwrap_or(&rest).clone()).collect()
    }

    /// Whether a tree is registered.
    fn has_trees(&self) -> bool {
        self.with(|all| !all.is_empty())
    }

    /// Notes who beside this process had a connection.
    fn had(&self, pid: Pid) {
        let mut recent = self.recent.lock();
        recent.retain(|other| *other != pid);
        recent.push_front(pid);
        recent.truncate(RECENT);
    }

    /// Reaps the orphans of trees that came to this process when their minder was killed. Its own children are those in
    /// its own session, and the minders; nobody else waits for the others.
    pub(super) fn reap_orphans(&self) {
        let Some(us) = Process::read(getpid()) else { return };
        let orphans = proc::all()
            .into_iter()
            .filter(|process| process.is_ended_child_of(us.pid) && !process.shares_session(&us));
        for orphan in orphans.filter(|orphan| self.on_behalf(orphan.pid).is_none()) {
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG); // gone already, as it should be
        }
    }
}

/// A look for whose some sockets are.
struct Look<'m> {
    minders: &'m Minders,
    adopts: bool,
    /// What those of this process are.
    ours: Kin,
    wanted: HashSet<u64>,
    found: HashMap<u64, Kin>,
    /// The inodes of the sockets that this process has open.
    own: LazyCell<HashSet<u64>>,
}

impl<'m> Look<'m> {
    fn new(minders: &'m Minders, inodes: &[u64], adopts: bool) -> Self {
        let own = LazyCell::new(proc::own_sockets as fn() -> HashSet<u64>);
        let ours = if adopts { Kin::Own } else { Kin::Outside };
        let wanted = inodes.iter().copied().collect();
        Self { minders, adopts, ours, wanted, found: HashMap::new(), own }
    }

    fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Finds those that processes below this one hold, and then those that others do.
    fn below_and_beside(&mut self, below: &[Process]) {
        let us = getpid();
        for holder in below {
            self.at(holder.pid, &holder.sockets(), true);
        }
        let recent: Vec<Pid> = self.minders.recent.lock().iter().copied().collect();
        // The others are read from the system only if it is none of these.
        let rest = iter::once_with(|| Self::beside(below)).flatten();
        let mut others = recent.into_iter().chain(rest).filter(|pid| *pid != us);
        while !self.is_over()
            && let Some(holder) = others.next()
        {
            // Nothing moved between the looks: whoever started meanwhile is asked as any other.
            self.at(holder, &proc::sockets_of(holder), false);
        }
    }

    /// Who is not below this process, as far as was seen: those first that started last, as whoever has just connected did.
    fn beside(below: &[Process]) -> impl Iterator<Item = Pid> + use<> {
        let seen: HashMap<_, _> = below.iter().map(Process::identity).collect();
        let latest_first = proc::pids().into_iter().rev();
        let (known, others): (Vec<_>, Vec<_>) =
            latest_first.partition(|pid| seen.contains_key(pid));
        // Who has the number of one that was seen is asked as any other.
        let is_another = move |pid: &Pid| {
            let now = Process::read(*pid).map(|process| process.identity());
            now.is_some_and(|(_, started)| seen.get(pid) != Some(&started))
        };
        others.into_iter().chain(known.into_iter().filter(is_another))
    }

    /// Finds those that this process has open.
    fn at_own(&mut self) {
        if self.is_over() {
            return;
        }
        let own = self.wanted.extract_if(|inode| self.own.contains(inode));
        self.found.extend(own.map(|inode| (inode, self.ours.clone())));
    }

    /// Finds those that a process holds, which was seen below this one, or beside it: there it counts if it is of the same user.
    fn at(&mut self, holder: Pid, sockets: &[u64], is_below: bool) {
        let is_wanted = |inode: &&u64| self.wanted.contains(inode);
        let held: Vec<u64> = sockets.iter().filter(is_wanted).copied().collect();
        if held.is_empty() || !is_below && !proc::is_own(holder) {
            return;
        }
        let mut kin = self.minders.kin(holder.as_raw_pid(), self.adopts);
        if kin == Kin::Outside && is_below && self.adopts {
            // It has ended between the two looks; it was below us all the same.
            kin = Kin::Unknown;
        }
        if kin == Kin::Outside && !is_below {
            self.minders.had(holder);
        }
        for inode in held {
            self.wanted.remove(&inode);
            // A child that has not begun its program yet has all that is open here, and so it counts for nothing what it holds of that.
            let is_own = kin != Kin::Outside && self.own.contains(&inode);
            self.found.insert(inode, if is_own { self.ours.clone() } else { kin.clone() });
        }
    }
}

/// The place of a minder among those that live.
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

/// The process, its parent, and so on up to the first one; none if that cannot be told.
///
/// A parent that ends while we look leaves its child to another, and its number to anybody: so a line that does not
/// reach the first process, or has a parent in it that is younger than its child, is looked at anew.
fn steady_lineage(pid: Pid) -> Option<Vec<Process>> {
    (0..LOOKS).find_map(|_| {
        let line = proc::lineage(pid);
        let is_whole = line.last().is_some_and(Process::has_no_parent);
        let is_steady = line.windows(2).all(|pair| !pair[1].is_younger_than(&pair[0]));
        (is_whole && is_steady).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;
    use std::process::{Command, Stdio};

    fn behalf() -> OnBehalf {
        OnBehalf { agent: "codex".to_owned(), owner: "t".to_owned(), tree: "1.0".to_owned() }
    }

    fn shared() -> Behalf {
        Arc::new(Mutex::new(behalf()))
    }

    /// A process below this one, which has been given all that it inherits.
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn child() -> std::process::Child {
        Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_process_is_its_minders_tree_or_unknown_or_outside() {
        let minders = Minders::default();
        let mut below = child();
        let pid = i32::try_from(below.id()).unwrap();
        assert_eq!(minders.kin(pid, true), Kin::Unknown, "an orphan of some tree");
        assert_eq!(minders.kin(pid, false), Kin::Outside, "a child of who embeds the hub");
        let registered = minders.register(Pid::from_raw(pid), shared());
        assert_eq!(minders.kin(pid, true), Kin::Tree(behalf()));
        drop(registered);
        assert_eq!(minders.kin(pid, true), Kin::Unknown, "its minder is gone");

        assert_eq!(minders.kin(getpid().as_raw_pid(), true), Kin::Own, "it is us");
        assert_eq!(minders.kin(getpid().as_raw_pid(), false), Kin::Outside, "who embeds the hub");
        let above = Process::read(getpid()).map(|us| us.parent());
        assert_eq!(above.map(|above| minders.kin(above, true)), Some(Kin::Outside), "above us");
        below.kill().unwrap();
        below.wait().unwrap();
        assert_eq!(minders.kin(pid, true), Kin::Unknown, "gone");
        assert_eq!(minders.kin(0, true), Kin::Unknown);
    }

    fn inode_of(socket: &TcpStream) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    /// A process below this one that has the socket open, too.
    #[expect(clippy::disallowed_methods, reason = "a child without a supervisor")]
    fn copy_in_a_child(socket: &TcpStream) -> std::process::Child {
        let copy = std::os::fd::OwnedFd::from(socket.try_clone().unwrap());
        Command::new("/bin/sleep").arg("1000").stdin(Stdio::from(copy)).spawn().unwrap()
    }

    #[test]
    fn a_socket_is_whose_it_is_that_holds_it() {
        let minders = Minders::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let inode = inode_of(&client);
        let mut idle = child();
        let whose = |adopts| minders.kin_of_sockets(&[inode], adopts).remove(0);
        assert_eq!(whose(false), Kin::Outside, "ours, beside a child");
        assert_eq!(whose(true), Kin::Own);

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
            minders.kin_of_sockets(&[inode_of(&both)], false),
            [Kin::Outside],
            "ours, although a child has it, too"
        );
        inherits.kill().unwrap();
        inherits.wait().unwrap();
        drop(inherited);
        let registered = minders.register(Some(pid), shared());
        assert_eq!(whose(true), Kin::Tree(behalf()));
        drop(registered);
        assert_eq!(whose(true), Kin::Unknown);
        for child in [&mut holder, &mut idle] {
            child.kill().unwrap();
        }
        holder.wait().unwrap();
        assert_eq!(whose(true), Kin::Unknown, "nobody holds it");
        idle.wait().unwrap();
    }

    #[test]
    fn who_had_a_connection_before_is_asked_first_and_is_believed_no_more_than_others() {
        let minders = Minders::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut idle = child();
        // Its parent ends at once, and it is another's child: not below this process.
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
        let whose = |inode| minders.kin_of_sockets(&[inode], true).remove(0);
        let recent = || minders.recent.lock().iter().copied().collect::<Vec<_>>();
        let ((first, its), (second, others)) = (hold(connect()), hold(connect()));
        assert_eq!((whose(its), recent()), (Kin::Outside, vec![first]));
        assert_eq!((whose(others), recent()), (Kin::Outside, vec![second, first]));
        assert_eq!((whose(its), recent()), (Kin::Outside, vec![first, second]));

        // One that has the number of a client is asked whose it is as any other.
        minders.had(Pid::from_child(&idle));
        let ours = connect();
        assert_eq!(whose(inode_of(&ours)), Kin::Own);
        for pid in [first, second] {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            while Process::read(pid).is_some_and(|it| !it.has_ended()) {
                proc::pause(proc::SWEEP_PAUSE);
            }
        }
        assert_eq!(whose(its), Kin::Unknown, "nobody holds it");
        (0..2 * i32::try_from(RECENT).unwrap())
            .for_each(|pid| minders.had(Pid::from_raw(pid + 1).unwrap()));
        assert_eq!(recent().len(), RECENT);
        idle.kill().unwrap();
        idle.wait().unwrap();
    }
}
