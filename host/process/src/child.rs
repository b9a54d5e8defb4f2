//! Handle to one running program: its output, its input, its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ownership::Owned;
use super::wire::{Inspection, InspectionResult};
use super::{MemoryExceeded, Output, ProgramExit};

/// Most bytes in one [`Output`]: the capacity of a pipe, so one read empties it.
pub const MAX_CHUNK: usize = 64 * 1024;

/// Time that a minder may take to inspect its tree and kill processes.
const INSPECTION_TIMEOUT: Duration = Duration::from_secs(3);

/// Time to wait for more output once the tree is gone. It matters only if a process outside the
/// tree holds the pipe; what was written before the end is read at any pace.
const DRAIN_WAIT: Duration = Duration::from_secs(1);

/// One running program. Dropping it kills the program and its tree, as [`Child::kill`] does.
#[derive(Debug)]
pub struct Child {
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
    pub(super) stdin: Option<mpsc::Sender<Vec<u8>>>,
    pub(super) end: CancellationToken,
    pub(super) interrupt: Arc<Notify>,
    pub(super) exit: Ending,
    /// Tracker for background tasks of the supervisor.
    pub(super) tasks: TaskTracker,
    pub(super) owned: Owned,
    pub(super) looks: mpsc::Sender<InspectionRequest>,
}

/// Request to inspect a tree, with the channel for the result.
pub(super) type InspectionRequest = (Inspection, oneshot::Sender<InspectionResult>);

/// State of a tree after its background processes were killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Number of processes that were killed.
    pub killed: usize,
    /// Resident memory of the remaining processes, in bytes; shared memory is counted for each
    /// process.
    pub resident: u64,
}

/// State of the program's end.
#[derive(Debug)]
pub(super) enum Ending {
    /// The tree lives; the end arrives on this channel.
    Awaited(oneshot::Receiver<End>),
    /// The tree is gone; output is awaited until the given time.
    Known(End, Instant),
}

/// End of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Excess of the memory limit, if any; taken once reported.
    pub(super) exceeded: Option<MemoryExceeded>,
    pub(super) exit: ProgramExit,
}

impl Child {
    /// Waits for the next piece of output. The exit comes last, after all output, and is repeated
    /// on further calls.
    ///
    /// Nothing is read ahead: a program that prints endlessly blocks on its pipe until the caller
    /// reads. Dropping the future loses nothing, so it can be used in a `select!`.
    pub async fn next(&mut self) -> Output {
        loop {
            if let Ending::Known(end, _) = &mut self.exit
                && self.stdout.is_none()
                && self.stderr.is_none()
            {
                let exceeded = end.exceeded.take().map(Output::MemoryExceeded);
                return exceeded.unwrap_or(Output::Exited(end.exit));
            }
            let output = async {
                tokio::select! {
                    chunk = read(&mut self.stdout) => chunk.map(Output::Stdout),
                    chunk = read(&mut self.stderr) => chunk.map(Output::Stderr),
                }
            };
            tokio::select! {
                biased; // available output takes precedence over deadlines
                output = output => match output {
                    Some(output) => return output,
                    None => continue,
                },
                () = self.exit.progress() => {}
            }
            // Nothing was ready. After the deadline, the pipes' holder is not part of the tree.
            if matches!(self.exit, Ending::Known(_, until) if until <= Instant::now()) {
                (self.stdout, self.stderr) = (None, None);
            }
        }
    }

