//! Outgoing requests: HTTP, TLS, and the choice of addresses to dial.

use a2a_hub_core::{push::receiver_policy::Rules, text::duration::Span};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Version};
use http_body_util::Full;
/// Body of a response as it arrives.
pub use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns::Name},
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use std::{
    error::Error,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock},
    task::{Context, Poll},
    time::Duration,
    vec,
};
use tokio::{net::lookup_host, sync::OnceCell, task::spawn_blocking, time::timeout};
use tower_service::Service;

/// Timeout for a connection. The first retransmission of a lost packet takes a second, the next
/// three.
const CONNECT: Duration = Duration::from_secs(5);

/// Time for which an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);

/// Silence on an HTTP/2 connection in use after which it is pinged. gRPC servers close the
/// connections of clients that ping more often than every five minutes.
const PING: Duration = Duration::from_secs(330);

/// Timeout for the answer to a ping.
const PONG: Duration = Duration::from_secs(20);

/// HTTP client that follows no redirects and ignores proxy settings. It speaks HTTP/1.1, and HTTP/2
/// for requests of that version, also without TLS. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outbound {
    lookup: Lookup,
    /// None for the machine's root certificates and no certificate of the client.
    tls: Option<Arc<ClientTls>>,
    /// Created for the first request: loading the machine's root certificates takes as long as the
    /// rest of a start.
    wires: Arc<OnceCell<HttpClients>>,
}

/// Certificates of a client.
#[derive(Debug, Default)]
pub struct ClientTls {
    /// CA certificates of servers; the machine's if empty.
    pub roots: Vec<CertificateDer<'static>>,
    /// Certificate chain and private key that the client shows to servers that ask for one.
    pub identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

#[derive(Debug)]
struct HttpClients {
    http1: HttpClient,
    http2: HttpClient,
}

type HttpClient = Client<HttpsConnector<HttpConnector<Lookup>>, Full<Bytes>>;

/// Error of a request without a response.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The response did not arrive in time.
    #[error("no answer within {}", Span(*.0))]
    Late(Duration),
    /// TLS cannot be set up.
    #[error("set up TLS: {0}")]
    Tls(String),
    /// The rules forbid dialling the host's addresses.
    #[error("{0}")]
    Refused(String),
    /// The connection failed or broke.
    #[error("{}", root(.0))]
    Lost(hyper_util::client::legacy::Error),
}

impl OutboundError {
    /// True if no connection was made, so nothing was sent.
    pub(crate) fn was_not_sent(&self) -> bool {
        matches!(self, Self::Lost(why) if why.is_connect())
    }
}

impl From<hyper_util::client::legacy::Error> for OutboundError {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(why) = cause {
            let inner = why.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            if let Some(HostRefused(why)) = inner.and_then(|inner| inner.downcast_ref()) {
                return Self::Refused(why.clone());
            }
            cause = why.source();
        }
        Self::Lost(error)
    }
}

/// Rule that allows a host with these addresses to be dialled, or returns the reason against it.
pub type Judge = dyn Fn(&str, &[IpAddr]) -> Result<(), String> + Send + Sync;

