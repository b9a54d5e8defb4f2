//! Where HTTP connections come in: so many at once, each with what can be known of its other end, and with a deadline for
//! what it begins (slow loris).

use super::{caller::Caller, http2_frames::FrameCounter, origin_guard::OriginGuard};
use crate::{
    peer::{batch::Peers, identity::Lineages},
    rpc::{catch_panic::caught, write_timeout::WriteTimeout},
};
use a2a_hub_protocol::error::A2aError;
use axum::{
    Router,
    extract::{ConnectInfo, Request},
    http::{HeaderValue, StatusCode, Version, header},
    response::{IntoResponse as _, Response},
};
use hyper::{
    body::Incoming,
    rt::Executor,
    server::conn::{http1, http2},
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many calls a client of HTTP/2 may make at once on one connection. As RFC 9113 (6.5.2) would have it, at least 100.
const MAX_CALLS: u32 = 100;

/// What HTTP/2 begins with, which is no method of HTTP/1 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait when the system has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// A listener that counts who is in, and keeps nobody in who dawdles.
pub(crate) struct HttpListener {
    listener: TcpListener,
    room: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    most: usize,
    is_full_told: AtomicBool,
    patience: Duration,
    peers: Peers,
}

impl HttpListener {
    /// Lets in `most` connections at once, each of which costs some ten kilobytes; others wait with the system until one is over. Half of
    /// them may be of others than the hub's own user: who may not even ask must not keep that user out.
    pub(crate) fn new(
        listener: TcpListener,
        most: usize,
        patience: Duration,
        lineage: Lineages,
    ) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        let (room, strangers) =
            (Arc::new(Semaphore::new(most)), Arc::new(Semaphore::new(most / 2)));
        let (is_full_told, peers) = (AtomicBool::new(false), Peers::new(lineage));
        Self { listener, room, strangers, most, is_full_told, patience, peers }
    }

    /// Lets connections in until `stop`, then lets the requests that are under way come to their end. The guard sees a request before it is routed.
    pub(crate) async fn serve(self, guard: OriginGuard, routes: Router, stop: CancellationToken) {
        let connections = TaskTracker::new();
        loop {
            let (connection, remote) = tokio::select! {
                accepted = self.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let caller = Caller::new(connection.local, remote, self.peers.clone());
            let (patience, calls) = (self.patience, Calls(connections.clone()));
            let (behind, strangers) = ((guard.clone(), routes.clone()), self.strangers.clone());
            let stop = stop.clone();
            connections.spawn(async move {
                match place(&caller, strangers).await {
                    Ok(_place) => talk(connection, caller, behind, patience, calls, stop).await,
                    Err(_) => tracing::debug!(%remote, "other users have too many connections"),
                }
            });
        }
        drop(self.listener);
        connections.close();
        connections.wait().await;
    }

    /// Room for one more connection. That there is none is told in the log: once, until half of the room is free again.
    async fn room(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
            if self.room.available_permits() > self.most / 2 {
                self.is_full_told.store(false, Relaxed);
            }
            return Some(permit);
        }
        if !self.is_full_told.swap(true, Relaxed) {
            tracing::warn!(
                connections = self.most,
                "all connections are taken: who connects waits until one is over; end some, or raise `max_streams`"
            );
        }
        // The room is never closed.
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    async fn accept(&self) -> (Connection, SocketAddr) {
        loop {
            let permit = self.room().await;
            match self.listener.accept().await {
                Ok((stream, remote)) => {
                    let local = stream.local_addr().ok();
                    // An event must not wait for the client to acknowledge the one before it.
                    if let Err(why) = stream.set_nodelay(true) {
                        tracing::debug!(%why, "small answers may be late");
                    }
                    let stream = WriteTimeout::new(stream, self.patience);
                    return (Connection { stream, local, frames: None, _permit: permit }, remote);
                }
                Err(why) => {
                    tracing::warn!(%why, "cannot accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }
}

/// The place that a connection takes of those for other users, if it is one's; there may be none left.
async fn place(
    caller: &Caller,
    strangers: Arc<Semaphore>,
) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
    match caller.own_user().await {
        Some(_) => Ok(None),
        None => strangers.try_acquire_owned().map(Some),
    }
}

/// One connection, until it is over. Each request's head must be there in time, and the first of them soon. A client that
/// speaks HTTP/2 from its first byte on, as those of gRPC do, must answer when it is asked whether it is still there.
async fn talk(
    mut connection: Connection,
    caller: Caller,
    (guard, routes): (OriginGuard, Router),
    patience: Duration,
    calls: Calls,
    stop: CancellationToken,
) {
    let routes = TowerToHyperService::new(routes);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        let (caller, guard, routes) = (caller.clone(), guard.clone(), routes.clone());
        async move {
            name_host(&mut request);
            if let Err(refused) = guard.admit(&caller, &mut request).await {
                return Ok(refused);
            }
            request.extensions_mut().insert(ConnectInfo(caller));
            // One that panics costs itself, and not the other calls of the connection.
            caught(routes.call(request)).await.unwrap_or_else(|why| Ok(broken(&why)))
        }
    });
    // Both have the same methods, and no trait in common. A connection is open for long: it takes up what its own kind needs.
    macro_rules! finish {
        ($talk:expr) => {{
            let mut talk = Box::pin($talk);
            tokio::select! {
                over = talk.as_mut() => over,
                () = stop.cancelled() => {
                    talk.as_mut().graceful_shutdown();
                    talk.await
                }
            }
        }};
    }
    let http2 = tokio::select! {
        http2 = timeout(patience, connection.speaks_http2()) => http2,
        () = stop.cancelled() => return,
    };
    let over = match http2 {
        Ok(Ok(false)) => {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(patience);
            finish!(http.serve_connection(TokioIo::new(connection), answer))
        }
        Ok(Ok(true)) => {
            connection.frames = Some(FrameCounter::new(PREFACE.len()));
            let mut http = http2::Builder::new(calls);
            http.timer(TokioTimer::new()).max_concurrent_streams(MAX_CALLS);
            http.keep_alive_interval(patience).keep_alive_timeout(patience);
            finish!(http.serve_connection(TokioIo::new(connection), answer))
        }
        Ok(Err(why)) => return tracing::debug!(%why, "a connection broke off"),
        Err(_) => return tracing::debug!("a connection was never used"),
    };
    if let Err(why) = over {
        tracing::debug!(%why, "a connection broke off");
    }
}

/// The answer to a request that ended with a panic.
fn broken(why: &A2aError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, why.message.clone()).into_response()
}

/// What HTTP/2 calls its authority is a `Host` by another name. With both, the guard sees two.
fn name_host(request: &mut Request<Incoming>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    let named = request.uri().authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    if let Some(named) = named.filter(|named| request.headers().get(header::HOST) != Some(named)) {
        request.headers_mut().append(header::HOST, named);
    }
}

/// The calls that are under way on HTTP/2 connections, counted with these.
#[derive(Clone)]
struct Calls(TaskTracker);

impl<F> Executor<F> for Calls
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, call: F) {
        self.0.spawn(call);
    }
}

