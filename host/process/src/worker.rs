//! A worker: this executable started once more, for one piece of work on bytes that nobody vouches for (fault isolation by a
//! process of its own). What runs on a thread can be neither ended nor kept from memory; a process can.
//!
//! ```text
//! hub ── length, bytes ──▶ worker        over one socket, the worker's standard input
//! hub ◀── verdict, length, bytes ── worker
//! ```
//!
//! The worker puts limits on itself before it reads the first byte, and ends when the hub does: then the socket ends. It opens no
//! file and dials nobody, which the kernel holds it to (seccomp), and its environment is empty but for how many threads it may start.

use bytes::Bytes;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, nice, setrlimit};
use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net, process::ExitStatusExt as _},
    },
    path::PathBuf,
    process::{ExitCode, ExitStatus, Stdio},
    thread,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

/// How much lower a worker's priority is than the hub's: whoever is served comes first.
const NICE: i32 = 10;

/// Threads of a worker: beyond a few, the pieces of work that are given to workers do not become faster.
const THREADS: usize = 4;

/// What is read of what a worker says on its way out, in bytes.
const LAST_WORDS: u64 = 4 << 10;

/// What the standard library says of a process that has no memory left, as it ends.
const NO_MEMORY: &str = "memory allocation of";

/// How much longer than its time on the processor a worker may take: other programs may have the processor meanwhile.
const SLOWDOWN: u32 = 4;

/// How long a worker may take besides: to start, on a machine that reads its executable from a slow disk.
const START: Duration = Duration::from_secs(20);

/// An executable that becomes a worker where its first argument is `word`.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The executable.
    pub program: PathBuf,
    /// Its first argument; `main` hands those after it to [`work`].
    pub word: &'static str,
}

/// What a piece of work may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// Time on the processor, all threads together. Counted in whole seconds, at least one.
    pub cpu: Duration,
    /// Addresses that the worker may use, in bytes: its own executable is among them.
    pub memory: u64,
    /// Bytes that it may answer.
    pub output: u64,
}

/// Why a piece of work was not done.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The worker says so itself: the work is not to be done.
    #[error("{0}")]
    Refused(String),
    /// It had all the time on the processor that it may have.
    #[error("it took more than {} s of time on the processor", .0.as_secs())]
    Cpu(Duration),
    /// It needs more memory than it may have.
    #[error("it took more than {} MiB of memory", .0 >> 20)]
    Memory(u64),
    /// It answered more than it may.
    #[error("it made more than {} MiB", .0 >> 20)]
    Output(u64),
    /// It crashed over what it was given.
    #[error("the worker crashed: {0}")]
    Crashed(String),
    /// The machine had no time for it: no fault of the work.
    #[error("the machine is too busy: it was not done within {} s, and is tried again", .0.as_secs())]
    Starved(Duration),
    /// It could not be started, or talked to.
    #[error("start a worker from {program}: {why}")]
    System {
        /// The executable that should have become the worker.
        program: PathBuf,
        /// What the system said.
        why: io::Error,
    },
}

impl WorkError {
    /// Whether the same work would fail again, however often it is tried under the same limits.
    pub fn is_of_the_work(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Cpu(_)
            | Self::Memory(_)
            | Self::Output(_)
            | Self::Crashed(_) => true,
            Self::Starved(_) | Self::System { .. } => false,
        }
    }
}

impl Worker {
    /// Has `input` worked on by a new process, to which `arguments` say how. Dropping the future kills it.
    ///
    /// # Errors
    /// A [`WorkError`] says why there is no answer, and whether another try could have one.
    pub async fn run(
        &self,
        arguments: &[&str],
        input: Bytes,
        limits: WorkLimits,
    ) -> Result<Vec<u8>, WorkError> {
        let system = |why| WorkError::System { program: self.program.clone(), why };
        let (ours, theirs) = net::UnixStream::pair().map_err(system)?;
        ours.set_nonblocking(true).map_err(system)?;
        let mut socket = UnixStream::from_std(ours).map_err(system)?;
        let mut child = self.start(arguments, theirs, limits).map_err(system)?;
        let last_words = child.stderr.take();
        let patience = limits.cpu * SLOWDOWN + START;
        let worked = async {
            let (answer, last_words) =
                tokio::join!(converse(&mut socket, &input, limits.output), read_some(last_words));
            (answer, child.wait().await, last_words)
        };
        let Ok((answer, status, last_words)) = timeout(patience, worked).await else {
            return Err(WorkError::Starved(patience));
        };
        let status = status.map_err(system)?;
        match answer {
            Ok(Some(Answer::Done(bytes))) if status.success() => Ok(bytes),
            Ok(Some(Answer::Refused(why))) if status.success() => {
                Err(WorkError::Refused(String::from_utf8_lossy(&why).into_owned()))
            }
            Ok(Some(Answer::TooLong)) => Err(WorkError::Output(limits.output)),
            Ok(_) | Err(_) => Err(why_it_ended(status, &last_words, limits)),
        }
    }

