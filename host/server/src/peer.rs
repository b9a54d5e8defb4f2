//! Who is at the other end of a connection of this machine, as the kernel tells.
//!
//! A program of the hub's own user is its operator, unless it is one that an agent started: those run as that user too. So
//! where a process stands in the system's tree counts ([`Lineage`]), and takes rights away that a user id or a token gives.

use crate::socket_owner::SocketOwner;
use a2a_hub_core::access::Principal;
use nix::{
    errno::Errno,
    sys::socket::{getsockopt, sockopt::PeerPidfd},
};
use std::{
    fs,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    sync::Arc,
};

/// Who asks, by the process that does.
pub trait Lineage: Send + Sync {
    /// Who asks if the process with this number does, which is one of the hub's own user: its operator, or an agent's program. None
    /// if that says as little as another user's: then a token counts.
    fn of_process(&self, pid: i32) -> Option<Principal>;

    /// The same for whoever has each of the sockets with these inodes open, in that order.
    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>>;
}

/// To whom every socket is the same one's.
#[cfg(test)]
pub(crate) struct Always(pub(crate) Option<Principal>);

#[cfg(test)]
impl Lineage for Always {
    fn of_process(&self, _: i32) -> Option<Principal> {
        None
    }

    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
        inodes.iter().map(|_| self.0.clone()).collect()
    }
}

/// Where nobody keeps account of processes, each of the hub's own user is its operator.
pub(crate) struct NoLineage;

impl Lineage for NoLineage {
    fn of_process(&self, _: i32) -> Option<Principal> {
        Some(Principal::Operator)
    }

    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
        vec![Some(Principal::Operator); inodes.len()]
    }
}

/// What doors ask who is there.
pub(crate) type Lineages = Arc<dyn Lineage>;

/// Who connected to a unix socket: none if it was another user.
///
/// The kernel keeps who called `connect` (`SO_PEERPIDFD`, Linux 6.5), so that its number is nobody else's meanwhile. One that has ended
/// since could have been anybody, and its number may be another's.
pub(crate) fn over_unix(
    stream: &impl AsFd,
    peer: &tokio::net::unix::UCred,
    lineage: &Lineages,
) -> Option<Principal> {
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    // 0 is a process outside of our namespace of numbers, which cannot be below us.
    let Some(pid) = peer.pid().filter(|pid| *pid != 0) else { return Some(Principal::Operator) };
    let handle = getsockopt(stream, PeerPidfd);
    let principal = lineage.of_process(pid);
    // Looked at after the number was: had it ended before, the number may have been another's then. A kernel that has no
    // handles leaves it at the number.
    let is_still_it = match handle {
        Ok(handle) => is(&handle, pid),
        Err(why) => why == Errno::ENOPROTOOPT,
    };
    if is_still_it { principal } else { Some(Principal::Anonymous) }
}

/// Whether this handle is of the process with this number, which was not reaped yet.
fn is(handle: &OwnedFd, pid: i32) -> bool {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()));
    info.is_ok_and(|info| {
        let number = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        number.is_some_and(|number| number.trim() == pid.to_string())
    })
}

/// Our end of a connection, and the other one.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Who is at the other end of each of these loopback connections, in that order: none if it is not the user that the hub runs as, or that
/// cannot be found out.
pub(crate) fn over_tcp(connections: &[Ends], lineage: &Lineages) -> Vec<Option<Principal>> {
    let us = rustix::process::geteuid().as_raw();
    let own = |(local, remote): &Ends| {
        SocketOwner::find(*local, *remote).filter(|owner| owner.user == us).map(|it| it.inode)
    };
    let inodes: Vec<Option<u64>> = connections.iter().map(own).collect();
    let asked: Vec<u64> = inodes.iter().copied().flatten().collect();
    let mut told = lineage.of_sockets(&asked).into_iter();
    inodes.iter().map(|inode| inode.and_then(|_| told.next().flatten())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// To whom this process is an agent's program, and whoever has its descriptor.
    struct Agents(i32);

    impl Lineage for Agents {
        fn of_process(&self, pid: i32) -> Option<Principal> {
            assert_eq!(pid, rustix::process::getpid().as_raw_pid());
            Some(Principal::Anonymous)
        }

        fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
            let &[inode] = inodes else { return Vec::new() };
            let link = fs::read_link(format!("/proc/self/fd/{}", self.0)).unwrap();
            assert_eq!(link.to_str(), Some(&*format!("socket:[{inode}]")));
            vec![Some(Principal::Anonymous)]
        }
    }

    #[tokio::test]
    async fn who_connected_to_a_unix_socket_is_what_its_process_is() {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let peer = theirs.peer_cred().unwrap();
        let who = |lineage: Lineages| over_unix(&theirs, &peer, &lineage);
        assert_eq!(who(Arc::new(NoLineage)), Some(Principal::Operator));
        assert_eq!(who(Arc::new(Agents(0))), Some(Principal::Anonymous));
        drop(ours);
    }

    #[test]
    fn a_handle_is_of_one_process() {
        let us = rustix::process::getpid();
        let handle = rustix::process::pidfd_open(us, rustix::process::PidfdFlags::empty()).unwrap();
        assert!(is(&handle, us.as_raw_pid()));
        assert!(!is(&handle, 1), "the number is another's");
    }

    #[test]
    fn this_kernel_tells_it_too() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, theirs) = listener.accept().unwrap();
        let here = ours.local_addr().unwrap();
        let nobody: Lineages = Arc::new(NoLineage);
        let who = |lineage| over_tcp(&[(here, theirs)], lineage).remove(0);
        assert_eq!(who(&nobody), Some(Principal::Operator));
        let agents: Lineages = Arc::new(Agents(client.as_raw_fd()));
        assert_eq!(who(&agents), Some(Principal::Anonymous), "by its inode");
        drop(client);
        assert_eq!(who(&nobody), None, "its program is gone");
    }
}