/// A connection, which gives back its room when it is over.
pub(crate) struct Connection {
    stream: WriteTimeout<TcpStream>,
    local: Option<SocketAddr>,
    /// Those of HTTP/2, which are counted.
    frames: Option<FrameCounter>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Whether its client speaks HTTP/2, by what it sends first; nothing is taken of that.
    async fn speaks_http2(&self) -> io::Result<bool> {
        let mut first = [0; PREFACE.len()];
        loop {
            let length = self.stream.get_ref().peek(&mut first).await?;
            if length == 0 || length == PREFACE.len() || !PREFACE.starts_with(&first[..length]) {
                return Ok(length > 0 && first == PREFACE);
            }
            // The rest is on its way.
            tokio::time::sleep(BREATH).await;
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, into));
        let bytes = into.filled().get(before..).unwrap_or_default();
        let counted = self.frames.as_mut().map_or(Ok(()), |frames| frames.came(bytes));
        if let Err(flood) = counted {
            tracing::warn!(%flood, "a connection was cut off");
            return Poll::Ready(Err(io::Error::other(flood)));
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        if let (Ok(length), Some(frames)) = (&written, &mut self.frames) {
            frames.went(&bytes[..*length]);
        }
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bytes));
        if let (Ok(length), Some(frames)) = (&written, &mut self.frames) {
            let mut left = *length;
            for piece in bytes {
                let (sent, _) = piece.split_at(left.min(piece.len()));
                frames.went(sent);
                left -= sent.len();
            }
        }
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::identity::Always;
    use a2a_hub_core::access_control::Principal;
    use std::pin::pin;

    #[tokio::test]
    async fn who_connects_waits_while_all_connections_are_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nobody = Arc::new(Always(None));
        let listener = HttpListener::new(listener, 2, Duration::from_secs(1), nobody);
        let both = (listener.room().await, listener.room().await);
        let mut third = pin!(listener.room());
        assert!(futures::poll!(third.as_mut()).is_pending());
        assert!(listener.is_full_told.load(Relaxed));
        drop(both);
        assert!(third.await.is_some(), "there is room again");
        assert!(listener.room().await.is_some());
    }

    #[tokio::test]
    async fn other_users_cannot_take_all_the_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let client = TcpStream::connect(here).await.unwrap();
        let (peers, remote) =
            (Peers::new(Arc::new(Always(Some(Principal::Operator)))), client.local_addr().unwrap());
        let own = Caller::new(Some(here), remote, peers.clone());
        // Whose connection cannot be found is nobody's whom the hub knows.
        let other = Caller::new(None, remote, peers);
        let strangers = Arc::new(Semaphore::new(1));
        let first = place(&other, strangers.clone()).await.unwrap();
        assert!(first.is_some());
        assert!(place(&other, strangers.clone()).await.is_err(), "there is no more");
        assert!(place(&own, strangers.clone()).await.unwrap().is_none(), "it takes none of theirs");
        drop(first);
        assert!(place(&other, strangers).await.is_ok(), "it was given back");
    }
}
