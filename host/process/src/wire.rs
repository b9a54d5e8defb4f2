//! Protocol between hub and minder over their socket: one launch, then lines.
//!
//! The launch is the lengths of the environment and of the confinement with the program's three
//! pipes attached, then both. It is sent this way so that no granted variable (`LD_PRELOAD`, for
//! example) can affect the minder itself. The minder of a confined program forwards it to the
//! program's init, which reports in the same lines.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::ProgramExit;
use super::confine::{Confinement, NotConfined};

/// The program's ends of stdin, stdout and stderr.
pub(super) type Pipes = [OwnedFd; 3];

/// Order from the hub to the minder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MinderOrder {
    /// SIGINT to the program's group.
    Interrupt,
    /// SIGTERM to the program's group, and SIGKILL to all after this time.
    End(Duration),
    /// Inspection of the tree, with a report.
    Inspect(Inspection),
}

/// Action of a minder's inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inspection {
    /// Marks the current processes as the program's own.
    Settle,
    /// Kills the processes that are not the program's own.
    Prune,
    /// Measures memory only.
    Weigh,
}

/// Result of a minder's inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InspectionResult {
    /// Number of processes that the minder killed.
    pub(super) killed: usize,
    /// Number of processes that the minder should have killed and that still exist.
    pub(super) survivors: usize,
    /// Resident memory of the tree, in bytes; shared memory is counted for each process.
    pub(super) resident: u64,
}

/// Report from the minder to the hub, and from the init to the minder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MinderReport {
    /// The program runs.
    Started {
        /// See `OperatingSystem::group_of`.
        group: Option<i32>,
    },
    /// The program was not started, with the error number.
    Failed(i32),
    /// The program was not started, because it could not be confined.
    NotConfined(NotConfined),
    /// The program exited and its tree is gone, except for `survivors` processes that even SIGKILL
    /// could not end in time.
    Ended { exit: ProgramExit, survivors: usize },
    /// Result of an inspection.
    Inspected(InspectionResult),
    /// The tree uses this many bytes of memory, more than its limit, and is being killed.
    MemoryExceeded(u64),
}

impl fmt::Display for MinderOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt => f.write_str("interrupt"),
            Self::End(grace) => write!(f, "end {}", grace.as_millis()),
            Self::Inspect(Inspection::Settle) => f.write_str("settle"),
            Self::Inspect(Inspection::Prune) => f.write_str("prune"),
            Self::Inspect(Inspection::Weigh) => f.write_str("weigh"),
        }
    }
}

impl FromStr for MinderOrder {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["interrupt"] => Ok(Self::Interrupt),
            ["settle"] => Ok(Self::Inspect(Inspection::Settle)),
            ["prune"] => Ok(Self::Inspect(Inspection::Prune)),
            ["weigh"] => Ok(Self::Inspect(Inspection::Weigh)),
            ["end", millis] => Ok(Self::End(Duration::from_millis(number(millis)?))),
            _ => Err(ParseError),
        }
    }
}

impl fmt::Display for MinderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { group: None } => f.write_str("started"),
            Self::Started { group: Some(group) } => write!(f, "started {group}"),
            Self::Failed(errno) => write!(f, "failed {errno}"),
            Self::NotConfined(NotConfined { step, errno, path }) => {
                write!(f, "unconfined {} {errno} {path}", step.word())
            }
            Self::Ended { exit: ProgramExit::Code(code), survivors } => {
                write!(f, "ended code {code} {survivors}")
            }
            Self::Ended { exit: ProgramExit::Signal(signal), survivors } => {
                write!(f, "ended signal {signal} {survivors}")
            }
            Self::Inspected(InspectionResult { killed, survivors, resident }) => {
                write!(f, "seen {killed} {survivors} {resident}")
            }
            Self::MemoryExceeded(taken) => write!(f, "memory {taken}"),
        }
    }
}

impl FromStr for MinderReport {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        // The path at its end may contain spaces.
        if let ["unconfined", step, errno, path] = line.splitn(4, ' ').collect::<Vec<_>>()[..] {
            let step = step.parse().map_err(|()| ParseError)?;
            let why = NotConfined { step, errno: number(errno)?, path: path.to_owned() };
            return Ok(Self::NotConfined(why));
        }
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["started"] => Ok(Self::Started { group: None }),
            ["started", group] => Ok(Self::Started { group: Some(number(group)?) }),
            ["failed", errno] => Ok(Self::Failed(number(errno)?)),
            ["ended", "code", code, survivors] => Ok(Self::Ended {
                exit: ProgramExit::Code(number(code)?),
                survivors: number(survivors)?,
            }),
            ["ended", "signal", signal, survivors] => Ok(Self::Ended {
                exit: ProgramExit::Signal(number(signal)?),
                survivors: number(survivors)?,
            }),
            ["memory", taken] => Ok(Self::MemoryExceeded(number(taken)?)),
            ["seen", killed, survivors, resident] => Ok(Self::Inspected(InspectionResult {
                killed: number(killed)?,
                survivors: number(survivors)?,
                resident: number(resident)?,
            })),
            _ => Err(ParseError),
        }
    }
}

/// A line that is not part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParseError;

fn number<N: FromStr>(word: &str) -> Result<N, ParseError> {
    word.parse().map_err(|_| ParseError)
}

/// Encodes the environment like the kernel. Names contain neither `=` nor NUL, and values no NUL:
/// `Launch::check` verified that.
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

