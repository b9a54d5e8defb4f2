//! A loopback server that push notifications are sent to, and that can be told to behave badly.

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header::LOCATION},
};
use serde_json::Value;
use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::JoinSet, time::sleep};

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
        lock(&self.shared.answers).extend(statuses);
        self
    }

    /// Answers everything with this status from now on, or as it should.
    pub fn always(&self, status: Option<u16>) {
        *lock(&self.shared.always) = status;
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
        lock(&self.shared.came).clone()
    }

    /// The bodies that it said to have taken, oldest first.
    pub fn taken(&self) -> Vec<Value> {
        self.came().into_iter().filter(|it| it.status == 200).map(|it| it.body).collect()
    }
}

async fn take(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
) -> (StatusCode, HeaderMap) {
    let always = *lock(&shared.always);
    let status = always.or_else(|| lock(&shared.answers).pop_front()).unwrap_or(200);
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    let path = uri.path().to_owned();
    lock(&shared.came).push(Notification { path, headers, bytes, body, status });
    if status == 0 {
        sleep(FOR_EVER).await;
    }
    let location = (LOCATION, HeaderValue::from_static("/elsewhere"));
    let head = (300..400).contains(&status).then_some(location);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    (status, head.into_iter().collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
