//! Baseline server that does only the necessary work, optionally with each task and chunk on disk
//! before the response. It runs as a separate process, as the hub does.

mod store;

use crate::load::{self, CHUNKS, Connection, PACE, TICKS};
use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt as _,
};
use clap::Args;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{env, net::SocketAddr, process::Stdio, sync::Arc};
use store::Store;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpSocket,
    process::{Child, Command},
    time::{Instant, sleep_until},
};
use uuid::Uuid;

/// What a bare server is to be.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Kind {
    /// Whether everything is on disk before it is told.
    #[arg(long)]
    pub(crate) durable: bool,
    /// Bytes of an answer, or as few as it can have
    #[arg(long, default_value_t = 0)]
    pub(crate) answer: usize,
    /// Bytes of a chunk's event, or as few as it can have
    #[arg(long, default_value_t = 0)]
    pub(crate) event: usize,
    /// A server that is asked the same before each answer.
    #[arg(long)]
    pub(crate) calls: Option<SocketAddr>,
}

/// Running baseline server, killed on drop.
pub(crate) struct Bare {
    address: SocketAddr,
    pub(crate) child: Child,
    /// Data directory; a killed server does not remove it.
    _folder: TempDir,
}

impl Bare {
    /// Starts a server and returns once it listens.
    #[expect(clippy::disallowed_methods, reason = "a server that is measured is its own process")]
    pub(crate) async fn start(kind: Kind) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("bare").args(kind.durable.then_some("--durable"));
        command.args(["--answer", &kind.answer.to_string(), "--event", &kind.event.to_string()]);
        if let Some(other) = kind.calls {
            command.args(["--calls", &other.to_string()]);
        }
        let folder = tempfile::tempdir()?;
        command.env("TMPDIR", folder.path());
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let told = child.stdout.take().context("the bare server has no output")?;
        let address = BufReader::new(told).lines().next_line().await?;
        let address = address.context("the bare server ended before it listened")?.parse()?;
        Ok(Self { address, child, _folder: folder })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }
}

