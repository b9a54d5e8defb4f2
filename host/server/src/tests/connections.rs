//! Tasks of a connection are cancelled at its end, for any reason.

use super::{PANIC, PANIC_TEXT, TestDispatcher, acp_schema::AcpSchema};
use crate::{acp, mcp};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    id::AgentId,
    operation::{Answer, Operation, Page, TaskQuery},
    task::TaskState,
};
use a2a_hub_rpc::line_reader::LineReader;
use serde_json::{Value, json};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex},
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Limit of all waits. The clock is paused and advances when all tasks wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Protocols with a connection for each client.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Acp,
    Mcp,
}

/// A served client, with controls for faults.
pub(super) struct TestConnection {
    write: DuplexStream,
    told: mpsc::Receiver<Vec<u8>>,
    serving: JoinSet<()>,
    breaks: Arc<AtomicBool>,
    stop: CancellationToken,
    requests: u64,
    /// Check of each line against the published schema.
    schema: Option<AcpSchema>,
}

/// Read half of a connection, which panics on demand.
struct TestReader {
    stream: DuplexStream,
    breaks: Arc<AtomicBool>,
}

impl AsyncRead for TestReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        assert!(!self.breaks.load(Relaxed), "{PANIC_TEXT}");
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl TestConnection {
    pub(super) async fn acp(stand: &TestDispatcher) -> Self {
        Self::acp_of(stand, Principal::Operator, json!({})).await
    }

    /// Client of ACP with these rights and capabilities.
    pub(super) async fn acp_of(stand: &TestDispatcher, caller: Principal, can: Value) -> Self {
        let mut connection = Self::open_as(stand, Protocol::Acp, caller);
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": can });
        connection.ask("initialize", hello).await;
        connection
    }

    pub(super) async fn mcp(stand: &TestDispatcher) -> Self {
        let mut connection = Self::open(stand, Protocol::Mcp);
        let client = json!({ "name": "t", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        connection.ask("initialize", hello).await;
        connection.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        connection
    }

    /// Client of MCP that has sent nothing yet.
    pub(super) fn silent_mcp(stand: &TestDispatcher) -> Self {
        Self::open(stand, Protocol::Mcp)
    }

    /// Client of MCP with these rights that has sent nothing yet.
    pub(super) fn mcp_of(stand: &TestDispatcher, caller: Principal) -> Self {
        Self::open_as(stand, Protocol::Mcp, caller)
    }

    fn open(stand: &TestDispatcher, protocol: Protocol) -> Self {
        Self::open_as(stand, protocol, Principal::Operator)
    }

    fn open_as(stand: &TestDispatcher, protocol: Protocol, caller: Principal) -> Self {
        let (write, stream) = duplex(1 << 20);
        let (outbox, told) = mpsc::channel(10_000);
        let (breaks, stop) = (Arc::<AtomicBool>::default(), CancellationToken::new());
        let (dispatcher, stops) = (stand.dispatcher.clone(), stop.clone());
        let reading = TestReader { stream, breaks: Arc::clone(&breaks) };
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut reader = LineReader::new(reading, 1 << 20, PATIENCE);
            match protocol {
                Protocol::Acp => {
                    let agent = AgentId::parse("claude-code").ok();
                    let asked = acp::ConnectionTarget { caller, agent };
                    acp::serve(dispatcher, asked, &mut reader, outbox, stops).await;
                }
                Protocol::Mcp => {
                    mcp::serve(
                        dispatcher,
                        caller,
                        mcp::SessionOffer::default(),
                        &mut reader,
                        outbox,
                        stops,
                    )
                    .await;
                }
            }
        });
        let schema = matches!(protocol, Protocol::Acp).then(AcpSchema::default);
        Self { write, told, serving, breaks, stop, requests: 0, schema }
    }

    /// Sends a line.
    pub(super) async fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// Sends bytes.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
    }

    /// Sends a request and returns its id.
    pub(super) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = 1_000_000 + self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        if let Some(schema) = &mut self.schema {
            schema.asked(id, method);
        }
        self.say(&request.to_string()).await;
        id
    }

    /// Receives the next line.
    pub(super) async fn hear(&mut self) -> Value {
        let line = timeout(PATIENCE, self.told.recv()).await.unwrap().expect("it is served still");
        let line = serde_json::from_slice(&line).unwrap();
        if let Some(schema) = &self.schema {
            schema.check(&line);
        }
        line
    }

    /// Receives all lines up to the request or notification of this method, which is last.
    pub(super) async fn until_method(&mut self, method: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let told = self.hear().await;
            let is_it = told["method"] == method;
            all.push(told);
            if is_it {
                return all;
            }
        }
    }

    /// Receives all lines up to the response to the request `id`, which is last.
    pub(super) async fn until(&mut self, id: u64) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let told = self.hear().await;
            let is_it = told["id"] == id && told.get("method").is_none();
            all.push(told);
            if is_it {
                return all;
            }
        }
    }

    /// Sends a request and returns its response.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.until(id).await.pop().unwrap_or_default()
    }
}

