//! Owner of the remote socket of a local connection. The kernel is queried for the single socket
//! (`sock_diag(7)`), at a cost independent of the number of sockets. If that fails, its socket
//! tables are searched.

use netlink_packet_core::{
    DecodeError, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{ExtensionFlags, InetRequest, SocketId, StateFlags},
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Size of the buffer for the kernel's answer in bytes, larger than any answer.
const MAX_ANSWER: usize = 4096;

/// Owner of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOwner {
    /// User id.
    pub user: u32,
    /// Inode, which identifies the socket's descriptors in `/proc/*/fd`.
    pub inode: u64,
}

impl SocketOwner {
    /// Finds the owner of a loopback connection's remote socket: `ours` is the local address,
    /// `theirs` the remote one. `None` if the peer is on another machine, or closed.
    pub fn find(ours: SocketAddr, theirs: SocketAddr) -> Option<Self> {
        if !theirs.ip().is_loopback() {
            return None;
        }
        match ask(theirs, ours) {
            Ok(owner) => owner,
            // The socket does not exist, or the kernel lacks `sock_diag`; both give the same error.
            Err(_) => search(theirs, ours),
        }
    }
}

/// Queries the kernel for the socket bound to `theirs` and connected to `ours`; an error if it
/// names none.
fn ask(theirs: SocketAddr, ours: SocketAddr) -> io::Result<Option<SocketOwner>> {
    let socket_id = SocketId {
        source_port: theirs.port(),
        destination_port: ours.port(),
        source_address: theirs.ip(),
        destination_address: ours.ip(),
        interface_id: 0,
        cookie: [0xff; 8], // any (`INET_DIAG_NOCOOKIE`)
    };
    let request = InetRequest {
        family: if theirs.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let payload = SockDiagMessage::InetRequest(request).into();
    let mut message = NetlinkMessage::new(header, payload);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&socket, &bytes, SendFlags::empty())?;
    let mut answer = vec![0; MAX_ANSWER];
    // The kernel answers during `send`, so the answer is already available.
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer[..length]);
    let unread = |why: DecodeError| io::Error::new(io::ErrorKind::InvalidData, why);
    let payload = answer.map_err(unread)?.payload;
    if let NetlinkPayload::Error(why) = payload {
        return Err(why.to_io());
    }
    let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) = payload else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let found = response.header;
    let end = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    let SocketId { source_address, source_port, destination_address, destination_port, .. } =
        found.socket_id;
    let ends = [end(source_address, source_port), end(destination_address, destination_port)];
    // For a closed socket, the kernel may return a listener at the same address. A socket closed by
    // its program has no inode.
    let is_it = ends == [theirs, ours] && found.inode != 0;
    let owner = SocketOwner { user: found.uid, inode: found.inode.into() };
    Ok(is_it.then_some(owner))
}

/// Searches the kernel's socket tables.
fn search(theirs: SocketAddr, ours: SocketAddr) -> Option<SocketOwner> {
    // An IPv6 socket is in the IPv6 table even if it connects over IPv4.
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let table = BufReader::new(File::open(table).ok()?);
        listed(table, theirs, ours)
    })
}

/// Finds the owner of the socket bound to `theirs` and connected to `ours` in a table.
fn listed(table: impl BufRead, theirs: SocketAddr, ours: SocketAddr) -> Option<SocketOwner> {
    let ends = [[tcp4_key(theirs), tcp4_key(ours)], [tcp6_key(theirs), tcp6_key(ours)]];
    table.lines().skip(1).map_while(Result::ok).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, _, _, _, _, user, _, inode, ..] = fields[..] else { return None };
        let is_it = ends.iter().any(|[theirs, ours]| theirs == local && ours == remote);
        // A socket closed by its program has inode 0 and is listed with user id 0.
        let owner = || Some(SocketOwner { user: user.parse().ok()?, inode: inode.parse().ok()? });
        if is_it && inode != "0" { owner() } else { None }
    })
}

/// Formats an address as in `/proc/net/tcp`: each four bytes as one number in native byte order.
fn tcp4_key(at: SocketAddr) -> String {
    match at.ip() {
        IpAddr::V4(ip) => format!("{}:{:04X}", word(ip), at.port()),
        IpAddr::V6(_) => tcp6_key(at),
    }
}

/// Formats an address as in `/proc/net/tcp6`, where IPv4 addresses are mapped.
fn tcp6_key(at: SocketAddr) -> String {
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
        let owner = listed(table.as_bytes(), theirs.parse().unwrap(), ours.parse().unwrap());
        owner.map(|owner| (owner.user, owner.inode))
    }

    #[test]
    fn socket_table_yields_owner() {
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

    #[test]
    fn sock_diag_agrees_with_socket_tables() {
        for (at, to) in
            [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "::ffff:127.0.0.1"), ("::1", "::1")]
        {
            let ip: IpAddr = at.parse().unwrap();
            // Not every machine has IPv6.
            let Ok(listener) = TcpListener::bind((ip, 0)) else { continue };
            let port = listener.local_addr().unwrap().port();
            let to: IpAddr = to.parse().unwrap();
            let Ok(client) = TcpStream::connect((to, port)) else { continue };
            let (accepted, theirs) = listener.accept().unwrap();
            let ours = accepted.local_addr().unwrap();
            let told = ask(theirs, ours).unwrap();
            assert!(told.is_some_and(|owner| owner.inode > 0), "{to}");
            assert_eq!(told, search(theirs, ours), "{to}");
            // The local socket has a different inode.
            assert_ne!(ask(ours, theirs).unwrap(), told);
            drop(client);
            assert_eq!(SocketOwner::find(ours, theirs), None, "{to}: closed");
            // A listener at the address does not count.
            drop(accepted);
            let listens = TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap();
            assert_eq!(SocketOwner::find(ours, listens), None, "{to}");
        }
    }
}
