//! Where HTTP connections come in: each with what can be known of its other end, as many of each principal as it may have, and with a
//! deadline for what it begins (slow loris).

use super::{caller::Caller, http2_frames::FrameCounter, origin_guard::OriginGuard, reply};
use crate::{
    peer::{batch::Peers, identity::Lineages},
    rpc::{
        catch_panic::caught,
        connections::{Busy, Connections, OpenConnection},
        jsonrpc::{self, Refused},
        write_timeout::WriteTimeout,
    },
};
use a2a_hub_protocol::error::A2aError;
use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
    http::{HeaderValue, StatusCode, Version, header},
    response::{IntoResponse as _, Response},
};
use http_body_util::BodyExt as _;
use hyper::{
    body::Incoming,
    rt::Executor,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    convert::Infallible,
    future::{pending, ready},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many calls a client of HTTP/2 may make at once on one connection. As RFC 9113 (6.5.2) would have it, at least 100.
const MAX_CALLS: u32 = 100;

/// What HTTP/2 begins with, which is no method of HTTP/1 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait for the rest of what tells HTTP/2 from HTTP/1.
const PREFACE_WAIT: Duration = Duration::from_millis(100);

/// How many clients at once are told why they are not let in; the others are hung up on.
const REFUSALS: usize = 8;

/// How long one of them may take to hear it.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);

/// How long a connection that gives way may take to hear so: its client acknowledges it in HTTP/2.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A listener that lets each principal have its share of the connections, and keeps nobody in who dawdles.
pub(crate) struct HttpListener {
    listener: TcpListener,
    connections: Connections,
    refusals: Arc<Semaphore>,
    patience: Duration,
    peers: Peers,
}

impl HttpListener {
    /// Lets in `most` connections at once. Whose one is, the process at its other end tells; a token counts for requests.
    pub(crate) fn new(
        listener: TcpListener,
        most: usize,
        patience: Duration,
        lineage: Lineages,
    ) -> Self {
        let connections = Connections::new(most, patience);
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        Self { listener, connections, refusals, patience, peers: Peers::new(lineage) }
    }

    /// Lets connections in until `stop`, then lets the requests that are under way come to their end. The guard sees a request before it is routed.
    pub(crate) async fn serve(self, guard: OriginGuard, routes: Router, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        loop {
            let (connection, remote, arrival) = tokio::select! {
                accepted = self.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let caller = Caller::new(connection.local, remote, self.peers.clone());
            let (connections, refusals) = (self.connections.clone(), Arc::clone(&self.refusals));
            let with = Serving {
                behind: (guard.clone(), routes.clone()),
                patience: self.patience,
                calls: Calls(tasks.clone()),
                stop: stop.clone(),
            };
            tasks.spawn(async move {
                let admitted = connections.admit(caller.own_user().await);
                drop(arrival);
                match admitted {
                    Ok(open) => with.talk(connection, caller, open).await,
                    Err(why) => {
                        tracing::warn!(%remote, %why, "a connection was refused");
                        let Ok(_permit) = refusals.try_acquire() else { return };
                        let refusal = with.refuse(connection, Arc::from(jsonrpc::no_room(&why)));
                        // Whoever does not listen is hung up on.
                        let _ = timeout(REFUSAL_WAIT, refusal).await;
                    }
                }
            });
        }
        drop(self.listener);
        tasks.close();
        tasks.wait().await;
    }

    async fn accept(&self) -> (Connection, SocketAddr, Option<OwnedSemaphorePermit>) {
        loop {
            let arrival = self.connections.arrival().await;
            match self.listener.accept().await {
                Ok((stream, remote)) => {
                    self.connections.accepted();
                    let local = stream.local_addr().ok();
                    // An event must not wait for the client to acknowledge the one before it.
                    if let Err(why) = stream.set_nodelay(true) {
                        tracing::debug!(%why, "small answers may be late");
                    }
                    let stream = WriteTimeout::new(stream, self.patience);
                    return (Connection { stream, local, frames: None }, remote, arrival);
                }
                Err(why) => self.connections.accept_failed(&why).await,
            }
        }
    }
}

/// What connections are served with.
struct Serving {
    behind: (OriginGuard, Router),
    patience: Duration,
    calls: Calls,
    stop: CancellationToken,
}

impl Serving {
    /// Serves one connection until it is over, or gives way to another.
    async fn talk(self, connection: Connection, caller: Caller, open: OpenConnection) {
        let Self { behind: (guard, routes), patience, calls, stop } = self;
        let (routes, requests) = (TowerToHyperService::new(routes), open.requests());
        let answer = service_fn(move |mut request: Request<Incoming>| {
            let (caller, guard, routes) = (caller.clone(), guard.clone(), routes.clone());
            let busy = requests.begin();
            async move {
                name_host(&mut request);
                let response = match guard.admit(&caller, &mut request).await {
                    Ok(()) => {
                        request.extensions_mut().insert(ConnectInfo(caller));
                        // One that panics costs itself, and not the other calls of the connection.
                        caught(routes.call(request)).await.unwrap_or_else(|why| Ok(broken(&why)))?
                    }
                    Err(refused) => refused,
                };
                Ok::<_, Infallible>(response.map(|body| until_its_end(body, busy)))
            }
        });
        let ends = Ends { stop, gives_way: Some(&open) };
        speak(connection, answer, patience, calls, ends).await;
    }

    /// Answers whatever a client asks that was not let in: it may come again.
    async fn refuse(self, connection: Connection, text: Arc<[u8]>) {
        let answer = service_fn(move |_: Request<Incoming>| {
            let refused = Refused { text: text.to_vec(), is_busy: true };
            ready(Ok::<_, Infallible>(hung_up_on(reply::answer(Err(refused), false))))
        });
        let ends = Ends { stop: self.stop, gives_way: None };
        speak(connection, answer, self.patience, self.calls, ends).await;
    }
}

/// The same response, after which the connection is closed.
fn hung_up_on(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The same body, which keeps its connection busy until it is sent, or given up.
fn until_its_end(body: Body, busy: Busy) -> Body {
    Body::new(body.map_err(move |why| {
        let _ = &busy;
        why
    }))
}

/// What ends a connection besides its client.
struct Ends<'a> {
    stop: CancellationToken,
    gives_way: Option<&'a OpenConnection>,
}

impl Ends<'_> {
    /// The connection is to be closed as soon as no request is under way.
    async fn told(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.given_way() => {}
        }
    }

    async fn given_way(&self) {
        match self.gives_way {
            Some(open) => {
                let why = open.is_to_close().await;
                tracing::debug!(%why, "a connection is closed");
            }
            None => pending().await,
        }
    }

    /// A connection that was told to close did not within a while, and has no request under way.
    async fn overdue(&self) {
        let Some(open) = self.gives_way.filter(|_| !self.stop.is_cancelled()) else {
            return pending().await;
        };
        loop {
            sleep(CLOSE_WAIT).await;
            if open.is_idle() {
                return;
            }
        }
    }
}

