//! The hub's side of one minder: starts it, forwards orders, and makes sure that the tree is gone
//! at the end.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::Command;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::child::{End, Ending, InspectionRequest};
use super::launch::{Launch, SpawnError};
use super::lineage::{Behalf, Minders, Registered};
use super::ownership::Owned;
use super::system::LostTree;
use super::wire::{FrameBody, MinderOrder, MinderReport, Pipes, encode_env, send_pipes};
use super::{
    Child, DATA_MARKER, MemoryExceeded, OWNER_MARKER, ProgramExit, SUPERVISE, SWEEP_WAIT, System,
    TREE_MARKER, proc,
};

/// Time that a minder may take to start its program, on a machine that starts many.
const START_WAIT: Duration = Duration::from_secs(15);

/// Delay of a minder's last report beyond its deadline, after which it is considered stuck.
const LATE_WAIT: Duration = Duration::from_secs(2);

/// Longest grace period in a hurry: a program that reacts to SIGTERM needs a fraction of it to save
/// its session.
const HURRIED: Duration = Duration::from_millis(250);

/// Common settings of all trees of one supervisor.
#[derive(Clone, Debug)]
pub(super) struct TreeSettings {
    pub(super) system: System,
    pub(super) minder: PathBuf,
    pub(super) data_dir: PathBuf,
    pub(super) grace: Duration,
    /// True if programs are only confined and not started.
    pub(super) rehearses: bool,
    /// Limit of a program's open files; the hub's own limit if none.
    pub(super) open_files: Option<u64>,
    /// Cancelled to end all trees, with grace periods of at most [`HURRIED`].
    pub(super) hurry: CancellationToken,
    /// Live minders.
    pub(super) minders: Minders,
    /// True if this process is only a hub: a minder's orphans come to it, where the system can.
    pub(super) adopts: bool,
}

/// Pid of a minder that was not reaped yet.
fn pid_of(minder: &tokio::process::Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(minder.id()?).ok()?)
}

/// The hub's ends of a program's three pipes.
struct OurPipes {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

/// A minder and its tree.
struct OwnedTree {
    settings: Arc<TreeSettings>,
    owner: String,
    /// Value of the tree's marker.
    name: String,
    minder: tokio::process::Child,
    /// Process group of the program, if the system needs it to end the tree without the minder.
    group: Option<Pid>,
    /// Held until the minder is reaped: before that its pid cannot be reused.
    _registered: Registered,
    reports: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    /// Memory limit, in bytes.
    memory_limit: u64,
    /// Set once the tree has exceeded the limit.
    exceeded: Option<MemoryExceeded>,
}

/// Starts a tree, reports the result, and runs until the tree is gone. Then drops `lease`, then
/// reports the exit.
pub(super) async fn run<Lease>(
    settings: Arc<TreeSettings>,
    launch: Launch,
    end: CancellationToken,
    tasks: TaskTracker,
    started: oneshot::Sender<Result<Child, SpawnError>>,
    (owned, lease): (Owned, Lease),
) {
    let (mut tree, pipes) = match OwnedTree::start(settings, &launch, owned.behalf()).await {
        Ok(tree) => tree,
        Err(error) => {
            let _ = started.send(Err(error)); // the caller may have left
            return;
        }
    };
    let (exited, exit) = oneshot::channel();
    let (stdin, writes) = mpsc::channel(1);
    let interrupt = Arc::new(Notify::new());
    let (looks, requests) = mpsc::channel(1);
    let child = Child {
        stdout: Some(pipes.stdout),
        stderr: Some(pipes.stderr),
        stdin: Some(stdin),
        end: end.clone(),
        interrupt: Arc::clone(&interrupt),
        exit: Ending::Awaited(exit),
        tasks,
        owned,
        looks,
    };
    // If the caller left, this drops the child, which cancels `end`.
    let _ = started.send(Ok(child));

    let ended = tokio::select! {
        ended = tree.tend(&interrupt, &end, requests) => ended,
        never = feed(pipes.stdin, writes) => match never {},
    };
    let end = tree.finish(ended).await;
    drop(lease);
    let _ = exited.send(end); // the child may have been dropped
}

impl OwnedTree {
    async fn start(
        settings: Arc<TreeSettings>,
        launch: &Launch,
        behalf: Behalf,
    ) -> Result<(Self, OurPipes), SpawnError> {
        launch.check().await?;
        let no_minder = |source| SpawnError::Minder { minder: settings.minder.clone(), source };
        let (pipes, ours) = pipes().map_err(no_minder)?;
        let (socket, minders) = socket_pair().map_err(no_minder)?;
        let name = behalf.lock().tree.clone();
        let markers = [
            (OWNER_MARKER, launch.owner.as_ref()),
            (DATA_MARKER, settings.data_dir.as_os_str()),
            (TREE_MARKER, name.as_ref()),
        ];
        let unsent = |source| SpawnError::System { program: launch.program.clone(), source };
        let body = FrameBody::new(
            environment(launch, markers),
            launch.confinement.as_ref(),
            settings.rehearses,
        );
        let body = body.map_err(unsent)?;
        let minder = minder(&settings, launch, markers, minders).spawn();
        let minder = minder.map_err(|source| match Errno::from_io_error(&source) {
            Some(errno) if errno != Errno::TOOBIG => no_minder(source),
            // Too long, or NUL among them: the program's arguments are the minder's too.
            Some(_) | None => SpawnError::from_system(&launch.program, source),
        })?;
        let registered = settings.minders.register(pid_of(&minder), behalf);
        let sent = send_pipes(&socket, &pipes, &body);
        drop(pipes); // otherwise this process holds the program's ends open
        let (reports, orders) = socket.into_split();
        let reports = BufReader::new(reports).lines();
        let owner = launch.owner.clone();
        let memory_limit = launch.confinement.as_ref().and_then(|it| it.ceilings.memory_bytes);
        let mut tree = Self {
            settings,
            owner,
            name,
            minder,
            group: None,
            _registered: registered,
            reports,
            orders,
            memory_limit: memory_limit.unwrap_or(u64::MAX),
            exceeded: None,
        };

        let greeted = match sent {
            Ok(()) => timeout(START_WAIT, tree.greet(&body.bytes()))
                .await
                .unwrap_or_else(|late| Err(late.into())),
            Err(error) => Err(error),
        };
        let minder = || tree.settings.minder.clone();
        let error = match greeted {
            Ok(MinderReport::Started { group }) => {
                tree.group = group.and_then(Pid::from_raw);
                return Ok((tree, ours));
            }
            Ok(MinderReport::Failed(errno)) => {
                tree.reap().await;
                let source = io::Error::from_raw_os_error(errno);
                let why = SpawnError::from_system(&launch.program, source);
                let is_unseen =
                    launch.confinement.is_some() && matches!(why, SpawnError::Missing { .. });
                let program = launch.program.clone();
                return Err(if is_unseen { SpawnError::Unseen { program } } else { why });
            }
            Ok(MinderReport::NotConfined(source)) => {
                tree.reap().await;
                return Err(SpawnError::NotConfined { program: launch.program.clone(), source });
            }
            Ok(
                MinderReport::Ended { .. }
                | MinderReport::Inspected(_)
                | MinderReport::MemoryExceeded(_),
            ) => SpawnError::Minder { minder: minder(), source: io::ErrorKind::InvalidData.into() },
            Err(source) => SpawnError::Minder { minder: minder(), source },
        };
        tree.clear().await;
        Err(error)
    }