/// Starts a turn or call with this text and returns the id of its request.
async fn work(protocol: Protocol, stand: &TestDispatcher, text: &str) -> (TestConnection, u64) {
    match protocol {
        Protocol::Acp => {
            let mut connection = TestConnection::acp(stand).await;
            let begun =
                connection.ask("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
            let session = begun["result"]["sessionId"].clone();
            let prompt = json!([{ "type": "text", "text": text }]);
            let params = json!({ "sessionId": session, "prompt": prompt });
            let id = connection.begin("session/prompt", params).await;
            (connection, id)
        }
        Protocol::Mcp => {
            let mut connection = TestConnection::mcp(stand).await;
            let call = json!({ "name": "claude-code", "arguments": { "message": text, "wait_seconds": 3_600 } });
            let id = connection.begin("tools/call", call).await;
            (connection, id)
        }
    }
}

/// Waits until the only task is in this state.
async fn comes_to(stand: &TestDispatcher, wanted: TaskState) {
    let page = Page { limit: 10, offset: 0 };
    let query = TaskQuery { history_length: Some(0), ..TaskQuery::all(page) };
    let looks = async {
        loop {
            let list = Operation::ListTasks(query.clone());
            let listed = stand.dispatcher.hub().handle(Principal::Operator, None, list).await;
            let Ok(Reply::One(Answer::Tasks { tasks, .. })) = listed else { panic!("no list") };
            if let [task] = &tasks[..]
                && task.task.status.state == wanted
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let came = timeout(PATIENCE, looks).await;
    assert!(came.is_ok(), "the task never was {wanted:?}");
}

#[tokio::test(start_paused = true)]
async fn dropped_connection_cancels_its_task() {
    for protocol in [Protocol::Acp, Protocol::Mcp] {
        let stand = TestDispatcher::new().await;
        let (mut connection, _) = work(protocol, &stand, "work").await;
        comes_to(&stand, TaskState::Working).await;
        connection.serving.shutdown().await;
        comes_to(&stand, TaskState::Canceled).await;
    }
}

#[tokio::test(start_paused = true)]
async fn connection_that_panics_cancels_its_task() {
    for protocol in [Protocol::Acp, Protocol::Mcp] {
        let stand = TestDispatcher::new().await;
        let (mut connection, _) = work(protocol, &stand, "work").await;
        comes_to(&stand, TaskState::Working).await;
        connection.breaks.store(true, Relaxed);
        connection.say("{}").await;
        let ended = connection.serving.join_next().await.unwrap();
        assert!(ended.unwrap_err().is_panic(), "{protocol:?}");
        comes_to(&stand, TaskState::Canceled).await;
    }
}

#[tokio::test(start_paused = true)]
async fn disconnected_client_cancels_its_task() {
    for protocol in [Protocol::Acp, Protocol::Mcp] {
        let stand = TestDispatcher::new().await;
        let (mut connection, _) = work(protocol, &stand, "work").await;
        comes_to(&stand, TaskState::Working).await;
        connection.write.shutdown().await.unwrap();
        comes_to(&stand, TaskState::Canceled).await;
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_hub_leaves_task_working() {
    for protocol in [Protocol::Acp, Protocol::Mcp] {
        let stand = TestDispatcher::new().await;
        let (mut connection, _) = work(protocol, &stand, "work").await;
        comes_to(&stand, TaskState::Working).await;
        connection.stop.cancel();
        connection.serving.join_next().await.unwrap().unwrap();
        sleep(PATIENCE).await;
        comes_to(&stand, TaskState::Working).await;
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_request_is_answered_and_cancelled() {
    for protocol in [Protocol::Acp, Protocol::Mcp] {
        let stand = TestDispatcher::new().await;
        let (mut connection, id) = work(protocol, &stand, PANIC).await;
        let answer = connection.until(id).await.pop().unwrap();
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert_eq!(answer["error"]["message"], "internal error; see the hub's log");
        comes_to(&stand, TaskState::Canceled).await;
    }
}

#[tokio::test(start_paused = true)]
async fn session_survives_panicked_turn() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let begun = connection.ask("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
    let session = &begun["result"]["sessionId"];
    let prompt =
        |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let broken = connection.ask("session/prompt", prompt(PANIC)).await;
    assert_eq!(broken["error"]["code"], -32603, "{broken}");
    let answer = connection.ask("session/prompt", prompt("hello")).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}
