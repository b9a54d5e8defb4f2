//! Worker: this executable started again for one piece of work on untrusted bytes (fault isolation
//! by a separate process). Work on a thread can be neither killed nor limited in memory; a process
//! can.
//!
//! ```text
//! hub ── length, bytes ──▶ worker        over one socket, the worker's standard input
//! hub ◀── verdict, length, bytes ── worker
//! ```
//!
//! The worker limits itself before it reads the first byte, and ends with the hub, when the socket
//! closes. It opens no file and no connection, which the kernel enforces (seccomp), and its
//! environment has only the number of threads.

use crate::procfs::read_file;
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, nice, setrlimit};
use std::{
    ffi::OsString,
    future::pending,
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
    time::{Instant, sleep},
};

/// Nice value of a worker of low priority, below the hub's: requests come first.
const NICE: i32 = 10;

/// Threads of a worker: more do not speed up the work given to workers.
const THREADS: usize = 4;

/// Bytes read of a worker's standard error.
const LAST_WORDS: u64 = 4 << 10;

/// Message of the standard library when a process runs out of memory.
const NO_MEMORY: &str = "memory allocation of";

/// Interval at which a worker's CPU time is read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Executable that becomes a worker if its first argument is `word`.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Path of the executable.
    pub program: PathBuf,
    /// First argument; `main` passes the following ones to [`work`].
    pub word: &'static str,
}

/// Limits of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// CPU time of all threads together, in whole seconds, at least one.
    pub cpu: Duration,
    /// Address space of the worker, in bytes, including its executable.
    pub memory: u64,
    /// Bytes of the worker's answer.
    pub output: u64,
    /// Time without any use of the processor after which the worker counts as stuck. The wall-clock
    /// time has no other limit: on a busy machine, work takes long and still ends.
    pub stall: Duration,
    /// Priority on the processor.
    pub priority: WorkerPriority,
}

/// Priority of a worker on the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerPriority {
    /// As this process: somebody waits for the work and nothing else.
    Normal,
    /// Below this process, which serves requests meanwhile.
    #[default]
    Low,
}