    fn start(
        &self,
        arguments: &[&str],
        socket: net::UnixStream,
        limits: WorkLimits,
    ) -> io::Result<tokio::process::Child> {
        #[expect(clippy::disallowed_methods, reason = "it is this very program, not an agent's")]
        let mut command = tokio::process::Command::new(&self.program);
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        command
            .arg(self.word)
            .arg(limits.cpu.as_secs().max(1).to_string())
            .arg(limits.memory.to_string())
            .args(arguments)
            .env_clear()
            .env("RAYON_NUM_THREADS", threads.to_string())
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(socket)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// What a worker answers.
enum Answer {
    Done(Vec<u8>),
    Refused(Vec<u8>),
    /// More than it may: not read.
    TooLong,
}

/// The first byte of an answer that is the work, done.
const DONE: u8 = 1;

/// The first byte of an answer that says why it is not.
const REFUSED: u8 = 0;

/// Sends the work and reads the answer; none if the worker ended without a whole one. One whose answer is too long is hung up on, for
/// it would wait for ever that the rest is read.
async fn converse(socket: &mut UnixStream, input: &[u8], most: u64) -> io::Result<Option<Answer>> {
    let (mut read, mut write) = socket.split();
    let send = async {
        write.write_u64(input.len() as u64).await?;
        write.write_all(input).await
    };
    let receive = async {
        let verdict = read.read_u8().await?;
        let length = read.read_u64().await?;
        if length > most {
            return Ok(Some(Answer::TooLong));
        }
        let mut bytes = Vec::new();
        read.take(length).read_to_end(&mut bytes).await?;
        let is_whole = bytes.len() as u64 == length;
        Ok(is_whole.then_some(if verdict == DONE {
            Answer::Done(bytes)
        } else {
            Answer::Refused(bytes)
        }))
    };
    // One that refuses what it has not read to its end leaves the rest unread: what counts is its answer.
    let (_, answer) = tokio::join!(send, receive);
    if let Ok(Some(Answer::TooLong)) = answer {
        socket.shutdown().await?;
    }
    answer
}

/// The beginning of what it says; the rest is read and thrown away, so that it is not held up.
async fn read_some(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut said = Vec::new();
    if let Some(mut from) = from {
        // What cannot be read was not said.
        let _ = (&mut from).take(LAST_WORDS).read_to_end(&mut said).await;
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    said
}

fn why_it_ended(status: ExitStatus, last_words: &[u8], limits: WorkLimits) -> WorkError {
    let said = String::from_utf8_lossy(last_words);
    if status.signal() == Some(Signal::XCPU.as_raw()) {
        return WorkError::Cpu(limits.cpu);
    }
    if said.contains(NO_MEMORY) {
        return WorkError::Memory(limits.memory);
    }
    if status.signal() == Some(Signal::KILL.as_raw()) {
        // Nobody but the system does that while the hub waits: it is short of memory.
        return WorkError::System {
            program: PathBuf::from("this executable"),
            why: io::Error::other(
                "the system killed it, as it does when the machine has no memory left",
            ),
        };
    }
    if said.contains("panicked at") {
        // Quoted: it is about something that came from outside.
        tracing::warn!(panic = ?said, "a worker panicked");
        return WorkError::Crashed("it panicked; the hub's log has the panic's text".to_owned());
    }
    let first = said.lines().next().unwrap_or_default().trim();
    WorkError::Crashed(if first.is_empty() { status.to_string() } else { first.to_owned() })
}

/// Works: `args` are those after the worker's word, standard input is the socket to the hub. Call it first thing in `main`, before
/// there is a second thread.
pub fn work(
    args: impl IntoIterator<Item = OsString>,
    job: impl FnOnce(&[String], &[u8]) -> Result<Vec<u8>, String>,
) -> ExitCode {
    match try_work(args, job) {
        Ok(()) => ExitCode::SUCCESS,
        // There is nobody to tell: the hub sees the socket close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_work(
    args: impl IntoIterator<Item = OsString>,
    job: impl FnOnce(&[String], &[u8]) -> Result<Vec<u8>, String>,
) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let args: Option<Vec<_>> = args.into_iter().map(|arg| arg.into_string().ok()).collect();
    let args = args.ok_or_else(invalid)?;
    let [cpu, memory, args @ ..] = &args[..] else { return Err(invalid()) };
    let number = |text: &str| text.parse::<u64>().map_err(|_| invalid());
    limit(Resource::Cpu, number(cpu)?, 1)?;
    limit(Resource::As, number(memory)?, 0)?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Fsize, 0, 0)?;
    nice(NICE)?;
    // A hole in what works here is a hole in a process that can do nothing else. Where the kernel has no such filter, it is one in a
    // process of its own all the same.
    #[cfg(target_os = "linux")]
    let _ = crate::confine::alone();

    let mut hub = net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut length = [0; 8];
    hub.read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    let mut input = Vec::new();
    (&mut hub).take(length).read_to_end(&mut input)?;
    if input.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    end_with(hub.try_clone()?)?;
    let (verdict, answer) = match job(args, &input) {
        Ok(done) => (DONE, done),
        Err(why) => (REFUSED, why.into_bytes()),
    };
    hub.write_all(&[verdict])?;
    hub.write_all(&(answer.len() as u64).to_be_bytes())?;
    hub.write_all(&answer)
}

/// The limit itself, and so much beyond it until the system kills; never more than this process may have anyway.
fn limit(resource: Resource, most: u64, beyond: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let hard = most.saturating_add(beyond).min(maximum);
    setrlimit(resource, Rlimit { current: Some(most.min(hard)), maximum: Some(hard) })?;
    Ok(())
}

/// Ends this process once the hub has: nobody waits for the work any more.
fn end_with(mut hub: net::UnixStream) -> io::Result<()> {
    let watch = move || {
        // The hub says nothing more, so that whatever ends this is the hub's end.
        let _ = hub.read(&mut [0]);
        std::process::abort();
    };
    // It ends with the process, at the latest.
    thread::Builder::new().name("hub".to_owned()).spawn(watch).map(drop)
}