/// One connection, until it is over. Each request's head must be there in time, and the first of them soon. A client that
/// speaks HTTP/2 from its first byte on, as those of gRPC do, must answer when it is asked whether it is still there.
async fn speak<A>(
    mut connection: Connection,
    answer: A,
    patience: Duration,
    calls: Calls,
    ends: Ends<'_>,
) where
    A: Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send + 'static>
        + Send
        + 'static,
{
    // Both have the same methods, and no trait in common. A connection is open for long: it takes up what its own kind needs.
    macro_rules! finish {
        ($talk:expr) => {{
            let mut talk = Box::pin($talk);
            tokio::select! {
                over = talk.as_mut() => over,
                () = ends.told() => {
                    talk.as_mut().graceful_shutdown();
                    tokio::select! {
                        over = talk => over,
                        () = ends.overdue() => return,
                    }
                }
            }
        }};
    }
    let http2 = tokio::select! {
        http2 = timeout(patience, connection.speaks_http2()) => http2,
        () = ends.told() => return,
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

/// A connection as bytes.
pub(crate) struct Connection {
    stream: WriteTimeout<TcpStream>,
    local: Option<SocketAddr>,
    /// Those of HTTP/2, which are counted.
    frames: Option<FrameCounter>,
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
            sleep(PREFACE_WAIT).await;
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
    use a2a_hub_engine::token::Tokens;
    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::mpsc,
    };

    /// A server of `most` connections to whoever the kernel tells, whose route `/hang` never answers.
    struct Stand {
        address: SocketAddr,
        /// Told of each request to `/hang` that has begun.
        begun: mpsc::Receiver<()>,
        stop: CancellationToken,
        _server: tokio::task::JoinSet<()>,
    }

    impl Stand {
        async fn new(most: usize, principal: Option<Principal>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let patience = Duration::from_secs(30);
            let listener = HttpListener::new(listener, most, patience, Arc::new(Always(principal)));
            let (begins, begun) = mpsc::channel(8);
            let routes = Router::new()
                .route(
                    "/hang",
                    get(async move || {
                        begins.send(()).await.unwrap();
                        pending::<&str>().await
                    }),
                )
                .route("/", get(|| ready("served")));
            let (stop, mut server) = (CancellationToken::new(), tokio::task::JoinSet::new());
            let dir = tempfile::tempdir().unwrap();
            let tokens = Tokens::open(dir.path(), std::iter::empty()).unwrap();
            let guard = OriginGuard::new(address, None, tokens);
            server.spawn(listener.serve(guard, routes, stop.clone()));
            Self { address, begun, stop, _server: server }
        }

        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }

        async fn ask(&self, to: &mut TcpStream, line: &str) {
            let request = format!("{line} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
            to.write_all(request.as_bytes()).await.unwrap();
        }

        /// A connection with a request that is under way.
        async fn busy(&mut self) -> TcpStream {
            let mut busy = self.connect().await;
            self.ask(&mut busy, "GET /hang").await;
            self.begun.recv().await.unwrap();
            busy
        }
    }

    impl Drop for Stand {
        fn drop(&mut self) {
            self.stop.cancel();
        }
    }

    /// What a client hears within a while, up to the end or to this word.
    async fn hear(from: &mut TcpStream, word: &str) -> String {
        let mut heard = Vec::new();
        let hear = async {
            let mut piece = [0; 1_024];
            while let Ok(length @ 1..) = from.read(&mut piece).await {
                heard.extend_from_slice(&piece[..length]);
                if String::from_utf8_lossy(&heard).contains(word) {
                    break;
                }
            }
        };
        timeout(Duration::from_secs(20), hear).await.unwrap();
        String::from_utf8(heard).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn newcomer_among_busy_connections_gets_503() {
        let mut stand = Stand::new(2, Some(Principal::Operator)).await;
        let busy = [stand.busy().await, stand.busy().await];
        let mut third = stand.connect().await;
        stand.ask(&mut third, "GET /").await;
        let told = hear(&mut third, "\"message\"").await;
        let head = told.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 503") && head.contains("retry-after: 1"), "{told}");
        assert!(told.contains("the hub serves 2 connections already"), "{told}");
        drop(busy);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn idle_connection_of_strangers_gives_way() {
        let stand = Stand::new(4, None).await;
        let mut idle = stand.connect().await;
        stand.ask(&mut idle, "GET /").await;
        assert!(hear(&mut idle, "hub serves its own user").await.starts_with("HTTP/1.1 4"));
        loop {
            let mut next = stand.connect().await;
            stand.ask(&mut next, "GET /").await;
            let told = hear(&mut next, "\"message\"").await;
            if told.starts_with("HTTP/1.1 4") {
                break;
            }
            // The first one may be answered again soon.
            assert!(told.starts_with("HTTP/1.1 503"), "{told}");
        }
        assert_eq!(hear(&mut idle, "no such word").await, "", "it was closed");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_idle_connections_keep_nobody_out() {
        let stand = Stand::new(4, Some(Principal::Operator)).await;
        let mut idle = Vec::new();
        for _ in 0..40 {
            idle.push(stand.connect().await);
        }
        loop {
            let mut client = stand.connect().await;
            stand.ask(&mut client, "GET /").await;
            let told = hear(&mut client, "served").await;
            if told.ends_with("served") {
                break;
            }
            assert!(told.is_empty() || told.starts_with("HTTP/1.1 503"), "{told}");
        }
    }
}