/// Reason why a piece of work was not done.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The worker refused the work.
    #[error("{0}")]
    Refused(String),
    /// The CPU limit was exceeded.
    #[error("it took more than {} s of time on the processor", .0.as_secs())]
    Cpu(Duration),
    /// The memory limit was exceeded.
    #[error("it took more than {} MiB of memory", .0 >> 20)]
    Memory(u64),
    /// The answer was too long.
    #[error("it made more than {} MiB", .0 >> 20)]
    Output(u64),
    /// The worker crashed on its input.
    #[error("the worker crashed: {0}")]
    Crashed(String),
    /// The worker did not run, which is not the work's fault.
    #[error("the machine is too busy: it did not run for {} s, and is tried again", .0.as_secs())]
    Starved(Duration),
    /// The worker could not be started, or the socket failed.
    #[error("start a worker from {program}: {why}")]
    System {
        /// Executable of the worker.
        program: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl WorkError {
    /// True if the same work would fail again under the same limits.
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
    /// Runs the work on `input` in a new process with these arguments. Dropping the future kills
    /// it.
    ///
    /// # Errors
    /// A [`WorkError`] names the reason, and whether a retry could succeed.
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
        let stuck = stuck(child.id(), limits.stall);
        let worked = async {
            let (answer, last_words) =
                tokio::join!(converse(&mut socket, &input, limits.output), read_some(last_words));
            (answer, child.wait().await, last_words)
        };
        let (answer, status, last_words) = tokio::select! {
            worked = worked => worked,
            () = stuck => return Err(WorkError::Starved(limits.stall)),
        };
        let status = status.map_err(system)?;
        match answer {
            Ok(Some(WorkerReply::Done(bytes))) if status.success() => Ok(bytes),
            Ok(Some(WorkerReply::Refused(why))) if status.success() => {
                Err(WorkError::Refused(String::from_utf8_lossy(&why).into_owned()))
            }
            Ok(Some(WorkerReply::TooLong)) => Err(WorkError::Output(limits.output)),
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
            .arg(limits.priority.nice().to_string())
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

impl WorkerPriority {
    /// Increment of the nice value.
    fn nice(self) -> i32 {
        match self {
            Self::Normal => 0,
            Self::Low => NICE,
        }
    }
}

/// Waits until the process has not used the processor for `stall`.
async fn stuck(pid: Option<u32>, stall: Duration) {
    // The process of a missing id has ended, which is observed elsewhere.
    let Some(pid) = pid else { return pending().await };
    let (mut used, mut since) = (None, Instant::now());
    loop {
        sleep(POLL_INTERVAL.min(stall)).await;
        let now = cpu_ticks(pid);
        if now.is_none() || now != used {
            (used, since) = (now, Instant::now());
        } else if since.elapsed() >= stall {
            return;
        }
    }
}

/// CPU time of all threads of a process, in clock ticks; none if it cannot be read.
fn cpu_ticks(pid: u32) -> Option<u64> {
    let stat = read_file(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last bracket may contain spaces and brackets.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

/// Answer of a worker.
enum WorkerReply {
    Done(Vec<u8>),
    Refused(Vec<u8>),
    /// Longer than allowed, and not read.
    TooLong,
}

/// First byte of a successful answer.
const DONE: u8 = 1;

/// First byte of a refusal.
const REFUSED: u8 = 0;

/// Sends the work and reads the answer; none if the worker ended without a whole one. The socket is
/// shut down if the answer is too long, because the worker would block forever on the unread rest.
async fn converse(
    socket: &mut UnixStream,
    input: &[u8],
    max_bytes: u64,
) -> io::Result<Option<WorkerReply>> {
    let (mut read, mut write) = socket.split();
    let send = async {
        write.write_u64(input.len() as u64).await?;
        write.write_all(input).await
    };
    let receive = async {
        let verdict = read.read_u8().await?;
        let length = read.read_u64().await?;
        if length > max_bytes {
            return Ok(Some(WorkerReply::TooLong));
        }
        let mut bytes = Vec::new();
        read.take(length).read_to_end(&mut bytes).await?;
        let is_complete = bytes.len() as u64 == length;
        Ok(is_complete.then_some(if verdict == DONE {
            WorkerReply::Done(bytes)
        } else {
            WorkerReply::Refused(bytes)
        }))
    };
    // A worker that refuses early leaves the rest of its input unread; its answer counts.
    let (_, answer) = tokio::join!(send, receive);
    if let Ok(Some(WorkerReply::TooLong)) = answer {
        socket.shutdown().await?;
    }
    answer
}

/// Reads the start of a stream; the rest is read and discarded, so that the writer does not block.
async fn read_some(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut output = Vec::new();
    if let Some(mut from) = from {
        // Unreadable text counts as empty.
        let _ = (&mut from).take(LAST_WORDS).read_to_end(&mut output).await;
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    output
}

fn why_it_ended(status: ExitStatus, last_words: &[u8], limits: WorkLimits) -> WorkError {
    let stderr = String::from_utf8_lossy(last_words);
    if status.signal() == Some(Signal::XCPU.as_raw()) {
        return WorkError::Cpu(limits.cpu);
    }
    if stderr.contains(NO_MEMORY) {
        return WorkError::Memory(limits.memory);
    }
    if status.signal() == Some(Signal::KILL.as_raw()) {
        // While the hub waits, only the system kills a worker: when the machine is short of memory.
        return WorkError::System {
            program: PathBuf::from("this executable"),
            why: io::Error::other(
                "the system killed it, as it does when the machine has no memory left",
            ),
        };
    }
    if stderr.contains("panicked at") {
        // Quoted, because the text may contain outside input.
        tracing::warn!(panic = ?stderr, "a worker panicked");
        return WorkError::Crashed("it panicked; the hub's log has the panic's text".to_owned());
    }
    let first = stderr.lines().next().unwrap_or_default().trim();
    WorkError::Crashed(if first.is_empty() { status.to_string() } else { first.to_owned() })
}

/// Runs as a worker. `args` are those after the worker's word; standard input is the socket to the
/// hub. To be called first in `main`, before a second thread exists.
pub fn work(
    args: impl IntoIterator<Item = OsString>,
    job: impl FnOnce(&[String], &[u8]) -> Result<Vec<u8>, String>,
) -> ExitCode {
    match try_work(args, job) {
        Ok(()) => ExitCode::SUCCESS,
        // No channel for the error is left: the hub sees the socket close.
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
    let [cpu, memory, lower, args @ ..] = &args[..] else { return Err(invalid()) };
    let number = |text: &str| text.parse::<u64>().map_err(|_| invalid());
    limit(Resource::Cpu, number(cpu)?, 1)?;
    limit(Resource::As, number(memory)?, 0)?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Fsize, 0, 0)?;
    nice(lower.parse().map_err(|_| invalid())?)?;
    // A vulnerability in the work is then one in a process that can do nothing else. If the kernel
    // has no such filter, the work is at least in a separate process.
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

/// Sets a limit, with the hard limit `beyond` it, at which the system kills; never above the
/// current maximum.
fn limit(resource: Resource, soft: u64, beyond: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let hard = soft.saturating_add(beyond).min(maximum);
    setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })?;
    Ok(())
}

/// Aborts this process when the hub ends, because nobody waits for the work any more.
fn end_with(mut hub: net::UnixStream) -> io::Result<()> {
    let watch = move || {
        // The hub sends nothing more, so a return means that the hub ended.
        let _ = hub.read(&mut [0]);
        std::process::abort();
    };
    // The thread ends with the process.
    thread::Builder::new().name("hub".to_owned()).spawn(watch).map(drop)
}