/// Resolver of a name to addresses.
pub type Resolve = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Resolves a name as this machine does.
pub fn resolve(name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    Box::pin(async move {
        let found = lookup_host((name.as_str(), 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    })
}

impl Outbound {
    /// Dials only addresses that `rules` allow, for URLs that a client chose. The caller must check
    /// an IP address in the URL itself, since it is never resolved.
    pub fn guarded(rules: Arc<Rules>) -> Self {
        let judge = move |host: &str, addresses: &[IpAddr]| {
            rules.dial(host, addresses).map_err(|why| why.to_string())
        };
        Self::judged(Arc::new(judge), Arc::new(resolve))
    }

    /// Dials by another rule, with another resolver. Connections are pooled only among clones of
    /// this value, so a connection that another rule allowed is never used.
    pub fn judged(judge: Arc<Judge>, resolve: Arc<Resolve>) -> Self {
        Self::new(Lookup { judge: Some(judge), resolve })
    }

    /// Dials any address, for URLs that the operator chose.
    pub fn unguarded() -> Self {
        Self::new(Lookup { judge: None, resolve: Arc::new(resolve) })
    }

    fn new(lookup: Lookup) -> Self {
        Self { lookup, tls: None, wires: Arc::default() }
    }

    /// Trusts these CA certificates, and shows this certificate. Connections are not shared with
    /// those of the value before.
    #[must_use]
    pub fn with_tls(self, tls: ClientTls) -> Self {
        Self { lookup: self.lookup, tls: Some(Arc::new(tls)), wires: Arc::default() }
    }

    /// Sends a request, and waits for the head of the response until the timeout. The body follows
    /// later.
    pub async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        request_timeout: Duration,
    ) -> Result<Response<Incoming>, OutboundError> {
        let HttpClients { http1, http2 } = self.wires().await?;
        let client = if request.version() == Version::HTTP_2 { http2 } else { http1 };
        let answer = timeout(request_timeout, client.request(request)).await;
        Ok(answer.map_err(|_| OutboundError::Late(request_timeout))??)
    }

    async fn wires(&self) -> Result<&HttpClients, OutboundError> {
        let create = || async {
            let (lookup, tls) = (self.lookup.clone(), self.tls.clone());
            let clients = spawn_blocking(move || HttpClients::new(lookup, tls.as_deref())).await;
            // The panic itself is in the log.
            let broke = |_| OutboundError::Tls("internal error; see the hub's log".to_owned());
            let clients = clients.map_err(broke)?;
            clients.map_err(|why| OutboundError::Tls(why.to_string()))
        };
        self.wires.get_or_try_init(create).await
    }
}

impl HttpClients {
    fn new(lookup: Lookup, tls: Option<&ClientTls>) -> Result<Self, rustls::Error> {
        let mut tcp = HttpConnector::new_with_resolver(lookup);
        // TLS is layered on top.
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        let tls1 = match tls {
            Some(tls) => tls.config()?,
            None => TLS.clone()?,
        };
        let mut tls2 = tls1.clone();
        tls2.alpn_protocols = vec![b"h2".to_vec()];
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new());
        let http1 = client.build(HttpsConnector::from((tcp.clone(), tls1)));
        client.http2_only(true).timer(TokioTimer::new());
        client.http2_keep_alive_interval(PING).http2_keep_alive_timeout(PONG);
        Ok(Self { http1, http2: client.build(HttpsConnector::from((tcp, tls2))) })
    }
}

/// TLS configuration with the machine's root certificates.
static TLS: LazyLock<Result<ClientConfig, rustls::Error>> =
    LazyLock::new(|| ClientTls::default().config());

impl ClientTls {
    fn config(&self) -> Result<ClientConfig, rustls::Error> {
        let roots = match self.roots.is_empty() {
            true => Arc::clone(&NATIVE_ROOTS),
            false => {
                let mut roots = RootCertStore::empty();
                self.roots.iter().try_for_each(|root| roots.add(root.clone()))?;
                Arc::new(roots)
            }
        };
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions()?.with_root_certificates(roots);
        match &self.identity {
            Some((chain, key)) => config.with_client_auth_cert(chain.clone(), key.clone_key()),
            None => Ok(config.with_no_client_auth()),
        }
    }
}

/// The machine's root certificates, whose files do not change while the hub runs.
static NATIVE_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| Arc::new(native_roots()));

/// Loads the machine's root certificates.
fn native_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (known, _) = roots.add_parsable_certificates(found.certs);
    if known == 0 {
        tracing::warn!(
            "no CA certificates found, every HTTPS connection will fail; install `ca-certificates`"
        );
    }
    roots
}

/// Innermost cause: the outer ones only say that a request failed.
fn root(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Resolver that passes a host only if all of its addresses may be dialled. The returned addresses
/// are the ones dialled: nothing is resolved twice (DNS rebinding).
#[derive(Clone)]
struct Lookup {
    judge: Option<Arc<Judge>>,
    resolve: Arc<Resolve>,
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("judged", &self.judge.is_some()).finish_non_exhaustive()
    }
}

/// Refusal of a host by the rule.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct HostRefused(String);

impl Service<Name> for Lookup {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { judge, resolve } = self.clone();
        Box::pin(async move {
            let found = resolve(name.as_str().to_owned()).await?;
            if let Some(judge) = judge {
                judge(name.as_str(), &found).map_err(|why| io::Error::other(HostRefused(why)))?;
            }
            let found: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(found.into_iter())
        })
    }
}