    /// Sends the rest of the launch and waits for the first report.
    async fn greet(&mut self, body: &[u8]) -> io::Result<MinderReport> {
        self.orders.write_all(body).await?;
        let line = self.reports.next_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        line.parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Forwards orders until the minder's last report. `None` if the minder vanished or got stuck
    /// without one.
    async fn tend(
        &mut self,
        interrupt: &Notify,
        end: &CancellationToken,
        mut looks: mpsc::Receiver<InspectionRequest>,
    ) -> Option<MinderReport> {
        let (grace, hurry) = (self.settings.grace, self.settings.hurry.clone());
        let (mut deadline, mut is_hurried) = (None, false);
        let mut replies = VecDeque::new();
        loop {
            let overdue = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let order = tokio::select! {
                line = self.reports.next_line() => match line.ok()??.parse().ok()? {
                    MinderReport::Inspected(seen) => {
                        if let Some(told) = replies.pop_front() {
                            // The requester may have left.
                            let _ = oneshot::Sender::send(told, seen);
                        }
                        continue;
                    }
                    MinderReport::MemoryExceeded(taken) => {
                        self.exceeded = Some(MemoryExceeded { taken, limit: self.memory_limit });
                        deadline = Some(Instant::now() + SWEEP_WAIT + LATE_WAIT);
                        continue;
                    }
                    last @ (MinderReport::Started { .. }
                    | MinderReport::Failed(_)
                    | MinderReport::NotConfined(_)
                    | MinderReport::Ended { .. }) => return Some(last),
                },
                Some((look, told)) = looks.recv() => {
                    replies.push_back(told);
                    MinderOrder::Inspect(look)
                }
                () = overdue => return None,
                () = interrupt.notified() => MinderOrder::Interrupt,
                () = hurry.cancelled(), if !is_hurried => {
                    is_hurried = true;
                    let grace = grace.min(HURRIED);
                    deadline = Some(Instant::now() + grace + SWEEP_WAIT + LATE_WAIT);
                    MinderOrder::End(grace)
                }
                () = end.cancelled(), if deadline.is_none() => {
                    deadline = Some(Instant::now() + grace + SWEEP_WAIT + LATE_WAIT);
                    MinderOrder::End(grace)
                }
            };
            let line = format!("{order}\n");
            match timeout(LATE_WAIT, self.orders.write_all(line.as_bytes())).await {
                // If the minder's socket is closed, its last report may still be readable.
                Ok(Ok(()) | Err(_)) => {}
                // A stopped minder has a full socket of orders, and does not read this one either.
                Err(_) => return None,
            }
        }
    }

    /// Waits until the tree is gone; returns the program's exit and any excess of memory.
    async fn finish(mut self, last: Option<MinderReport>) -> End {
        let (owner, exceeded) = (&self.owner, self.exceeded);
        if let Some(MemoryExceeded { taken, limit }) = exceeded {
            tracing::warn!(
                owner,
                taken,
                limit,
                "process tree exceeded its memory limit and was killed"
            );
        }
        if let Some(MinderReport::Ended { exit, survivors }) = last {
            if survivors > 0 {
                tracing::warn!(
                    owner,
                    survivors,
                    "processes are stuck in the kernel and could not be killed"
                );
            }
            self.reap().await;
            return End { exceeded, exit };
        }
        tracing::warn!(owner, "minder was lost, killing its process tree");
        self.clear().await;
        End { exceeded, exit: ProgramExit::KILLED }
    }

    /// Reaps a minder after its last report, when it has only to exit.
    async fn reap(&mut self) {
        if timeout(LATE_WAIT, self.minder.wait()).await.is_err() {
            self.clear().await;
        }
    }

    /// Kills the minder and what is left of its tree, then reaps the minder. In this order, because
    /// its pid cannot be reused for a session before it is reaped.
    async fn clear(&mut self) {
        let _ = self.minder.start_kill(); // fails if the minder is gone already
        let markers = [
            proc::variable(TREE_MARKER, self.name.as_ref()),
            proc::variable(DATA_MARKER, &self.settings.data_dir),
        ];
        let lost = LostTree { minder: pid_of(&self.minder), group: self.group, markers };
        let system = self.settings.system.calls();
        let swept = tokio::task::spawn_blocking(move || system.kill_lost(&lost)).await;
        tracing::debug!(owner = self.owner, ?swept, "killed the process tree of a lost minder");
        if let Err(error) = self.minder.wait().await {
            tracing::warn!(owner = self.owner, %error, "a minder could not be reaped");
        }
        if self.settings.adopts && system.lists_processes() {
            let minders = self.settings.minders.clone();
            // Fails only when the runtime shuts down, and this process with it.
            let _ = tokio::task::spawn_blocking(move || minders.reap_orphans()).await;
        }
    }
}

/// Writes queued bytes in order, until the queue ends or the reader is gone. Never returns: the
/// tree outlives it.
async fn feed(
    mut stdin: pipe::Sender,
    mut writes: mpsc::Receiver<Vec<u8>>,
) -> std::convert::Infallible {
    while let Some(bytes) = writes.recv().await {
        if stdin.write_all(&bytes).await.is_err() {
            break;
        }
    }
    drop((stdin, writes));
    std::future::pending().await
}

/// Command line of the minder. Its environment is only the markers.
fn minder(
    settings: &TreeSettings,
    launch: &Launch,
    markers: [(&str, &OsStr); 3],
    socket: OwnedFd,
) -> Command {
    #[expect(clippy::disallowed_methods, reason = "here is where every minder is started")]
    let mut command = Command::new(&settings.minder);
    command
        .arg0("a2a-hub")
        .arg(SUPERVISE)
        .arg(settings.grace.as_millis().to_string())
        .arg(settings.open_files.unwrap_or_default().to_string())
        .arg(settings.system.word())
        .arg(&launch.program)
        .args(&launch.args)
        .current_dir(launch.cwd.entry())
        .env_clear()
        .envs(markers)
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Environment of the program; the markers come last and take precedence.
fn environment(launch: &Launch, markers: [(&str, &OsStr); 3]) -> Vec<u8> {
    let vars = launch.env.iter().map(|(name, value)| (name.as_str(), OsStr::new(value)));
    encode_env(vars.chain(markers))
}

/// Three pipes with close-on-exec at both ends.
fn pipes() -> io::Result<(Pipes, OurPipes)> {
    let [(stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr)] = [
        pipe_with(PipeFlags::CLOEXEC)?,
        pipe_with(PipeFlags::CLOEXEC)?,
        pipe_with(PipeFlags::CLOEXEC)?,
    ];
    let ours = OurPipes {
        stdin: pipe::Sender::from_owned_fd(our_stdin)?,
        stdout: pipe::Receiver::from_owned_fd(our_stdout)?,
        stderr: pipe::Receiver::from_owned_fd(our_stderr)?,
    };
    Ok(([stdin, stdout, stderr], ours))
}

/// Socket pair: the hub's end for the runtime, and the minder's blocking end.
fn socket_pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, minders) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, minders.into()))
}
