//! Whose program is at the other end of a TCP connection of this machine, as the kernel's tables tell.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Whether the other end of a loopback connection belongs to the user that the hub runs as. `local` is our end, `remote`
/// theirs. What cannot be found out is not so.
pub(crate) fn is_own_user(local: SocketAddr, remote: SocketAddr) -> bool {
    owner(local, remote) == Some(rustix::process::geteuid().as_raw())
}

fn owner(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    if !remote.ip().is_loopback() {
        return None;
    }
    // A program that opened its socket for IPv6 is in that table also when it connects by IPv4.
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let table = BufReader::new(File::open(table).ok()?);
        find(table, remote, local)
    })
}

/// The user of the socket that is bound to `theirs` and connected to `ours`.
fn find(table: impl BufRead, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let ends = [[narrow(theirs), narrow(ours)], [wide(theirs), wide(ours)]];
    table.lines().skip(1).map_while(Result::ok).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, _, _, _, _, user, _, inode, ..] = fields[..] else { return None };
        let is_it = ends.iter().any(|[theirs, ours]| theirs == local && ours == remote);
        // A socket that its program has closed belongs to nobody, and says that it is root's.
        if is_it && inode != "0" { user.parse().ok() } else { None }
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

    fn found(table: &str, theirs: &str, ours: &str) -> Option<u32> {
        find(table.as_bytes(), theirs.parse().unwrap(), ours.parse().unwrap())
    }

    #[test]
    fn the_tables_tell_whose_it_is() {
        assert_eq!(found(TCP, "127.0.0.1:50354", "127.0.0.1:8080"), Some(1001), "not our own end");
        assert_eq!(found(TCP, "127.0.0.1:50356", "127.0.0.1:8080"), None, "closed already");
        assert_eq!(found(TCP, "127.0.0.1:50358", "127.0.0.1:8080"), None, "not there");
        assert_eq!(found(TCP6, "127.0.0.1:50358", "127.0.0.1:8080"), Some(1002), "mapped");
        assert_eq!(found(TCP6, "[::1]:50360", "[::1]:8080"), Some(1003));
        assert_eq!(found("no table\nat all", "[::1]:50360", "[::1]:8080"), None);
    }

    #[test]
    fn this_kernel_tells_it_too() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, theirs) = listener.accept().unwrap();
        assert!(is_own_user(ours.local_addr().unwrap(), theirs));
        drop(client);
        assert!(!is_own_user(ours.local_addr().unwrap(), theirs), "its program is gone");
    }
}
