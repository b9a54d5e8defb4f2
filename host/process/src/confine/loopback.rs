//! Loopback interface of a new network namespace, which the kernel creates in state down.

use rustix::{
    io::{Errno, read, write},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};
use std::io;

/// `RTM_NEWLINK`: changes a link (`rtnetlink(7)`).
const NEW_LINK: u16 = 16;

/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST_AND_ANSWER: u16 = 1 | 4;

/// Index of `lo`, the first interface of every namespace.
const LOOPBACK: i32 = 1;

/// `IFF_UP`.
const UP: u32 = 1;

/// Brings the interface up, so that a program reaches itself and nothing else.
pub(super) fn bring_up() -> io::Result<()> {
    // Without a protocol the socket is for routes (`NETLINK_ROUTE`, 0).
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    write(&socket, &request())?;
    let mut answer = [0; 1024];
    let length = read(&socket, &mut answer)?;
    refusal(&answer[..length])
}

/// Message of `struct nlmsghdr` and `struct ifinfomsg`, in native byte order.
fn request() -> Vec<u8> {
    let (sequence, port) = (1_u32, 0_u32);
    let mut body = vec![0_u8; 4]; // any family, padding, any type
    body.extend(LOOPBACK.to_ne_bytes());
    body.extend([UP.to_ne_bytes(), UP.to_ne_bytes()].concat()); // flags, and their mask
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend([NEW_LINK.to_ne_bytes(), REQUEST_AND_ANSWER.to_ne_bytes()].concat());
    message.extend([sequence.to_ne_bytes(), port.to_ne_bytes()].concat());
    message.extend(body);
    message
}

/// Result of the kernel: `struct nlmsgerr`, whose first number is 0 or a negative error number.
fn refusal(answer: &[u8]) -> io::Result<()> {
    let number =
        answer.get(16..20).and_then(|bytes| Some(i32::from_ne_bytes(bytes.try_into().ok()?)));
    match number {
        Some(0) => Ok(()),
        Some(errno) => Err(Errno::from_raw_os_error(-errno).into()),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_length_and_refusal_are_correct() {
        let message = request();
        assert_eq!(message.len(), 32);
        assert_eq!(message[..4], 32_u32.to_ne_bytes());
        let answer = |errno: i32| [vec![0; 16], errno.to_ne_bytes().to_vec()].concat();
        assert!(refusal(&answer(0)).is_ok());
        assert_eq!(refusal(&answer(-1)).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(refusal(&[]).is_err());
    }
}