    /// Queues bytes for standard input.
    ///
    /// At most two writes are pending; a third waits until the program has read the first. So a
    /// caller can pass any amount at once and then read the program's output, but a caller that
    /// writes repeatedly without [`Child::next`] may deadlock with a program that waits for its
    /// reader. Dropping the future queues either everything or nothing.
    ///
    /// # Errors
    /// `BrokenPipe` once the program, or [`Child::close_stdin`], has closed its input.
    pub async fn write_stdin(&mut self, bytes: &[u8]) -> io::Result<()> {
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "standard input is closed");
        let stdin = self.stdin.as_ref().ok_or_else(closed)?;
        let permit = stdin.reserve().await.map_err(|_| closed())?;
        permit.send(bytes.to_vec());
        Ok(())
    }

    /// Closes standard input after the queued bytes are delivered.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends SIGINT to the program's group. Several calls in quick succession may arrive as one
    /// signal.
    pub fn interrupt(&self) {
        self.interrupt.notify_one();
    }

    /// Sends SIGTERM to the program's group and, after the supervisor's grace period, SIGKILL to
    /// the whole tree. Output and exit can still be read.
    pub fn kill(&self) {
        self.end.cancel();
    }

    /// Token that kills the program like [`Child::kill`] when it is cancelled, independent of the
    /// child's holder.
    pub fn ender(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Marks the current processes of the tree as the program's own, which [`Child::prune`] spares.
    /// Before the first call these are the processes at the program's start.
    pub async fn mark_baseline(&self) {
        self.inspect(Inspection::Settle).await;
    }

    /// Kills all processes of the tree that are not the program's own, regardless of session, group
    /// or parent. None if some survive for a second, if the program is gone, or on a
    /// [`System`](super::System) that lists no processes.
    pub async fn prune(&self) -> Option<Pruned> {
        let InspectionResult { killed, survivors, resident } =
            self.inspect(Inspection::Prune).await?;
        (survivors == 0).then_some(Pruned { killed, resident })
    }

    /// Resident memory of the tree, in bytes; none if the program is gone, or on a
    /// [`System`](super::System) that lists no processes.
    pub async fn resident(&self) -> Option<u64> {
        let resident = self.inspect(Inspection::Weigh).await?.resident;
        (resident > 0).then_some(resident)
    }

    /// Has the minder inspect its tree; none if the minder is gone or stuck.
    async fn inspect(&self, inspection: Inspection) -> Option<InspectionResult> {
        let (reply, result) = oneshot::channel();
        self.looks.send((inspection, reply)).await.ok()?;
        timeout(INSPECTION_TIMEOUT, result).await.ok()?.ok()
    }

    /// True once the whole tree is gone and its end is known.
    pub fn has_ended(&self) -> bool {
        matches!(self.exit, Ending::Known(..))
    }

    /// Transfers the tree to another owner: a wait for the former owner no longer includes the
    /// tree, and its processes' calls to the hub count for the new owner. Returns false if the tree
    /// is gone.
    pub fn pass_to(&self, owner: &str) -> bool {
        self.owned.pass_to(owner)
    }

    /// Closes standard input and releases the program: it may exit within that time, then it is
    /// killed as by [`Child::kill`]. Its output is read and discarded, so that it does not block on
    /// its pipes.
    pub fn retire(mut self, within: Duration) {
        self.close_stdin();
        let tasks = self.tasks.clone();
        tasks.spawn(async move {
            let ended = async { while !matches!(self.next().await, Output::Exited(_)) {} };
            // Dropping the child kills what has not exited.
            let _ = timeout(within, ended).await;
        });
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Ending {
    /// Waits for the end; after that, for the drain deadline.
    async fn progress(&mut self) {
        match self {
            Self::Awaited(exit) => {
                // The channel closes without a value only if the runtime shut down, and the tree
                // with it.
                let end = exit.await.unwrap_or(End { exceeded: None, exit: ProgramExit::KILLED });
                *self = Self::Known(end, Instant::now() + DRAIN_WAIT);
            }
            Self::Known(_, until) => tokio::time::sleep_until(*until).await,
        }
    }
}

/// Reads the next bytes of an open pipe; `None` at its end, which closes it. Never completes for a
/// closed pipe.
async fn read(pipe: &mut Option<pipe::Receiver>) -> Option<Vec<u8>> {
    let Some(open) = pipe else { return std::future::pending().await };
    loop {
        let ready = open.readable().await;
        let mut chunk = Vec::with_capacity(MAX_CHUNK);
        match ready.and_then(|()| open.try_read_buf(&mut chunk)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => {
                *pipe = None;
                return None;
            }
            Ok(_) => {
                chunk.shrink_to_fit();
                return Some(chunk);
            }
        }
    }
}
