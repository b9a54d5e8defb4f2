//! What hub and minder say to each other over their socket: one launch, then lines.
//!
//! The launch is the length of the environment with the program's three pipes attached, then the environment.
//! It goes this way so that nothing a grant sets (`LD_PRELOAD`, say) can steer the minder itself.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::Exit;

/// The program's ends of stdin, stdout and stderr.
pub(super) type Pipes = [OwnedFd; 3];

/// The hub to the minder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// SIGINT to the program's group.
    Interrupt,
    /// SIGTERM to the program's group, and after this long SIGKILL to all.
    End(Duration),
}

/// The minder to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The program was started and runs.
    Started,
    /// It does not, for this error number.
    Failed(i32),
    /// It ended, and so did what it had started but for `left` processes that even SIGKILL could not end in time.
    Ended { exit: Exit, left: usize },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt => f.write_str("interrupt"),
            Self::End(grace) => write!(f, "end {}", grace.as_millis()),
        }
    }
}

impl FromStr for Order {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["interrupt"] => Ok(Self::Interrupt),
            ["end", millis] => Ok(Self::End(Duration::from_millis(number(millis)?))),
            _ => Err(ParseError),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => f.write_str("started"),
            Self::Failed(errno) => write!(f, "failed {errno}"),
            Self::Ended { exit: Exit::Code(code), left } => write!(f, "ended code {code} {left}"),
            Self::Ended { exit: Exit::Signal(signal), left } => {
                write!(f, "ended signal {signal} {left}")
            }
        }
    }
}

impl FromStr for Report {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["started"] => Ok(Self::Started),
            ["failed", errno] => Ok(Self::Failed(number(errno)?)),
            ["ended", "code", code, left] => {
                Ok(Self::Ended { exit: Exit::Code(number(code)?), left: number(left)? })
            }
            ["ended", "signal", signal, left] => {
                Ok(Self::Ended { exit: Exit::Signal(number(signal)?), left: number(left)? })
            }
            _ => Err(ParseError),
        }
    }
}

/// A line that neither side says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParseError;

fn number<N: FromStr>(word: &str) -> Result<N, ParseError> {
    word.parse().map_err(|_| ParseError)
}

/// The environment as the kernel writes it. Names hold neither `=` nor NUL and values no NUL: `Launch::check` saw to
/// it.
pub(super) fn encode_env<'a>(env: impl IntoIterator<Item = (&'a str, &'a OsStr)>) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in env {
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(b'=');
        encoded.extend_from_slice(value.as_bytes());
        encoded.push(0);
    }
    encoded
}

/// The variables of a received environment.
pub(super) fn decode_env(encoded: &[u8]) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    encoded.split(|byte| *byte == 0).filter_map(|variable| {
        let equals = variable.iter().position(|byte| *byte == b'=')?;
        Some((OsStr::from_bytes(&variable[..equals]), OsStr::from_bytes(&variable[equals + 1..])))
    })
}

/// Sends the pipes and how much environment follows. The socket is fresh, so this cannot wait.
pub(super) fn send_pipes(socket: &impl AsFd, pipes: &Pipes, env_bytes: usize) -> io::Result<()> {
    let length = u32::try_from(env_bytes).map_err(io::Error::other)?.to_le_bytes();
    let fds = pipes.each_ref().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    attached.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(&length)], &mut attached, SendFlags::empty())?;
    Ok(())
}

/// Waits for what [`send_pipes`] sent and the environment after it.
pub(super) fn receive_launch(socket: &mut UnixStream) -> io::Result<(Pipes, Vec<u8>)> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut length)];
    let received = recvmsg(&*socket, into, &mut attached, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let mut fds = Vec::with_capacity(3);
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let pipes = Pipes::try_from(fds).map_err(|_| io::Error::other("a launch without its pipes"))?;
    socket.read_exact(&mut length[received..])?;
    let mut env = vec![0; usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?];
    socket.read_exact(&mut env)?;
    Ok((pipes, env))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_reports_survive_the_wire() {
        for order in [Order::Interrupt, Order::End(Duration::from_millis(2500))] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        for report in [
            Report::Started,
            Report::Failed(2),
            Report::Ended { exit: Exit::Code(-1), left: 0 },
            Report::Ended { exit: Exit::Signal(9), left: 3 },
        ] {
            assert_eq!(report.to_string().parse(), Ok(report));
        }
        assert_eq!("ended code many 0".parse::<Report>(), Err(ParseError));
        assert_eq!("".parse::<Order>(), Err(ParseError));
    }

    #[test]
    fn a_launch_survives_the_wire() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let pipes = [(); 3].map(|()| io::pipe().unwrap().0.into());
        let env =
            [("A", OsStr::new("1=2")), ("EMPTY", OsStr::new("")), ("LINES", OsStr::new("a\nb"))];
        let encoded = encode_env(env);
        send_pipes(&ours, &pipes, encoded.len()).unwrap();
        io::Write::write_all(&mut &ours, &encoded).unwrap();

        let (received, body) = receive_launch(&mut theirs).unwrap();
        assert_eq!(received.len(), 3);
        let expected: Vec<_> = env.iter().map(|(name, value)| (OsStr::new(name), *value)).collect();
        assert_eq!(decode_env(&body).collect::<Vec<_>>(), expected);
    }
}
