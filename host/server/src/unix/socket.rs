//! Serves the unix socket. Each line is one JSON-RPC request; many requests run concurrently, and
//! answers come in any order, matched by id. A connection can switch to another protocol on
//! request.

use super::{protocol_upgrade, starting::react};
use crate::{
    MAX_REQUEST,
    http::router::BACKLOG,
    starting::{self, StartProgress},
};
use a2a_hub_core::{access_control::Principal, scheduling::connection_quota::QuotaReached};
use a2a_hub_engine::Reply;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    binding::jsonrpc::ParamsSource,
    dialect::Dialect,
    error::{A2aError, ErrorKind},
};
use a2a_hub_rpc::{
    catch_panic::caught,
    connections::{Connections, OpenConnection, Requests},
    dispatcher::{Dispatcher, RequestContext},
    jsonrpc::{self, EncodedRefusal},
    line_reader::LineReader,
    lineage::Lineages,
    peer::identity,
    write_timeout::WriteTimeout,
};
use rustix::fs::{Access, FlockOperation, Mode, OFlags};
use std::{
    collections::VecDeque,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileTypeExt as _, net::UnixStream as StdUnixStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    io::{AsyncWriteExt as _, BufWriter, Interest},
    net::{UnixListener, UnixSocket, UnixStream, unix::OwnedWriteHalf},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Maximum number of concurrent requests on a connection. At the limit, the next line is read once
/// a request is done.
const MAX_IN_FLIGHT: usize = 256;

/// Number of lines that wait to be written to a connection. If its client does not read, answers
/// wait for capacity.
const OUTBOX: usize = 64;

/// A bound unix socket. Dropping it removes its file.
pub struct Unix {
    listener: UnixListener,
    /// Connections from before the start, which are served first.
    waiting: VecDeque<UnixStream>,
    path: PathBuf,
    _lock: OwnedFd,
}

/// Failure to bind the socket.
#[derive(Debug, thiserror::Error)]
pub enum UnixError {
    /// Another hub listens on the path.
    #[error(
        "listen on {0}: another hub does; stop it with `a2a-hub stop`, or choose another `--socket`"
    )]
    Taken(PathBuf),
    /// The path is not a socket.
    #[error(
        "listen on {0}: there is a file that is not a socket; move it away, or choose another `--socket`"
    )]
    Occupied(PathBuf),
    /// The system refuses.
    #[error("listen on {path}: {why}")]
    Io {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl Unix {
    /// Listens on `path`, for this user only. Replaces the socket file of a hub that was killed.
    pub fn bind(path: &Path) -> Result<Self, UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let lock = Self::claim(path)?;
        if fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path).map_err(failed)?;
        }
        // Created for this user only, so that other users can connect at no moment.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let socket = UnixSocket::new_stream().and_then(|socket| {
            socket.bind(path)?;
            socket.listen(BACKLOG)
        });
        rustix::process::umask(before);
        let listener = socket.map_err(failed)?;
        Ok(Self { listener, waiting: VecDeque::new(), path: path.to_owned(), _lock: lock })
    }

    /// Checks that `path` can be listened on. Creates the lock file beside it, which stays.
    pub fn check(path: &Path) -> Result<(), UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let _lock = Self::claim(path)?;
        std::os::unix::net::SocketAddr::from_pathname(path).map_err(failed)?;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let may = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK);
        may.map_err(|why| failed(why.into()))
    }

    /// Locks `path`, which must be free or a socket file that a hub left behind.
    fn claim(path: &Path) -> Result<OwnedFd, UnixError> {
        let failed = |why| UnixError::Io { path: path.to_owned(), why };
        let lock = lock(path).map_err(failed)?.ok_or_else(|| UnixError::Taken(path.to_owned()))?;
        match fs::symlink_metadata(path) {
            Ok(meta) if !meta.file_type().is_socket() => Err(UnixError::Occupied(path.to_owned())),
            Ok(_) => Ok(lock),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(lock),
            Err(why) => Err(failed(why)),
        }
    }

    /// Answers status requests until `started`; all other requests wait until then.
    pub async fn serve_until_started(
        &mut self,
        progress: StartProgress,
        started: CancellationToken,
    ) {
        let (listener, reaction) = (&self.listener, move |bytes: &[u8]| react(bytes, &progress()));
        let accept = async || Ok(listener.accept().await?.0);
        self.waiting = starting::accept_until_started(accept, reaction, started).await.into();
    }

    /// Serves until `stop`, then completes the requests in progress.
    pub async fn serve(mut self, dispatcher: Dispatcher, stop: CancellationToken) {
        let url: Arc<str> = dispatcher.socket_url().unwrap_or_default().into();
        let tasks = TaskTracker::new();
        let max = dispatcher.connection_budget().socket;
        let connections = Connections::new(max, dispatcher.timeout());
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &mut self.waiting, &connections) => accepted,
                () = stop.cancelled() => break,
            };
            let (stream, arrival) = match accepted {
                Ok(accepted) => accepted,
                Err(why) => {
                    connections.accept_failed(&why).await;
                    continue;
                }
            };
            connections.accepted();
            let (dispatcher, url) = (dispatcher.clone(), Arc::clone(&url));
            let (connections, stop) = (connections.clone(), stop.clone());
            tasks.spawn(async move {
                let Some((stream, Some(caller))) = look_up(stream, dispatcher.lineage()).await
                else {
                    tracing::warn!("another user tried to connect to the hub's socket");
                    return;
                };
                let admitted = connections.admit(Some(&caller));
                drop(arrival);
                match admitted {
                    Ok(open) => talk(stream, open, caller, dispatcher, url, stop).await,
                    Err(why) => refuse(&stream, &why),
                }
            });
        }
        tasks.close();
        tasks.wait().await;
    }
}