/// Variables of a received environment.
pub(super) fn decode_env(encoded: &[u8]) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    encoded.split(|byte| *byte == 0).filter_map(|variable| {
        let equals = variable.iter().position(|byte| *byte == b'=')?;
        Some((OsStr::from_bytes(&variable[..equals]), OsStr::from_bytes(&variable[equals + 1..])))
    })
}

/// A received launch.
pub(super) struct Launched {
    /// The program's ends of its three pipes.
    pub(super) pipes: Pipes,
    /// Encoded environment of the program.
    pub(super) env: Vec<u8>,
    /// Confinement of the program, if any.
    pub(super) confinement: Option<Confinement>,
    /// True if the program is only confined and not started.
    pub(super) rehearses: bool,
}

/// Data after the pipes.
pub(super) struct FrameBody {
    env: Vec<u8>,
    /// JSON; empty for an unconfined program.
    plan: Vec<u8>,
}

/// A confinement on the wire.
#[derive(Serialize, Deserialize)]
struct Plan<C> {
    confinement: C,
    rehearses: bool,
}

impl FrameBody {
    /// Encodes the launch. Fails on paths that JSON cannot represent.
    pub(super) fn new(
        env: Vec<u8>,
        confinement: Option<&Confinement>,
        rehearses: bool,
    ) -> io::Result<Self> {
        let plan = confinement.map(|confinement| Plan { confinement, rehearses });
        let plan = plan.map(|plan| serde_json::to_vec(&plan)).transpose()?;
        Ok(Self { env, plan: plan.unwrap_or_default() })
    }

    /// Bytes as they follow the pipes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [&self.env[..], &self.plan].concat()
    }
}

/// Sends the pipes and the lengths. The socket is new, so this does not block.
pub(super) fn send_pipes(socket: &impl AsFd, pipes: &Pipes, body: &FrameBody) -> io::Result<()> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
    let lengths = [length(&body.env)?, length(&body.plan)?].map(u32::to_le_bytes).concat();
    let fds = pipes.each_ref().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    attached.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(&lengths)], &mut attached, SendFlags::empty())?;
    Ok(())
}

/// Receives the message of [`send_pipes`] and the body after it.
pub(super) fn receive_launch(socket: &mut UnixStream) -> io::Result<Launched> {
    let mut lengths = [0; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut lengths)];
    let received = recvmsg(&*socket, into, &mut attached, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let mut fds = Vec::with_capacity(3);
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let pipes = Pipes::try_from(fds).map_err(|_| io::Error::other("a launch without its pipes"))?;
    socket.read_exact(&mut lengths[received..])?;
    let mut read = |length: &[u8]| {
        let length = u32::from_le_bytes(length.try_into().map_err(io::Error::other)?);
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        socket.read_exact(&mut bytes).map(|()| bytes)
    };
    let (env, plan) = (read(&lengths[..4])?, read(&lengths[4..])?);
    let plan = (!plan.is_empty()).then(|| serde_json::from_slice::<Plan<_>>(&plan)).transpose()?;
    let (confinement, rehearses) =
        plan.map_or((None, false), |p| (Some(p.confinement), p.rehearses));
    Ok(Launched { pipes, env, confinement, rehearses })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::Step;

    #[test]
    fn orders_and_reports_round_trip() {
        let looks =
            [Inspection::Settle, Inspection::Prune, Inspection::Weigh].map(MinderOrder::Inspect);
        for order in [MinderOrder::Interrupt, MinderOrder::End(Duration::from_millis(2500))]
            .iter()
            .chain(&looks)
        {
            assert_eq!(order.to_string().parse(), Ok(*order));
        }
        for report in [
            MinderReport::Started { group: None },
            MinderReport::Started { group: Some(4711) },
            MinderReport::Failed(2),
            MinderReport::NotConfined(NotConfined {
                step: Step::View,
                errno: 13,
                path: "/a b".into(),
            }),
            MinderReport::NotConfined(NotConfined {
                step: Step::User,
                errno: 1,
                path: String::new(),
            }),
            MinderReport::Ended { exit: ProgramExit::Code(-1), survivors: 0 },
            MinderReport::Ended { exit: ProgramExit::Signal(9), survivors: 3 },
            MinderReport::Inspected(InspectionResult {
                killed: 2,
                survivors: 0,
                resident: 1 << 40,
            }),
            MinderReport::MemoryExceeded(1 << 40),
        ] {
            assert_eq!(report.to_string().parse(), Ok(report));
        }
        assert_eq!("ended code many 0".parse::<MinderReport>(), Err(ParseError));
        assert_eq!("".parse::<MinderOrder>(), Err(ParseError));
    }

    #[test]
    fn launch_round_trips() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let pipes = [(); 3].map(|()| io::pipe().unwrap().0.into());
        let env =
            [("A", OsStr::new("1=2")), ("EMPTY", OsStr::new("")), ("LINES", OsStr::new("a\nb"))];
        let confinement = Confinement { read: vec!["/a b".into()], ..Confinement::default() };
        let body = FrameBody::new(encode_env(env), Some(&confinement), true).unwrap();
        send_pipes(&ours, &pipes, &body).unwrap();
        io::Write::write_all(&mut &ours, &body.bytes()).unwrap();

        let launched = receive_launch(&mut theirs).unwrap();
        assert_eq!((launched.confinement, launched.rehearses), (Some(confinement), true));
        let expected: Vec<_> = env.iter().map(|(name, value)| (OsStr::new(name), *value)).collect();
        assert_eq!(decode_env(&launched.env).collect::<Vec<_>>(), expected);
    }
}
