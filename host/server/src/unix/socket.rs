//! The unix socket: one JSON-RPC request a line, many under way at once, answers in any order by id; or another
//! protocol, once a connection asks for it.

use super::protocol_upgrade;
use crate::{
    MAX_REQUEST,
    http::router::BACKLOG,
    peer::identity::{self, Lineages},
    rpc::{
        catch_panic::caught,
        dispatcher::{Dispatcher, RequestContext},
        jsonrpc::{self, Refused},
        line_reader::LineReader,
        write_timeout::WriteTimeout,
    },
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{binding::jsonrpc::Beside, dialect::Dialect};
use rustix::fs::{Access, FlockOperation, Mode, OFlags};
use std::{
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileTypeExt as _, net::UnixStream as StdUnixStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncWriteExt as _, BufWriter, Interest},
    net::{UnixListener, UnixSocket, UnixStream, unix::OwnedWriteHalf},
    sync::{Semaphore, mpsc},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Connections at once; each costs a few kilobytes.
const MAX_CONNECTIONS: usize = 1_000;

/// Requests of one connection under way at once; its next line is read when one is done.
const MAX_IN_FLIGHT: usize = 256;

/// Lines that wait to be written to a connection; who answers waits while its client does not read.
const OUTBOX: usize = 64;

/// How long to wait when the system has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// A bound unix socket. Its file is removed when it is dropped.
pub struct Unix {
    listener: UnixListener,
    path: PathBuf,
    _lock: OwnedFd,
}

/// Why the socket cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum UnixError {
    /// Another hub listens there.
    #[error(
        "listen on {0}: another hub does; stop it with `a2a-hub stop`, or choose another `--socket`"
    )]
    Taken(PathBuf),
    /// Something else is there.
    #[error(
        "listen on {0}: there is a file that is not a socket; move it away, or choose another `--socket`"
    )]
    Occupied(PathBuf),
    /// The system says no.
    #[error("listen on {path}: {why}")]
    Io {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl Unix {
    /// Listens on `path`, for this user only. A socket that a dead hub left behind gives way.
    pub fn bind(path: &Path) -> Result<Self, UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let lock = Self::take(path)?;
        if fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path).map_err(failed)?;
        }
        // Made for this user only: no moment passes in which others could connect.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let socket = UnixSocket::new_stream().and_then(|socket| {
            socket.bind(path)?;
            socket.listen(BACKLOG)
        });
        rustix::process::umask(before);
        Ok(Self { listener: socket.map_err(failed)?, path: path.to_owned(), _lock: lock })
    }

    /// Checks that one can listen on `path`. The lock beside it is made, and stays.
    pub fn check(path: &Path) -> Result<(), UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let _lock = Self::take(path)?;
        std::os::unix::net::SocketAddr::from_pathname(path).map_err(failed)?;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let may = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK);
        may.map_err(|why| failed(why.into()))
    }

    /// Takes the lock of `path`, where there is nothing but a socket that somebody left.
    fn take(path: &Path) -> Result<OwnedFd, UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let lock = lock(path).map_err(failed)?.ok_or_else(|| UnixError::Taken(path.to_owned()))?;
        match fs::symlink_metadata(path) {
            Ok(meta) if !meta.file_type().is_socket() => Err(UnixError::Occupied(path.to_owned())),
            Ok(_) => Ok(lock),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(lock),
            Err(why) => Err(failed(why)),
        }
    }

    /// Serves until `stop`, then lets the requests that are under way come to their end.
    pub async fn serve(self, dispatcher: Dispatcher, stop: CancellationToken) {
        let url: Arc<str> = dispatcher.socket_url().unwrap_or_default().into();
        let connections = TaskTracker::new();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
                    let (dispatcher, url) = (dispatcher.clone(), Arc::clone(&url));
                    let stop = stop.clone();
                    connections.spawn(async move {
                        match caller(&stream, dispatcher.lineage()).await {
                            Some(caller) => talk(stream, caller, dispatcher, url, stop).await,
                            None => {
                                tracing::warn!("another user tried to connect to the hub's socket");
                            }
                        }
                        drop(permit);
                    });
                }
                Err(why) => {
                    tracing::warn!(%why, "cannot accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
        connections.close();
        connections.wait().await;
    }
}

