//! The unix socket: one JSON-RPC request a line, many under way at once, answers in any order by id.

use super::{
    MAX_REQUEST,
    jsonrpc::{self, Response},
};
use crate::hub::Hub;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::FileTypeExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncWriteExt as _, BufWriter},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::{Semaphore, mpsc},
};
use tokio_stream::StreamExt as _;
use tokio_util::{
    codec::{FramedRead, LinesCodec, LinesCodecError},
    sync::CancellationToken,
    task::TaskTracker,
};

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
        /// Where.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
}

impl Unix {
    /// Listens on `path`, for this user only. A socket that a dead hub left behind gives way.
    pub fn bind(path: &Path) -> Result<Self, UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let lock = lock(path).map_err(failed)?.ok_or_else(|| UnixError::Taken(path.to_owned()))?;
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.file_type().is_socket() => fs::remove_file(path).map_err(failed)?,
            Ok(_) => return Err(UnixError::Occupied(path.to_owned())),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(failed(why)),
        }
        // Made for this user only: no moment passes in which others could connect.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        rustix::process::umask(before);
        Ok(Self { listener: listener.map_err(failed)?, path: path.to_owned(), _lock: lock })
    }

    /// Serves until `stop`, then lets the requests that are under way come to their end.
    pub async fn serve(self, hub: Hub, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) if is_own_user(&stream) => {
                    let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
                    let connection = talk(stream, hub.clone(), stop.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Ok(_) => tracing::warn!("another user tried to connect to the hub's socket"),
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

fn is_own_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

/// One connection, until the client hangs up. Requests that are under way then go on without it.
async fn talk(stream: UnixStream, hub: Hub, stop: CancellationToken) {
    let (read, write) = stream.into_split();
    let mut lines = FramedRead::new(read, LinesCodec::new_with_max_length(MAX_REQUEST));
    let (outbox, letters) = mpsc::channel(OUTBOX);
    let requests = TaskTracker::new();
    requests.spawn(post(write, letters));
    let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = stop.cancelled() => break,
        };
        match line {
            Some(Ok(line)) if line.trim().is_empty() => {}
            Some(Ok(line)) => {
                let Ok(permit) = Arc::clone(&in_flight).acquire_owned().await else { break };
                let answering = answer(hub.clone(), line, outbox.clone());
                requests.spawn(async move {
                    answering.await;
                    drop(permit);
                });
            }
            Some(Err(why)) => {
                let refusal = A2aError::new(ErrorKind::InvalidRequest, what_is_wrong(&why));
                // A client that is gone needs no answer.
                let _ = outbox.send(jsonrpc::unreadable(&refusal)).await;
                if matches!(why, LinesCodecError::Io(_)) {
                    break;
                }
            }
            None => break,
        }
    }
    drop(outbox);
    requests.close();
    requests.wait().await;
}

fn what_is_wrong(why: &LinesCodecError) -> String {
    match why {
        LinesCodecError::MaxLineLengthExceeded => {
            format!("the line is longer than {MAX_REQUEST} bytes; it was left out")
        }
        LinesCodecError::Io(why) => format!("the line cannot be read: {why}"),
    }
}

async fn answer(hub: Hub, line: String, outbox: mpsc::Sender<Vec<u8>>) {
    match jsonrpc::respond(&hub, line.as_bytes()).await {
        Response::None => {}
        Response::One(answer) => {
            let _ = outbox.send(answer).await;
        }
        Response::Stream(mut answers) => {
            while let Some(answer) = answers.next().await {
                if outbox.send(answer).await.is_err() {
                    return;
                }
            }
            if let Some(end) = answers.end() {
                let _ = outbox.send(end).await;
            }
        }
    }
}

/// Writes what the requests of a connection have to say, a line each.
async fn post(write: OwnedWriteHalf, mut letters: mpsc::Receiver<Vec<u8>>) {
    let mut write = BufWriter::new(write);
    while let Some(letter) = letters.recv().await {
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
