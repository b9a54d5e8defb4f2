//! Loopback receiver of push notifications, which can behave badly on demand.

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

/// Delay for which no hub waits.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Receiver of notifications, stopped on drop.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Task of the server, stopped on drop.
    _serving: JoinSet<io::Result<()>>,
}

/// Received notification.
#[derive(Clone, Debug)]
pub struct Notification {
    /// Time of arrival.
    pub at: Instant,
    /// Method: POST, or GET for a challenge.
    pub method: Method,
    /// Path, such as `/news`.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Raw body.
    pub bytes: Bytes,
    /// Body as JSON, or null if it is not JSON.
    pub body: Value,
    /// Status of the response.
    pub status: u16,
}

#[derive(Debug, Default)]
struct Shared {
    came: Mutex<Vec<Notification>>,
    /// Statuses of the next responses; the later ones are 200.
    answers: Mutex<VecDeque<u16>>,
    always: Mutex<Option<u16>>,
    /// Statuses of responses at certain paths, which take precedence.
    paths: Mutex<HashMap<String, u16>>,
    /// Value of `Retry-After`.
    rest: Mutex<Option<String>>,
    body: Mutex<Told>,
}

/// Body of a receiver's responses.
#[derive(Clone, Copy, Debug, Default)]
pub enum Told {
    /// Empty body.
    #[default]
    Nothing,
    /// Value of `validationToken`, the correct response to a challenge.
    Token,
    /// Endless body.
    NoEnd,
}

impl Receiver {
    /// Starts a receiver on a free port.
    pub fn start() -> Result<Self> {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Starts a receiver at the address of an earlier one.
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

    /// Sets the statuses of the next responses; a redirect leads to `/elsewhere`, and 0 means no
    /// response.
    #[must_use]
    pub fn answering(self, statuses: &[u16]) -> Self {
        self.shared.answers.lock().extend(statuses);
        self
    }

    /// Sets the status of all responses from now on, or restores the default.
    pub fn always(&self, status: Option<u16>) {
        *self.shared.always.lock() = status;
    }

    /// Sets the status of responses at `path` from now on.
    pub fn at_path(&self, path: &str, status: u16) {
        self.shared.paths.lock().insert(path.to_owned(), status);
    }

    /// Sets `Retry-After` of each failure, in seconds or as a date, or removes it.
    pub fn rests(&self, retry_after: Option<&str>) {
        *self.shared.rest.lock() = retry_after.map(str::to_owned);
    }

    /// Sets the body of responses from now on.
    pub fn tells(&self, body: Told) {
        *self.shared.body.lock() = body;
    }

    /// Listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL of a path of the receiver.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Received notifications, oldest first.
    pub fn came(&self) -> Vec<Notification> {
        self.shared.came.lock().clone()
    }

    /// Accepted bodies, oldest first.
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
