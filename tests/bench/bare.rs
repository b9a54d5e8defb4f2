//! The yardstick: an echo that does no more than it must, with or without a durable row for each task.

use crate::{SERVERS, pin};
use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use jiff::Timestamp;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{net::SocketAddr, sync::Arc, thread};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    runtime,
    sync::{mpsc, oneshot},
};
use uuid::Uuid;

/// As many rows as are ever on their way at once, and more.
const MAX_QUEUED_ROWS: usize = 1024;

/// What becomes of a task before it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Durability {
    /// Nothing.
    None,
    /// It is a row in SQLite, on disk.
    Row,
}

/// A bare server on a thread and a port of its own. It stops when it is dropped.
pub(crate) struct Bare {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<Result<()>>>,
}

impl Bare {
    /// Starts a server whose answers have `size` bytes, or as few as they can.
    pub(crate) fn start(durability: Durability, size: usize) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            pin(SERVERS)?;
            let store = (durability == Durability::Row).then(Store::start).transpose()?;
            let echo = Arc::new(Echo { padding: padding(size)?, store });
            let router = Router::new().route("/", post(echo_it)).with_state(echo);
            runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
                let server = axum::serve(TcpListener::from_std(listener)?, router);
                tokio::select! {
                    ended = async { server.await } => Ok(ended?),
                    _ = stopped => Ok(()),
                }
            })
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

struct Echo {
    /// Makes the answer as long as the hub's.
    padding: String,
    store: Option<Store>,
}

#[derive(Deserialize)]
struct Request {
    id: Value,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    message: Message,
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
struct Answer<'a> {
    jsonrpc: &'static str,
    id: Value,
    result: Task<'a>,
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

impl<'a> Answer<'a> {
    fn to(request: Request, padding: &'a str) -> Self {
        let status = Status { state: "completed", timestamp: format!("{:.3}", Timestamp::now()) };
        let result = Task {
            kind: "task",
            id: Uuid::now_v7(),
            context_id: Uuid::now_v7(),
            status,
            history: [request.params.message],
            metadata: padding,
        };
        Self { jsonrpc: "2.0", id: request.id, result }
    }
}

/// What an answer lacks to have `size` bytes.
fn padding(size: usize) -> Result<String> {
    let request = serde_json::from_str(&crate::load::request())?;
    let bare = serde_json::to_vec(&Answer::to(request, ""))?.len();
    Ok("x".repeat(size.saturating_sub(bare)))
}

async fn echo_it(State(echo): State<Arc<Echo>>, Json(request): Json<Request>) -> Response {
    let answer = Answer::to(request, &echo.padding);
    if let Some(store) = &echo.store
        && let Err(why) = store.keep(&answer.result).await
    {
        return (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()).into_response();
    }
    Json(answer).into_response()
}

/// A table of tasks, and the one thread that writes it.
struct Store {
    rows: mpsc::Sender<Row>,
    _dir: TempDir,
}

struct Row {
    id: Uuid,
    task: Vec<u8>,
    kept: oneshot::Sender<()>,
}

impl Store {
    fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let connection = Connection::open(dir.path().join("tasks.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection
            .execute_batch("CREATE TABLE tasks (id BLOB PRIMARY KEY, task BLOB) WITHOUT ROWID")?;
        let (rows, queue) = mpsc::channel(MAX_QUEUED_ROWS);
        // It ends when the server does, for then nobody can send it rows.
        thread::spawn(move || write(connection, queue));
        Ok(Self { rows, _dir: dir })
    }

    /// Returns once the row is on disk.
    async fn keep(&self, task: &Task<'_>) -> Result<()> {
        let (kept, done) = oneshot::channel();
        let row = Row { id: task.id, task: serde_json::to_vec(task)?, kept };
        self.rows.send(row).await.ok().context("the writer has ended")?;
        done.await.context("the row could not be written")
    }
}

/// Writes the rows that have queued up in one transaction, and the next ones in the next.
fn write(mut connection: Connection, mut queue: mpsc::Receiver<Row>) -> Result<()> {
    while let Some(first) = queue.blocking_recv() {
        let transaction = connection.transaction()?;
        let mut kept = Vec::new();
        {
            let mut insert = transaction.prepare_cached("INSERT INTO tasks VALUES (?1, ?2)")?;
            let mut next = Some(first);
            while let Some(row) = next {
                insert.execute((row.id.as_bytes(), &row.task))?;
                kept.push(row.kept);
                next = queue.try_recv().ok();
            }
        }
        transaction.commit()?;
        for kept in kept {
            let _gone = kept.send(());
        }
    }
    Ok(())
}
