//! Accepts HTTP connections, identifies the caller of each, applies the limit per principal, and
//! closes connections whose requests do not arrive in time (slow loris).

use super::{
    caller::HttpPeer,
    connection::{HttpConnection, PlainConnection, Secured},
    origin_guard::{CredentialEnd, OriginGuard, unauthenticated},
    reply,
};
use crate::starting::REFUSAL_TIMEOUT;
use a2a_hub_protocol::error::A2aError;
use a2a_hub_rpc::lineage::Lineages;
use a2a_hub_rpc::peer::batch::PeerLookup;
use a2a_hub_rpc::{
    catch_panic::caught,
    connections::{Busy, Connections, OpenConnection},
    jsonrpc::{self, EncodedRefusal},
    write_timeout::WriteTimeout,
};
use a2a_hub_tls::ServerTls;
use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
    http::{HeaderValue, StatusCode, Version, header},
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, future::OptionFuture, stream};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::{
    body::{Body as _, Incoming},
    rt::Executor,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{pending, ready},
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Maximum number of concurrent calls on one HTTP/2 connection. RFC 9113 (6.5.2) recommends at
/// least 100.
const MAX_CALLS: u32 = 100;

/// Maximum number of refused clients that receive the reason at the same time; further ones are
/// disconnected.
const REFUSALS: usize = 8;

/// Grace period of a connection that is to close: in HTTP/2 its client acknowledges the close.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Listener that limits the connections of each principal, and disconnects slow clients.
pub(crate) struct HttpListener {
    listener: TcpListener,
    waiting: VecDeque<TcpStream>,
    connections: Connections,
    refusals: Arc<Semaphore>,
    timeout: Duration,
    peers: PeerLookup,
    tls: Option<ServerTls>,
}

impl HttpListener {
    /// Admits `max` connections at once. The process of the peer determines the holder of a
    /// connection; a token counts only for requests.
    pub(crate) fn new(
        listener: TcpListener,
        max: usize,
        timeout: Duration,
        lineage: Lineages,
    ) -> Self {
        let connections = Connections::new(max, timeout);
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        let (waiting, peers) = (VecDeque::new(), PeerLookup::new(lineage));
        Self { listener, waiting, connections, refusals, timeout, peers, tls: None }
    }

    /// Serves TLS, and nothing else.
    pub(crate) fn with_tls(self, tls: Option<ServerTls>) -> Self {
        Self { tls, ..self }
    }

    /// Serves these connections first.
    pub(crate) fn with_waiting(self, waiting: VecDeque<TcpStream>) -> Self {
        Self { waiting, ..self }
    }

    /// Accepts connections until `stop`, then completes the requests in progress. The guard checks
    /// a request before it is routed.
    pub(crate) async fn serve(
        mut self,
        guard: OriginGuard,
        routes: Router,
        stop: CancellationToken,
    ) {
        let tasks = TaskTracker::new();
        loop {
            let (connection, remote, arrival) = tokio::select! {
                accepted = self.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let caller = HttpPeer::new(connection.local(), remote, self.peers.clone());
            let (connections, refusals) = (self.connections.clone(), Arc::clone(&self.refusals));
            let with = Serving {
                guarded_routes: (guard.clone(), routes.clone()),
                timeout: self.timeout,
                calls: CallTracker(tasks.clone()),
                stop: stop.clone(),
                tls: self.tls.clone(),
            };
            tasks.spawn(async move {
                let admitted = connections.admit(caller.same_user().await);
                drop(arrival);
                match admitted {
                    Ok(open) => with.talk(connection, caller, open).await,
                    Err(why) => {
                        tracing::warn!(%remote, %why, "a connection was refused");
                        let Ok(_permit) = refusals.try_acquire() else { return };
                        let refusal =
                            with.refuse(connection, Arc::from(jsonrpc::quota_error(&why)));
                        // A client that does not read the refusal is disconnected.
                        let _ = timeout(REFUSAL_TIMEOUT, refusal).await;
                    }
                }
            });
        }
        drop(self.listener);
        tasks.close();
        tasks.wait().await;
    }

    async fn accept(&mut self) -> (PlainConnection, SocketAddr, Option<OwnedSemaphorePermit>) {
        loop {
            let arrival = self.connections.arrival().await;
            let waiting = self.waiting.pop_front();
            let waiting = waiting.and_then(|stream| Some((stream.peer_addr().ok()?, stream)));
            let accepted = match waiting {
                Some((remote, stream)) => Ok((stream, remote)),
                None => self.listener.accept().await,
            };
            match accepted {
                Ok((stream, remote)) => {
                    self.connections.accepted();
                    let local = stream.local_addr().ok();
                    // An event must not wait for the client to acknowledge the one before it
                    // (Nagle's algorithm).
                    if let Err(why) = stream.set_nodelay(true) {
                        tracing::debug!(%why, "cannot set TCP_NODELAY");
                    }
                    let stream = WriteTimeout::new(stream, self.timeout);
                    return (PlainConnection::new(stream, local), remote, arrival);
                }
                Err(why) => self.connections.accept_failed(&why).await,
            }
        }
    }
}

/// Shared state for serving a connection.
struct Serving {
    guarded_routes: (OriginGuard, Router),
    timeout: Duration,
    calls: CallTracker,
    stop: CancellationToken,
    tls: Option<ServerTls>,
}

impl Serving {
    /// Serves one connection until it ends or is evicted, or until the certificate of its client
    /// ends.
    async fn talk(self, connection: PlainConnection, caller: HttpPeer, open: OpenConnection) {
        let Self { guarded_routes: (guard, routes), timeout, calls, stop, tls } = self;
        let ends = EndSignals { stop, gives_way: Some(&open) };
        let secured = tokio::select! {
            secured = connection.secure(tls.as_ref(), timeout) => secured,
            () = ends.wait_for_close() => return,
        };
        let Some(Secured { connection, certificate }) = secured else { return };
        let caller = caller.with_certificate(certificate.clone());
        let (routes, requests) = (TowerToHyperService::new(routes), open.requests());
        let answer = service_fn(move |mut request: Request<Incoming>| {
            let (caller, guard, routes) = (caller.clone(), guard.clone(), routes.clone());
            let busy = requests.begin();
            async move {
                name_host(&mut request);
                let response = match guard.admit(&caller, &mut request).await {
                    Ok(()) => {
                        let end = request.extensions().get::<CredentialEnd>().cloned();
                        let end = end.map(|it| (it, request.uri().path().to_owned()));
                        request.extensions_mut().insert(ConnectInfo(caller));
                        // A panic ends only this call, and not the other calls of the connection.
                        let answer = async {
                            let answer = caught(routes.call(request)).await;
                            answer.unwrap_or_else(|why| Ok(broken(&why)))
                        };
                        match end {
                            Some((end, path)) => answer_until_end(answer, end, &path).await?,
                            None => answer.await?,
                        }
                    }
                    Err(refused) => refused,
                };
                Ok::<_, Infallible>(response.map(|body| until_its_end(body, busy)))
            }
        });
        let certificate_end = async {
            match tls.as_ref().zip(certificate.as_ref()) {
                Some((tls, certificate)) => tls.until_ended(certificate).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = speak(connection, answer, timeout, calls, ends) => {}
            () = certificate_end => tracing::info!("closed a connection whose client certificate is denied or expired"),
        }
    }

    /// Answers every request on a refused connection with the refusal, after which the client may
    /// try again.
    async fn refuse(self, connection: PlainConnection, text: Arc<[u8]>) {
        let secured = connection.secure(self.tls.as_ref(), self.timeout).await;
        let Some(Secured { connection, .. }) = secured else { return };
        let answer = service_fn(move |_: Request<Incoming>| {
            let refused = EncodedRefusal { text: text.to_vec(), is_busy: true };
            ready(Ok::<_, Infallible>(hung_up_on(reply::answer(Err(refused), false))))
        });
        let ends = EndSignals { stop: self.stop, gives_way: None };
        speak(connection, answer, self.timeout, self.calls, ends).await;
    }
}

/// Adds the header that closes the connection after this response.
fn hung_up_on(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Wraps a body so that its connection counts as busy until the body is sent or dropped.
fn until_its_end(body: Body, busy: Busy) -> Body {
    Body::new(body.map_err(move |why| {
        let _ = &busy;
        why
    }))
}

/// Answers a caller until the credential ends: from then on nothing is done for it, and its streams
/// break off.
async fn answer_until_end(
    answer: impl Future<Output = Result<Response, Infallible>>,
    CredentialEnd { revoked, why, expiry }: CredentialEnd,
    path: &str,
) -> Result<Response, Infallible> {
    let expiry = expiry.and_then(|(it, why)| Some((Instant::now().checked_add(it)?, why)));
    let mut ended = Box::pin(async move {
        let expired = expiry.map(async |(at, why)| {
            sleep_until(at).await;
            why
        });
        tokio::select! {
            biased;
            () = revoked.cancelled() => why,
            Some(why) = OptionFuture::from(expired) => why,
        }
    });
    let answer = tokio::select! {
        biased;
        why = &mut ended => return Ok(unauthenticated(&why, path)),
        answer = answer => answer?,
    };
    Ok(answer.map(|body| {
        if body.size_hint().exact().is_some() {
            return body;
        }
        let has_ended = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&has_ended);
        let until_end = async move {
            ended.await;
            mark.store(true, Ordering::Relaxed);
        };
        let frames = BodyStream::new(body).take_until(until_end);
        let broken_off = stream::poll_fn(move |_| {
            let error = || Err(axum::Error::new(io::Error::other("the credential has ended")));
            Poll::Ready(has_ended.load(Ordering::Relaxed).then(error))
        });
        Body::new(StreamBody::new(frames.chain(broken_off.take(1))))
    }))
}

/// Reasons of the hub to end a connection.
struct EndSignals<'a> {
    stop: CancellationToken,
    gives_way: Option<&'a OpenConnection>,
}

impl EndSignals<'_> {
    /// Waits until the connection must close as soon as no request is in progress.
    async fn wait_for_close(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.evicted() => {}
        }
    }

    async fn evicted(&self) {
        match self.gives_way {
            Some(open) => {
                let why = open.is_to_close().await;
                tracing::debug!(%why, "a connection is closed");
            }
            None => pending().await,
        }
    }

    /// Waits until a connection that must close has had its grace period, and has no request in
    /// progress. Never completes during shutdown, which waits for all requests.
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

/// Serves one connection to its end. The timeout applies to the head of each request, also the
/// first one. A client that speaks HTTP/2 from its first byte, as gRPC clients do, must answer
/// pings.
async fn speak<A>(
    mut connection: HttpConnection,
    answer: A,
    client_timeout: Duration,
    calls: CallTracker,
    ends: EndSignals<'_>,
) where
    A: Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send + 'static>
        + Send
        + 'static,
{
    // A macro, because both connection types have the same methods and no common trait. Each future
    // is boxed separately: connections live long, and each takes only the memory of its protocol.
    macro_rules! finish {
        ($talk:expr) => {{
            let mut talk = Box::pin($talk);
            tokio::select! {
                over = talk.as_mut() => over,
                () = ends.wait_for_close() => {
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
        http2 = timeout(client_timeout, connection.speaks_http2()) => http2,
        () = ends.wait_for_close() => return,
    };
    let over = match http2 {
        Ok(Ok(false)) => {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(client_timeout);
            finish!(http.serve_connection(TokioIo::new(connection), answer))
        }
        Ok(Ok(true)) => {
            connection.count_http2_frames();
            let mut http = http2::Builder::new(calls);
            http.timer(TokioTimer::new()).max_concurrent_streams(MAX_CALLS);
            http.keep_alive_interval(client_timeout).keep_alive_timeout(client_timeout);
            finish!(http.serve_connection(TokioIo::new(connection), answer))
        }
        Ok(Err(why)) => return tracing::debug!(%why, "a connection broke off"),
        Err(_) => return tracing::debug!("a connection was never used"),
    };
    if let Err(why) = over {
        tracing::debug!(%why, "a connection broke off");
    }
}

/// Response to a request whose handler panicked.
fn broken(why: &A2aError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, why.message.clone()).into_response()
}

/// Adds the authority of an HTTP/2 request as a `Host` header. If the request has a different
/// `Host`, the guard sees both.
pub(crate) fn name_host<B>(request: &mut Request<B>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    let named = request.uri().authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    if let Some(named) = named.filter(|named| request.headers().get(header::HOST) != Some(named)) {
        request.headers_mut().append(header::HOST, named);
    }
}

/// Executor that tracks the calls on HTTP/2 connections.
#[derive(Clone)]
struct CallTracker(TaskTracker);

impl<F> Executor<F> for CallTracker
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, call: F) {
        self.0.spawn(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{http::hub_names::HubNames, tests::Always};
    use a2a_hub_config::token::Tokens;
    use a2a_hub_core::access_control::Principal;
    use a2a_hub_engine::people::NoPerson;
    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::mpsc,
    };

    /// The reason of a refusal is the one for which the credential ended, though it had an expiry.
    #[tokio::test(start_paused = true)]
    async fn revoked_credential_is_not_reported_as_expired() {
        let refused = async |revoked: bool, expires_in: Duration| {
            let end = CredentialEnd {
                revoked: CancellationToken::new(),
                why: NoPerson::Unknown.into(),
                expiry: Some((expires_in, NoPerson::Expired.into())),
            };
            if revoked {
                end.revoked.cancel();
            }
            let answer = pending::<Result<Response, Infallible>>();
            let refused = answer_until_end(answer, end, "/").await.unwrap();
            let body = axum::body::to_bytes(refused.into_body(), 1 << 10).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        let revoked = refused(true, Duration::from_hours(1)).await;
        assert!(revoked.contains("was revoked") && !revoked.contains("has expired"), "{revoked}");
        let expired = refused(false, Duration::from_secs(1)).await;
        assert!(expired.contains("has expired"), "{expired}");
        let both = refused(true, Duration::ZERO).await;
        assert!(both.contains("was revoked"), "{both}");
    }

    /// Server with `most` connections whose callers all have this principal. The route `/hang`
    /// never answers.
    struct Stand {
        address: SocketAddr,
        /// Receives a value for each started request to `/hang`.
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
            let guard = OriginGuard::new(
                HubNames::new(address, &[], None),
                tokens,
                Arc::default(),
                Arc::default(),
            );
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

        /// Opens a connection with a request in progress.
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

    /// Reads from the server until the connection ends or this word arrives.
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
            // The first connection may be in use again.
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