impl Drop for Unix {
    fn drop(&mut self) {
        // The file may have been removed by another program.
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes the lock beside the socket; returns none if another process holds it. The file stays,
/// because removing it would race.
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

/// Accepts the next connection, with a permit for the lookup of its caller.
async fn accept(
    listener: &UnixListener,
    waiting: &mut VecDeque<UnixStream>,
    connections: &Connections,
) -> io::Result<(UnixStream, Option<OwnedSemaphorePermit>)> {
    let arrival = connections.arrival().await;
    if let Some(stream) = waiting.pop_front() {
        return Ok((stream, arrival));
    }
    Ok((listener.accept().await?.0, arrival))
}

/// Identifies the caller; none if it is another user. Returns the connection as well, because a
/// copy would take one more descriptor.
async fn look_up(stream: UnixStream, lineage: Lineages) -> Option<(UnixStream, Option<Principal>)> {
    let identify = move || {
        let peer = stream.peer_cred().ok();
        let principal = peer.and_then(|peer| identity::over_unix(&stream, &peer, &lineage));
        (stream, principal)
    };
    run_blocking(identify).await.ok()
}

/// Sends the refusal to a client. One line fits into the buffer of a new connection, so this does
/// not block.
fn refuse(stream: &UnixStream, why: &QuotaReached) {
    tracing::warn!(%why, "a connection to the socket was refused");
    // A client that is gone needs no answer.
    let _ = stream.try_write(&with_line_end(jsonrpc::quota_error(why)));
}

fn with_line_end(mut text: Vec<u8>) -> Vec<u8> {
    text.push(b'\n');
    text
}

/// Serves one connection until the client disconnects, is too slow or stops reading, or the
/// connection is evicted. Its streams end with it; other requests in progress continue.
async fn talk(
    stream: UnixStream,
    open: OpenConnection,
    caller: Principal,
    dispatcher: Dispatcher,
    hub_url: Arc<str>,
    stop: CancellationToken,
) {
    let (read, write) = stream.into_split();
    let (outbox, letters) = mpsc::channel(OUTBOX);
    let requests = TaskTracker::new();
    let hung_up = CancellationToken::new();
    let under_way = open.requests();
    let write = WriteTimeout::new(write, dispatcher.timeout());
    requests.spawn(post(write, letters, under_way.clone(), hung_up.clone()));
    let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
    let dispatch_line = async |line: String| {
        let Ok(permit) = Arc::clone(&in_flight).acquire_owned().await else { return };
        let busy = under_way.begin();
        let (caller, url) = (caller.clone(), Arc::clone(&hub_url));
        let answering = Box::pin(answer(dispatcher.clone(), caller, url, line, outbox.clone()));
        requests.spawn(async move {
            answering.await;
            drop((permit, busy));
        });
    };
    let mut reader = LineReader::new(read, MAX_REQUEST, dispatcher.timeout());
    loop {
        let line = tokio::select! {
            line = reader.next_line() => line,
            () = stop.cancelled() => break,
            () = outbox.closed() => break,
            why = open.is_to_close() => {
                let why = A2aError::new(ErrorKind::AgentUnavailable, why.to_string());
                let _ = outbox.send(jsonrpc::unreadable(Dialect::Hub, &why)).await;
                break;
            }
        };
        match line {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match protocol_upgrade::SpeakRequest::read(&line) {
                None => dispatch_line(line).await,
                Some(mut request) => {
                    let caller = request.placed(&dispatcher, caller.clone());
                    if in_flight.available_permits() < MAX_IN_FLIGHT {
                        request.refuse_amid_others();
                    }
                    // A session may be silent for long, and does not count as idle.
                    let _busy = under_way.begin();
                    let _ = outbox.send(request.answer()).await;
                    let Ok(language) = request.language else { continue };
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
    // No more input follows. The connection closes once all requests have answered, or the client
    // is gone.
    requests.close();
    let disconnect = wait_for_disconnect(reader.get_ref().as_ref());
    drop(outbox);
    tokio::select! {
        () = requests.wait() => return,
        () = disconnect => hung_up.cancel(),
    }
    requests.wait().await;
}

/// Waits until the client has closed its end. A client that only shut down its writing side still
/// reads.
async fn wait_for_disconnect(stream: &UnixStream) {
    // Watched by a separate handle, because clearing the readiness here must not hide it from the
    // writer.
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
        // A stream detects the disconnect at its next write.
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
    let of = RequestContext { source: ParamsSource::Metadata, ..of };
    match caught(dispatcher.respond(line, &of)).await {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(Reply::One(text))) | Err(EncodedRefusal { text, .. })) => {
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

/// Writes the answers of a connection, one on each line, until the client is gone. The connection
/// counts as busy until a line is written: an idle one may be closed at once, and a slow reader
/// would lose its answer.
async fn post(
    write: WriteTimeout<OwnedWriteHalf>,
    mut letters: mpsc::Receiver<Vec<u8>>,
    under_way: Requests,
    hung_up: CancellationToken,
) {
    let mut write = BufWriter::new(write);
    loop {
        let letter = tokio::select! {
            letter = letters.recv() => letter,
            () = hung_up.cancelled() => return,
        };
        let Some(letter) = letter else { return };
        let _busy = under_way.begin();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn unread_answer_keeps_its_connection_busy() {
        let patience = Duration::from_secs(30);
        let open = Connections::new(4, patience).admit(None).unwrap();
        let (mut client, hub) = UnixStream::pair().unwrap();
        let (_read, write) = hub.into_split();
        let (outbox, letters) = mpsc::channel(1);
        let write = WriteTimeout::new(write, patience);
        let writing = post(write, letters, open.requests(), CancellationToken::new());
        let reading = async {
            outbox.send(vec![b'x'; 4 << 20]).await.unwrap();
            drop(outbox);
            client.read_u8().await.unwrap();
            assert!(!open.is_idle(), "most of the answer is not written");
            client.read_to_end(&mut Vec::new()).await.unwrap();
        };
        tokio::join!(writing, reading);
        assert!(open.is_idle());
    }
}
