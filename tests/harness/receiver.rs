//! A loopback server that push notifications are sent to, and that can be told to behave badly.

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Uri,
        header::{LOCATION, RETRY_AFTER},
    },
    response::{IntoResponse as _, Response},
};
use futures::stream;
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// Long enough for no hub to wait for it.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// A server that takes notifications until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Ends with it.
    _serving: JoinSet<io::Result<()>>,
}

/// A notification, as it came.
#[derive(Clone, Debug)]
pub struct Notification {
    /// When it came.
    pub at: Instant,
    /// How: a POST, or the GET of a challenge.
    pub method: Method,
    /// Where it was sent, such as `/news`.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as it was written.
    pub bytes: Bytes,
    /// Its body, or null when it was not JSON.
    pub body: Value,
    /// What it was answered.
    pub status: u16,
}

#[derive(Debug, Default)]
struct Shared {
    came: Mutex<Vec<Notification>>,
    /// The statuses of the next answers; those after them are 200.
    answers: Mutex<VecDeque<u16>>,
    always: Mutex<Option<u16>>,
    /// The statuses of answers at these paths, whatever is answered elsewhere.
    paths: Mutex<HashMap<String, u16>>,
    /// What `Retry-After` says.
    rest: Mutex<Option<String>>,
    body: Mutex<Told>,
}

/// What a receiver's answers have as a body.
#[derive(Clone, Copy, Debug, Default)]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// The value of `validationToken`, as a receiver that is challenged should.
    Token,
    /// More and more.
    NoEnd,
}

impl Receiver {
    /// Starts one on a free port.
    pub fn start() -> Result<Self> {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Starts one where another was.
    pub fn at(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).context("no free loopback port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let shared = Arc::<Shared>::default();
        let router = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, shared, _serving: serving })
    }

    /// Answers the next notifications with these statuses; a redirect leads to `/elsewhere`, and 0 is no answer at all.
    #[must_use]
    pub fn answering(self, statuses: &[u16]) -> Self {
        self.shared.answers.lock().extend(statuses);
        self
    }

    /// Answers everything with this status from now on, or as it should.
    pub fn always(&self, status: Option<u16>) {
        *self.shared.always.lock() = status;
    }

    /// Answers what comes to `path` with this status from now on.
    pub fn at_path(&self, path: &str, status: u16) {
        self.shared.paths.lock().insert(path.to_owned(), status);
    }

    /// Says with each failure when it wants to be asked again, in seconds or as a date, or does not.
    pub fn rests(&self, retry_after: Option<&str>) {
        *self.shared.rest.lock() = retry_after.map(str::to_owned);
    }

    /// Has such bodies in its answers from now on.
    pub fn tells(&self, body: Told) {
        *self.shared.body.lock() = body;
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What came so far, oldest first.
    pub fn came(&self) -> Vec<Notification> {
        self.shared.came.lock().clone()
    }

    /// The bodies that it said to have taken, oldest first.
    pub fn taken(&self) -> Vec<Value> {
        self.came().into_iter().filter(|it| it.status == 200).map(|it| it.body).collect()
    }
}

async fn take(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let here = shared.paths.lock().get(&path).copied().or(*shared.always.lock());
    let status = here.or_else(|| shared.answers.lock().pop_front()).unwrap_or(200);
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    let at = Instant::now();
    shared.came.lock().push(Notification { at, method, path, headers, bytes, body, status });
    if status == 0 {
        sleep(FOR_EVER).await;
    }
    let mut head = HeaderMap::new();
    if (300..400).contains(&status) {
        head.insert(LOCATION, HeaderValue::from_static("/elsewhere"));
    }
    let rest = shared.rest.lock().as_deref().and_then(|rest| rest.parse().ok());
    if let Some(rest) = rest.filter(|_| status >= 400) {
        head.insert(RETRY_AFTER, rest);
    }
    let told = *shared.body.lock();
    let body = match told {
        Told::Nothing => Body::empty(),
        Told::Token => {
            let mut query = uri.query().unwrap_or_default().split('&');
            query
                .find_map(|it| it.strip_prefix("validationToken="))
                .unwrap_or_default()
                .to_owned()
                .into()
        }
        Told::NoEnd => Body::from_stream(stream::repeat(Ok::<_, Infallible>(Bytes::from_static(
            &[b'x'; 4096],
        )))),
    };
    (StatusCode::from_u16(status).unwrap_or(StatusCode::OK), head, body).into_response()
}
