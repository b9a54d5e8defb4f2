//! Who is at the other end of a connection of this machine, as the kernel tells.
//!
//! A program of the hub's own user is its operator, unless it is one that an agent started: those run as that user too. So
//! where a process stands in the system's tree counts ([`Lineage`]), and takes rights away that a user id or a token gives.

use a2a_hub_core::access::Principal;
use nix::{
    errno::Errno,
    sys::socket::{getsockopt, sockopt::PeerPidfd},
};
use std::{
    fs,
    fs::File,
    io::{BufRead, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    sync::Arc,
};

/// Who asks, by the process that does.
pub trait Lineage: Send + Sync {
    /// Who asks if the process with this number does, which is one of the hub's own user: its operator, or an agent's program. None
    /// if that says as little as another user's: then a token counts.
    fn of_process(&self, pid: i32) -> Option<Principal>;

    /// The same for whoever has the socket with this inode open.
    fn of_socket(&self, inode: u64) -> Option<Principal>;
}

/// Where nobody keeps account of processes, each of the hub's own user is its operator.
pub(crate) struct NoLineage;

impl Lineage for NoLineage {
    fn of_process(&self, _: i32) -> Option<Principal> {
        Some(Principal::Operator)
    }

    fn of_socket(&self, _: u64) -> Option<Principal> {
        Some(Principal::Operator)
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

/// Who is at the other end of a loopback connection: none if it is not the user that the hub runs as, or that cannot be found
/// out. `local` is our end, `remote` theirs.
pub(crate) fn over_tcp(
    local: SocketAddr,
    remote: SocketAddr,
    lineage: &Lineages,
) -> Option<Principal> {
    let (user, inode) = owner(local, remote)?;
    let is_own = user == rustix::process::geteuid().as_raw();
    is_own.then(|| lineage.of_socket(inode))?
}

/// The user and the inode of the socket at the other end.
fn owner(local: SocketAddr, remote: SocketAddr) -> Option<(u32, u64)> {
    if !remote.ip().is_loopback() {
        return None;
    }
    // A program that opened its socket for IPv6 is in that table also when it connects by IPv4.
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let table = BufReader::new(File::open(table).ok()?);
        find(table, remote, local)
    })
}

/// The user and the inode of the socket that is bound to `theirs` and connected to `ours`.
fn find(table: impl BufRead, theirs: SocketAddr, ours: SocketAddr) -> Option<(u32, u64)> {
    let ends = [[narrow(theirs), narrow(ours)], [wide(theirs), wide(ours)]];
    table.lines().skip(1).map_while(Result::ok).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, _, _, _, _, user, _, inode, ..] = fields[..] else { return None };
        let is_it = ends.iter().any(|[theirs, ours]| theirs == local && ours == remote);
        // A socket that its program has closed belongs to nobody, and says that it is root's.
        if is_it && inode != "0" { user.parse().ok().zip(inode.parse().ok()) } else { None }
    })
}

/// An address as `/proc/net/tcp` writes it: each four bytes as one number in the machine's own byte order.
fn narrow(at: SocketAddr) -> String {
    match at.ip() {
        IpAddr::V4(ip) => format!("{}:{:04X}", word(ip), at.port()),
        IpAddr::V6(_) => wide(at),
    }
}

/// The same in `/proc/net/tcp6`, where IPv4 addresses are mapped.
fn wide(at: SocketAddr) -> String {
    let ip = match at.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let words: String = words(ip).map(word).concat();
    format!("{words}:{:04X}", at.port())
}

fn words(ip: Ipv6Addr) -> [Ipv4Addr; 4] {
    let bytes = ip.octets();
    [0, 4, 8, 12].map(|at| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]))
}

fn word(four: Ipv4Addr) -> String {
    format!("{:08X}", u32::from_ne_bytes(four.octets()))
}

#[cfg(target_endian = "little")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 30517 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C4B2 01 00000000:00000000 00:00000000 00000000  1000        0 30519 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:C4B2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 30518 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:C4B4 0100007F:1F90 06 00000000:00000000 03:00001700 00000000     0        0 0 3 0000000000000000
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:C4B6 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 30520 1 0000000000000000 20 4 30 10 -1
   1: 00000000000000000000000001000000:C4B8 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 30521 1 0000000000000000 20 4 30 10 -1
";

    fn found(table: &str, theirs: &str, ours: &str) -> Option<(u32, u64)> {
        find(table.as_bytes(), theirs.parse().unwrap(), ours.parse().unwrap())
    }

    #[test]
    fn the_tables_tell_whose_it_is() {
        assert_eq!(
            found(TCP, "127.0.0.1:50354", "127.0.0.1:8080"),
            Some((1001, 30518)),
            "not our own end"
        );
        assert_eq!(found(TCP, "127.0.0.1:50356", "127.0.0.1:8080"), None, "closed already");
        assert_eq!(found(TCP, "127.0.0.1:50358", "127.0.0.1:8080"), None, "not there");
        assert_eq!(found(TCP6, "127.0.0.1:50358", "127.0.0.1:8080"), Some((1002, 30520)), "mapped");
        assert_eq!(found(TCP6, "[::1]:50360", "[::1]:8080"), Some((1003, 30521)));
        assert_eq!(found("no table\nat all", "[::1]:50360", "[::1]:8080"), None);
    }

    /// To whom this process is an agent's program, and whoever has its descriptor.
    struct Agents(i32);

    impl Lineage for Agents {
        fn of_process(&self, pid: i32) -> Option<Principal> {
            assert_eq!(pid, rustix::process::getpid().as_raw_pid());
            Some(Principal::Anonymous)
        }

        fn of_socket(&self, inode: u64) -> Option<Principal> {
            let link = fs::read_link(format!("/proc/self/fd/{}", self.0)).unwrap();
            assert_eq!(link.to_str(), Some(&*format!("socket:[{inode}]")));
            Some(Principal::Anonymous)
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
        assert_eq!(over_tcp(here, theirs, &nobody), Some(Principal::Operator));
        let agents: Lineages = Arc::new(Agents(client.as_raw_fd()));
        assert_eq!(over_tcp(here, theirs, &agents), Some(Principal::Anonymous), "by its inode");
        drop(client);
        assert_eq!(over_tcp(here, theirs, &nobody), None, "its program is gone");
    }
}