/// Runs as a baseline server until killed.
pub(crate) async fn serve(kind: Kind) -> Result<()> {
    let store = kind.durable.then(Store::start).transpose()?;
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let listener = socket.listen(4096)?;
    let address = listener.local_addr()?;
    let callee = kind.calls.map(Callee::new);
    let echo = Arc::new(Echo { padding: padding(kind)?, store, callee });
    let routes = Router::new().route("/", post(send)).route("/stream", post(stream_chunks));
    let routes = routes.route("/ticks", post(stream_ticks));
    let router = routes.route("/get", post(get)).with_state(echo);
    println!("{address}");
    // As in the hub: a chunk does not wait until the client acknowledges the previous one.
    let listener = listener.tap_io(|connection| {
        let _small_answers_may_be_late = connection.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

struct Echo {
    padding: Padding,
    store: Option<Store>,
    callee: Option<Callee>,
}

/// Another server, with a pool of idle connections to it.
struct Callee {
    address: SocketAddr,
    free: Mutex<Vec<Connection>>,
}

impl Callee {
    fn new(address: SocketAddr) -> Self {
        Self { address, free: Mutex::default() }
    }

    /// Sends a message and waits for the end of its task.
    async fn call(&self) -> Result<()> {
        let free = self.free.lock().pop();
        let mut connection = match free {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        connection.post("/", &load::send()).await?;
        self.free.lock().push(connection);
        Ok(())
    }
}

/// Padding that makes responses and events as long as the hub's.
struct Padding {
    answer: String,
    event: String,
}

#[derive(Deserialize)]
struct Request<P> {
    id: Value,
    params: P,
}

#[derive(Deserialize)]
struct Send {
    message: Message,
}

#[derive(Deserialize)]
struct Get {
    id: Uuid,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    kind: String,
    message_id: String,
    role: String,
    parts: Vec<Part>,
}

#[derive(Deserialize, Serialize)]
struct Part {
    kind: String,
    text: String,
}

#[derive(Serialize)]
struct Answer<T> {
    jsonrpc: &'static str,
    id: Value,
    result: T,
}

impl<T> Answer<T> {
    fn new(id: Value, result: T) -> Self {
        Self { jsonrpc: "2.0", id, result }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    kind: &'static str,
    id: Uuid,
    context_id: Uuid,
    status: Status,
    history: [Message; 1],
    metadata: &'a str,
}

#[derive(Serialize)]
struct Status {
    state: &'static str,
    timestamp: String,
}

impl<'a> Task<'a> {
    fn of(message: Message, padding: &'a str) -> Self {
        let status = Status { state: "completed", timestamp: format!("{:.3}", Timestamp::now()) };
        let (id, context_id) = (Uuid::now_v7(), Uuid::now_v7());
        Self { kind: "task", id, context_id, status, history: [message], metadata: padding }
    }
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    kind: &'static str,
    task_id: Uuid,
    context_id: Uuid,
    append: bool,
    last_chunk: bool,
    artifact: Artifact<'a>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    artifact_id: &'static str,
    parts: [Text<'a>; 1],
}

#[derive(Clone, Serialize)]
struct Text<'a> {
    kind: &'static str,
    text: &'a str,
}

impl<'a> Chunk<'a> {
    fn of(task_id: Uuid, context_id: Uuid, text: &'a str) -> Self {
        let artifact = Artifact { artifact_id: "echo", parts: [Text { kind: "text", text }] };
        let kind = "artifact-update";
        Self { kind, task_id, context_id, append: true, last_chunk: false, artifact }
    }
}

/// Computes the padding that responses and events need for the requested length.
fn padding(kind: Kind) -> Result<Padding> {
    let Request { id, params } = serde_json::from_str::<Request<Send>>(&load::send())?;
    let answer = serde_json::to_vec(&Answer::new(id, Task::of(params.message, "")))?;
    let event = frame(0, &Answer::new(json!(1), Chunk::of(Uuid::nil(), Uuid::nil(), "")))?;
    let fill = |wanted: usize, has: &[u8]| "x".repeat(wanted.saturating_sub(has.len()));
    Ok(Padding { answer: fill(kind.answer, &answer), event: fill(kind.event, &event) })
}

fn frame(number: u32, answer: &impl Serialize) -> Result<Vec<u8>> {
    let mut frame = format!("id: {number}\ndata: ").into_bytes();
    serde_json::to_writer(&mut frame, answer)?;
    frame.extend_from_slice(b"\n\n");
    Ok(frame)
}

/// Error that closes the connection, and so ends the measurement.
struct Broken(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Broken {
    fn from(why: E) -> Self {
        Self(why.into())
    }
}

impl IntoResponse for Broken {
    fn into_response(self) -> Response {
        (axum::http::StatusCode::INTERNAL_SERVER_ERROR, format!("{:#}", self.0)).into_response()
    }
}

async fn send(
    State(echo): State<Arc<Echo>>,
    Json(Request { id, params }): Json<Request<Send>>,
) -> Result<Response, Broken> {
    let task = Task::of(params.message, &echo.padding.answer);
    if let Some(callee) = &echo.callee {
        callee.call().await?;
    }
    if let Some(store) = &echo.store {
        store.keep(task.id, 0, serde_json::to_vec(&task)?).await?;
    }
    Ok(Json(Answer::new(id, task)).into_response())
}

/// Returns the stored task. A server without a store generates one of the same size.
async fn get(
    State(echo): State<Arc<Echo>>,
    Json(Request { id, params }): Json<Request<Get>>,
) -> Result<Response, Broken> {
    let Some(store) = &echo.store else {
        let Request { params, .. } = serde_json::from_str::<Request<Send>>(&load::send())?;
        return Ok(
            Json(Answer::new(id, Task::of(params.message, &echo.padding.answer))).into_response()
        );
    };
    let task = store.task(params.id)?.context("there is no such task")?;
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
    let body = [head.as_bytes(), &task, b"}"].concat();
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Sends a chunk at each tick, each once it is on disk.
async fn stream_ticks(
    State(echo): State<Arc<Echo>>,
    Json(Request { id, params: Send { message: _ } }): Json<Request<Send>>,
) -> Response {
    let (task, context) = (Uuid::now_v7(), Uuid::now_v7());
    let begun = Instant::now();
    let chunks = stream::iter(1..=TICKS).then(move |number| {
        let (echo, id) = (Arc::clone(&echo), id.clone());
        async move {
            sleep_until(begun + PACE * (number - 1)).await;
            let chunk = Chunk::of(task, context, &echo.padding.event);
            if let Some(store) = &echo.store {
                store.keep(task, number, serde_json::to_vec(&chunk)?).await?;
            }
            frame(number, &Answer::new(id, chunk)).map(Bytes::from)
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(chunks)).into_response()
}

/// Writes all chunks to disk at the same time, and sends each once it is stored.
async fn stream_chunks(
    State(echo): State<Arc<Echo>>,
    Json(Request { id, params: Send { message: _ } }): Json<Request<Send>>,
) -> Response {
    let (task, context) = (Uuid::now_v7(), Uuid::now_v7());
    let chunks = stream::iter(1..=CHUNKS).map(move |number| {
        let (echo, id) = (Arc::clone(&echo), id.clone());
        async move {
            let chunk = Chunk::of(task, context, &echo.padding.event);
            if let Some(store) = &echo.store {
                store.keep(task, number, serde_json::to_vec(&chunk)?).await?;
            }
            frame(number, &Answer::new(id, chunk)).map(Bytes::from)
        }
    });
    let body = Body::from_stream(chunks.buffered(CHUNKS as usize));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}
