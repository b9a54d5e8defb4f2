//! The handle to one running program: its output as it comes, its input, its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ownership::Owned;
use super::wire::{Look, Seen};
use super::{Exit, MemoryExceeded, Output};

/// The most bytes in one [`Output`]: what a pipe holds, so one read empties it.
pub const MAX_CHUNK: usize = 64 * 1024;

/// How long a minder may take to look at its tree, and to kill what is to go.
const LOOK_WAIT: Duration = Duration::from_secs(3);

/// How long to wait for more output once nobody is left to write any. Only a process outside the tree that was
/// handed the pipe can make it matter; what was written before the end is read whatever the reader's pace.
const DRAIN_WAIT: Duration = Duration::from_secs(1);

/// One running program. Dropping it ends the program and all it started, as [`Child::kill`] does.
#[derive(Debug)]
pub struct Child {
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
    pub(super) stdin: Option<mpsc::Sender<Vec<u8>>>,
    pub(super) end: CancellationToken,
    pub(super) interrupt: Arc<Notify>,
    pub(super) exit: Ending,
    /// Where the supervisor keeps what goes on by itself.
    pub(super) tasks: TaskTracker,
    pub(super) owned: Owned,
    pub(super) looks: mpsc::Sender<AskedLook>,
}

/// To look at a tree, and tell what was found.
pub(super) type AskedLook = (Look, oneshot::Sender<Seen>);

/// What is left of a tree once what its task left in the background was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many processes were killed.
    pub killed: usize,
    /// Memory of the others that is resident, in bytes; what processes share is counted for each.
    pub resident: u64,
}

/// What is known of the program's end.
#[derive(Debug)]
pub(super) enum Ending {
    /// Its tree lives: the end is told here.
    Awaited(oneshot::Receiver<End>),
    /// All of it is gone, and output is waited for until then.
    Known(End, Instant),
}

/// The end of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// That it took more memory than it may; none once that was told.
    pub(super) exceeded: Option<MemoryExceeded>,
    pub(super) exit: Exit,
}

impl Child {
    /// Waits for the next piece of output; the exit comes last, after all output, and is repeated if asked for again.
    ///
    /// Nothing is read ahead: a program that prints without end waits in its pipe until somebody asks.
    /// Dropping the future loses nothing, so it may stand in a `select!`.
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
                biased; // what is there to read goes before any deadline
                output = output => match output {
                    Some(output) => return output,
                    None => continue,
                },
                () = self.exit.progress() => {}
            }
            // Nothing was ready. If that is so past the deadline, whoever holds the pipes is none of ours.
            if matches!(self.exit, Ending::Known(_, until) if until <= Instant::now()) {
                (self.stdout, self.stderr) = (None, None);
            }
        }
    }

    /// Queues bytes for standard input.
    ///
    /// At most two writes are on their way at once; a third waits until the program has read the first. So a caller
    /// can hand over any amount at once and then read what the program answers, but one that writes on and on
    /// without calling [`Child::next`] may find that the program waits for it in turn. Dropping the future queues
    /// either everything or nothing.
    ///
    /// # Errors
    /// `BrokenPipe` once the program, or [`Child::close_stdin`], has closed its input.
    pub async fn write_stdin(&mut self, bytes: &[u8]) -> io::Result<()> {
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "standard input is closed");
        let stdin = self.stdin.as_ref().ok_or_else(closed)?;
        let place = stdin.reserve().await.map_err(|_| closed())?;
        place.send(bytes.to_vec());
        Ok(())
    }

    /// Closes standard input, once what was written is delivered.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends SIGINT to the program's group. Several in quick succession may arrive as one.
    pub fn interrupt(&self) {
        self.interrupt.notify_one();
    }

    /// Sends SIGTERM to the program's group and, after the supervisor's grace, SIGKILL to all it started.
    /// The output and the exit can still be read.
    pub fn kill(&self) {
        self.end.cancel();
    }

    /// What ends the program as [`Child::kill`] does when it is cancelled, whoever holds the child.
    pub fn ender(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Takes what runs of its tree now to be the program's own, which [`Child::prune`] spares. Until it is said, that is what ran
    /// when the program was started.
    pub async fn settle(&self) {
        self.look(Look::Settle).await;
    }

    /// Kills what is not the program's own, whatever session, group or parent it gave itself. None if something of it is still
    /// there after a second, or the program is gone.
    pub async fn prune(&self) -> Option<Pruned> {
        let Seen { killed, left, resident } = self.look(Look::Prune).await?;
        (left == 0).then_some(Pruned { killed, resident })
    }

    /// Memory of its tree that is resident, in bytes; none if the program is gone.
    pub async fn resident(&self) -> Option<u64> {
        Some(self.look(Look::Weigh).await?.resident)
    }

    /// Has the minder look; none if that is gone, or stuck.
    async fn look(&self, look: Look) -> Option<Seen> {
        let (told, seen) = oneshot::channel();
        self.looks.send((look, told)).await.ok()?;
        timeout(LOOK_WAIT, seen).await.ok()?.ok()
    }

    /// Whether its end is known already, and everything of its tree gone.
    pub fn has_ended(&self) -> bool {
        matches!(self.exit, Ending::Known(..))
    }

    /// Has its tree run on behalf of another from now on: who waits for the former owner waits for it no more, and what its
    /// processes ask of the hub they ask for the new one. Says whether any of the tree is left.
    pub fn pass_to(&self, owner: &str) -> bool {
        self.owned.pass_to(owner)
    }

    /// Closes standard input and lets go of the program: it may end by itself within that time, then it is ended as by
    /// [`Child::kill`]. What it still writes is read, so that it need not wait for a reader, and dropped.
    pub fn retire(mut self, within: Duration) {
        self.close_stdin();
        let tasks = self.tasks.clone();
        tasks.spawn(async move {
            let ended = async { while !matches!(self.next().await, Output::Exited(_)) {} };
            // Dropping the child ends what has not ended.
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
    /// Waits for the end, and thereafter for the end of patience.
    async fn progress(&mut self) {
        match self {
            Self::Awaited(exit) => {
                // Without a word the runtime was shut down, and the tree with it.
                let end = exit.await.unwrap_or(End { exceeded: None, exit: Exit::KILLED });
                *self = Self::Known(end, Instant::now() + DRAIN_WAIT);
            }
            Self::Known(_, until) => tokio::time::sleep_until(*until).await,
        }
    }
}

/// The next bytes of an open pipe; `None` at its end, which closes it. From a closed one nothing ever comes.
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