impl Drop for Unix {
    fn drop(&mut self) {
        // Gone already if somebody tidied up.
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes the lock beside the socket; none if somebody holds it. The file stays: to remove it would race.
fn lock(path: &Path) -> io::Result<Option<OwnedFd>> {
    let mut file = path.as_os_str().to_owned();
    file.push(".lock");
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = rustix::fs::open(PathBuf::from(file), flags, Mode::RUSR | Mode::WUSR)?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

/// Who connected; none if it was another user.
async fn caller(stream: &UnixStream, lineage: Lineages) -> Option<Principal> {
    let peer = stream.peer_cred().ok()?;
    let stream = stream.as_fd().try_clone_to_owned().ok()?;
    let looked = run_blocking(move || identity::over_unix(&stream, &peer, &lineage)).await;
    looked.ok().flatten()
}

/// One connection, until the client hangs up, dawdles or no longer reads. Its streams end with it; other requests that are
/// under way go on without it.
async fn talk(
    stream: UnixStream,
    caller: Principal,
    dispatcher: Dispatcher,
    url: Arc<str>,
    stop: CancellationToken,
) {
    let (read, write) = stream.into_split();
    let (outbox, letters) = mpsc::channel(OUTBOX);
    let requests = TaskTracker::new();
    let hung_up = CancellationToken::new();
    requests.spawn(post(WriteTimeout::new(write, dispatcher.patience()), letters, hung_up.clone()));
    let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
    let take_in = async |line: String| {
        let Ok(permit) = Arc::clone(&in_flight).acquire_owned().await else { return };
        let (caller, url) = (caller.clone(), Arc::clone(&url));
        let answering = Box::pin(answer(dispatcher.clone(), caller, url, line, outbox.clone()));
        requests.spawn(async move {
            answering.await;
            drop(permit);
        });
    };
    let mut reader = LineReader::new(read, MAX_REQUEST, dispatcher.patience());
    loop {
        let line = tokio::select! {
            line = reader.next_line() => line,
            () = stop.cancelled() => break,
            () = outbox.closed() => break,
        };
        match line {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match protocol_upgrade::Asked::read(&line) {
                None => take_in(line).await,
                Some(mut asked) => {
                    let caller = asked.placed(&dispatcher, caller.clone());
                    if in_flight.available_permits() < MAX_IN_FLIGHT {
                        asked.refuse_amid_others();
                    }
                    let _ = outbox.send(asked.answer()).await;
                    let Ok(language) = asked.language else { continue };
                    let dispatcher = dispatcher.clone();
                    let (outbox, stop) = (outbox.clone(), stop.clone());
                    Box::pin(language.speak(dispatcher, caller, &mut reader, outbox, stop)).await;
                    break;
                }
            },
            Ok(None) => break,
            Err(why) => {
                // A client that is gone needs no answer.
                let _ = outbox.send(jsonrpc::unreadable(Dialect::Hub, &why)).await;
            }
        }
    }
    // Nothing more is heard, and once nobody has anything to say, the line is dead.
    requests.close();
    let gone = gone(reader.get_ref().as_ref());
    drop(outbox);
    tokio::select! {
        () = requests.wait() => return,
        () = gone => hung_up.cancel(),
    }
    requests.wait().await;
}

/// Waits until the client has closed its end. One that has only said its last word still listens.
async fn gone(stream: &UnixStream) {
    // Watched by a handle of its own: the writer must not lose sight of what is cleared here.
    let watched = stream.as_fd().try_clone_to_owned().map(StdUnixStream::from);
    let closed = async {
        let watched = UnixStream::from_std(watched?)?;
        while !watched.ready(Interest::WRITABLE).await?.is_write_closed() {
            let would_block = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _cleared = watched.try_io(Interest::WRITABLE, would_block);
        }
        Ok(())
    };
    if let Err(why) = closed.await {
        let why: io::Error = why;
        // A stream finds out when it next says something.
        tracing::debug!(%why, "cannot watch a connection");
        std::future::pending::<()>().await;
    }
}

async fn answer(
    dispatcher: Dispatcher,
    caller: Principal,
    url: Arc<str>,
    line: String,
    outbox: mpsc::Sender<Vec<u8>>,
) {
    let of = RequestContext::of_hub(caller, &url, None);
    let of = RequestContext { beside: Beside::Metadata, ..of };
    match caught(dispatcher.respond(line, &of)).await {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(Reply::One(text))) | Err(Refused { text, .. })) => {
            let _ = outbox.send(text).await;
        }
        Err(why) => {
            let _ = outbox.send(jsonrpc::unreadable(Dialect::Hub, &why)).await;
        }
        Ok(Ok(Some(Reply::Stream(mut answers)))) => {
            loop {
                let update = tokio::select! {
                    update = answers.next() => update,
                    () = outbox.closed() => return,
                };
                let Some(update) = update else { break };
                if outbox.send(update.text).await.is_err() {
                    return;
                }
            }
            if let Some(end) = answers.end() {
                let _ = outbox.send(end).await;
            }
        }
    }
}

/// Writes what the requests of a connection have to say, a line each, until the client has hung up.
async fn post(
    write: WriteTimeout<OwnedWriteHalf>,
    mut letters: mpsc::Receiver<Vec<u8>>,
    hung_up: CancellationToken,
) {
    let mut write = BufWriter::new(write);
    loop {
        let letter = tokio::select! {
            letter = letters.recv() => letter,
            () = hung_up.cancelled() => return,
        };
        let Some(letter) = letter else { return };
        let written = async {
            write.write_all(&letter).await?;
            write.write_all(b"\n").await?;
            if letters.is_empty() { write.flush().await } else { Ok(()) }
        };
        if written.await.is_err() {
            return;
        }
    }
}
