//! Identification of a local connection's peer through the kernel.
//!
//! A program of the hub's own user is the operator, unless an agent started it: agents' programs
//! run as the same user. Therefore the position in the process tree decides
//! ([`lineage`](crate::lineage)), and may withdraw rights that a user id or a token would give.

use crate::lineage::Lineages;
use a2a_hub_core::access_control::Principal;
use a2a_hub_process::socket_owner::SocketOwner;
use nix::{
    errno::Errno,
    sys::socket::{getsockopt, sockopt::PeerPidfd},
};
use std::{
    fs,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
};

/// Identifies the peer of a Unix socket; `None` for another user.
///
/// The kernel records the process that called `connect` (`SO_PEERPIDFD`, Linux 6.5), so a reused
/// pid can be detected. A peer whose process has ended is anonymous, because its pid may belong to
/// another process by now.
pub fn over_unix(
    stream: &impl AsFd,
    peer: &tokio::net::unix::UCred,
    lineage: &Lineages,
) -> Option<Principal> {
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    // Pid 0 is a process outside of the hub's pid namespace, which cannot be a descendant of the
    // hub.
    let Some(pid) = peer.pid().filter(|pid| *pid != 0) else { return Some(Principal::Operator) };
    let handle = getsockopt(stream, PeerPidfd);
    let principal = lineage.of_process(pid);
    // Checked after the lookup: if the process ended before, the pid may have been reused during
    // the lookup. Without pidfd support in the kernel, the pid alone decides.
    let is_still_it = match handle {
        Ok(handle) => is(&handle, pid),
        Err(why) => why == Errno::ENOPROTOOPT,
    };
    if is_still_it { principal } else { Some(Principal::Anonymous) }
}

/// True if this pidfd refers to the process with this pid, not reaped yet.
fn is(handle: &OwnedFd, pid: i32) -> bool {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()));
    info.is_ok_and(|info| {
        let number = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        number.is_some_and(|number| number.trim() == pid.to_string())
    })
}

/// Local and remote address of a connection.
pub type ConnectionEnds = (SocketAddr, SocketAddr);

/// Identifies the peers of these loopback connections, in the same order; `None` for another user,
/// or if the owner cannot be determined.
pub fn over_tcp(connections: &[ConnectionEnds], lineage: &Lineages) -> Vec<Option<Principal>> {
    let us = rustix::process::geteuid().as_raw();
    let owned_inode = |(local, remote): &ConnectionEnds| {
        SocketOwner::find(*local, *remote).filter(|owner| owner.user == us).map(|it| it.inode)
    };
    let inodes: Vec<Option<u64>> = connections.iter().map(owned_inode).collect();
    let owned: Vec<u64> = inodes.iter().copied().flatten().collect();
    let mut principals = lineage.of_sockets(&owned).into_iter();
    inodes.iter().map(|inode| inode.and_then(|_| principals.next().flatten())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lineage::{Lineage, NoLineage};
    use std::{
        net::{TcpListener, TcpStream},
        sync::Arc,
    };

    /// Lineage in which this process is an agent's program, and so is the owner of its descriptor.
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
    async fn unix_peer_is_identified_by_process() {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let peer = theirs.peer_cred().unwrap();
        let who = |lineage: Lineages| over_unix(&theirs, &peer, &lineage);
        assert_eq!(who(Arc::new(NoLineage)), Some(Principal::Operator));
        assert_eq!(who(Arc::new(Agents(0))), Some(Principal::Anonymous));
        drop(ours);
    }

    #[test]
    fn pidfd_matches_only_its_pid() {
        let us = rustix::process::getpid();
        let handle = rustix::process::pidfd_open(us, rustix::process::PidfdFlags::empty()).unwrap();
        assert!(is(&handle, us.as_raw_pid()));
        assert!(!is(&handle, 1), "the number is another's");
    }

    #[test]
    fn tcp_peer_is_identified_by_inode() {
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
