//! One connection to an MCP server: its program or its URL. It closes when the server ends, idles
//! for too long, or sends too much.

use super::{
    lines::{LineTooLong, MAX_LINE, Relayed, ServerLines},
    message_reader::MessageReader,
    origin::ServerOrigin,
    remote::{Refusals, RemoteTransport},
};
use crate::port::live_grant::Revocation;
use a2a_hub_core::{
    grant::EffectiveGrant,
    text::{duration::Span, plain_text},
};
use a2a_hub_process::{Child, MemoryExceeded, Output, ProgramExit};
use a2a_hub_runtime::Failure;
use parking_lot::Mutex;
use rmcp::{
    RoleClient, ServiceExt as _,
    model::{ClientCapabilities, ClientConfig, ClientRequest, Implementation, PingRequest},
    service::{ClientInitializeError, Peer, RunningService},
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use std::{
    error::Error,
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split},
    task::JoinSet,
    time::{Instant, interval, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Time after which an unused server is stopped.
const IDLE: Duration = Duration::from_secs(300);

/// Interval of the idle check.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time that a hanging server has to answer a ping.
const PONG_WITHIN: Duration = Duration::from_secs(1);

/// Bytes read each second; beyond that the server waits (backpressure).
const MAX_A_SECOND: usize = 4 << 20;

/// Size of the pipe between the program and the protocol, in bytes.
const PIPE: usize = 64 << 10;

/// Longest excerpt of the server's last line on standard error, in characters.
const MAX_COMPLAINT: usize = 200;

/// One connection to a server. Dropping it ends the server's program, if any.
pub(super) struct ServerConnection {
    service: RunningService<RoleClient, ClientConfig>,
    shared: Arc<ConnectionInner>,
    _keeping: JoinSet<()>,
}

struct ConnectionInner {
    /// Cancelled when the connection is over, for any reason.
    over: CancellationToken,
    /// Reason of the end.
    fault: Mutex<Option<String>>,
    /// Failure of the latest request to a server at a URL.
    refused: Refusals,
    users: AtomicUsize,
    used_last: Mutex<Instant>,
}

/// Use of a connection, which keeps it from being idle.
pub(super) struct Use {
    connection: Arc<ServerConnection>,
}

impl ServerConnection {
    /// Starts the program or calls the URL, and negotiates the protocol.
    pub(super) async fn start(origin: &ServerOrigin) -> Result<Self, Failure> {
        let shared = Arc::new(ConnectionInner {
            over: CancellationToken::new(),
            fault: Mutex::default(),
            refused: Refusals::default(),
            users: AtomicUsize::new(0),
            used_last: Mutex::new(Instant::now()),
        });
        let mut keeping = JoinSet::new();
        let name = origin.name.clone();
        let is_granted = move |grant: &EffectiveGrant| grant.tools.contains_key(&name);
        let revocation = origin.live.watch(is_granted);
        let us = Implementation::new("a2a-hub", env!("CARGO_PKG_VERSION"));
        let us = ClientConfig::new(ClientCapabilities::default(), us);
        let reader = MessageReader::new(origin.agent.clone(), origin.name.clone());
        let agreed = match &origin.config.url {
            Some(url) => {
                keeping.spawn(supervise(revocation, Arc::clone(&shared), pending()));
                let (agent, live) = (origin.agent.clone(), origin.live.clone());
                let (http, refused) = (origin.http.clone(), shared.refused.clone());
                let client = RemoteTransport { agent, live, http, refused, reader };
                let at = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                us.serve(StreamableHttpClientTransport::with_client(client, at)).await
            }
            None => {
                let owner = format!("{}/mcp/{}", origin.agent, origin.name);
                let files = Arc::new(origin.files.instance(&owner, origin.live.clone()));
                let child =
                    origin.programs.serve(&origin.config, owner, Arc::clone(&files)).await?;
                let (ours, mut theirs) = duplex(PIPE);
                let ending = Arc::clone(&shared);
                let work = async move {
                    let why = pump(child, &mut theirs, &reader).await;
                    // Set before the pipe closes: callers that wait for an answer then read the
                    // reason.
                    ending.end(why.clone());
                    drop(theirs);
                    // The program's directory for temporary files exists until here.
                    drop(files);
                    why
                };
                keeping.spawn(supervise(revocation, Arc::clone(&shared), work));
                let (read, write) = split(ours);
                // Mending a line may lengthen each byte to an escape.
                let transport = AsyncRwTransport::new_client(read, write);
                us.serve(transport.with_max_line_length(6 * MAX_LINE)).await
            }
        };
        let service = agreed.map_err(|why| {
            Failure::Unavailable(shared.why().unwrap_or_else(|| not_agreed(&why)))
        })?;
        Ok(Self { service, shared, _keeping: keeping })
    }

    /// Marks the connection as used; none if it is over.
    pub(super) fn used(self: &Arc<Self>) -> Option<Use> {
        if self.shared.over.is_cancelled() || self.service.is_closed() {
            return None;
        }
        self.shared.users.fetch_add(1, Relaxed);
        Some(Use { connection: Arc::clone(self) })
    }

    /// Reason why the connection ended, or why the last request failed.
    pub(super) fn fault(&self) -> Option<String> {
        self.shared.why()
    }
}

impl Use {
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.connection.service.peer()
    }

    pub(super) fn fault(&self) -> Option<String> {
        self.connection.fault()
    }

    /// True if the server answers a ping.
    pub(super) async fn is_alive(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        matches!(timeout(PONG_WITHIN, self.peer().send_request(ping)).await, Ok(Ok(_)))
    }

    /// Ends the connection for all users.
    pub(super) fn end(&self, why: String) {
        self.connection.shared.end(why);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let shared = &self.connection.shared;
        *shared.used_last.lock() = Instant::now();
        shared.users.fetch_sub(1, Relaxed);
    }
}

impl ConnectionInner {
    /// Ends the connection; the first reason counts.
    fn end(&self, why: String) {
        self.fault.lock().get_or_insert(why);
        self.over.cancel();
    }

    /// Reason why the connection ended, or why the last request failed.
    fn why(&self) -> Option<String> {
        self.fault.lock().clone().or_else(|| self.refused.latest())
    }

    /// Returns once the connection has been idle for [`IDLE`].
    async fn idle(&self) {
        let mut looks = interval(IDLE_CHECK_INTERVAL);
        loop {
            looks.tick().await;
            if self.users.load(Relaxed) == 0 && self.used_last.lock().elapsed() >= IDLE {
                return;
            }
        }
    }
}

/// Runs `work`, which returns the reason of its end, until the connection is idle or its grant is
/// revoked.
async fn supervise(
    revocation: Revocation,
    shared: Arc<ConnectionInner>,
    work: impl Future<Output = String>,
) {
    let why = tokio::select! {
        why = work => why,
        () = shared.idle() => format!("nobody asked it anything for {}", Span(IDLE)),
        () = revocation.token.cancelled() => "its grant was revoked".to_owned(),
        () = shared.over.cancelled() => return,
    };
    shared.end(why);
}

/// Failure of the protocol negotiation.
fn not_agreed(why: &ClientInitializeError) -> String {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the others say in plain words what is wrong"
    )]
    let words = match why {
        ClientInitializeError::JsonRpcError(why) => {
            return format!("it refuses: \"{}\"", plain_text::line(&why.message, MAX_COMPLAINT));
        }
        ClientInitializeError::ConnectionClosed(_) => "it hung up before it answered".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to `initialize` is another one".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => innermost(&*error.error),
        why => why.to_string(),
    };
    format!("it does not speak the protocol: {}", plain_text::line(&words, MAX_COMPLAINT))
}

/// Words of the innermost cause: the outer ones name types of the program.
pub(super) fn innermost(why: &(dyn Error + 'static)) -> String {
    let mut cause = why;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Copies bytes in both directions until one side closes; returns the reason. The program ends with
/// it.
async fn pump(mut child: Child, hub: &mut DuplexStream, reader: &MessageReader) -> String {
    let (mut from_hub, mut to_hub) = split(hub);
    let mut buffer = vec![0; PIPE];
    let (mut pace, mut complaint, mut lines) = (Pace::new(), String::new(), ServerLines::default());
    loop {
        tokio::select! {
            output = child.next() => match output {
                Output::Stdout(bytes) => {
                    let Relayed { to_hub: told, to_server } = match lines.feed(&bytes) {
                        Ok(relayed) => relayed,
                        Err(LineTooLong) => {
                            return format!("it said a line of more than {} MiB", MAX_LINE >> 20);
                        }
                    };
                    if !to_server.is_empty() {
                        let _ = child.write_stdin(&to_server).await;
                    }
                    if to_hub.write_all(&read_by(reader, &told)).await.is_err() {
                        return "the hub hung up".to_owned();
                    }
                    pace.read(bytes.len()).await;
                }
                Output::Stderr(bytes) => {
                    let text = String::from_utf8_lossy(&bytes);
                    if let Some(last) = text.lines().rfind(|line| !line.trim().is_empty()) {
                        complaint = plain_text::line(last, MAX_COMPLAINT);
                    }
                    pace.read(bytes.len()).await;
                }
                Output::MemoryExceeded(MemoryExceeded { taken, limit }) => {
                    let (taken, limit) = (taken >> 20, limit >> 20);
                    return format!("it took {taken} MiB of memory with all it started, and may take {limit} (`confined.max_memory_mb`)");
                }
                Output::Exited(exit) => {
                    let _ = to_hub.write_all(&read_by(reader, &lines.end().to_hub)).await;
                    return ended(exit, &complaint);
                }
            },
            heard = from_hub.read(&mut buffer) => match heard {
                Ok(0) | Err(_) => return "the hub hung up".to_owned(),
                Ok(length) => {
                    // A program that closed its input reports the reason by its exit.
                    let _ = child.write_stdin(&buffer[..length]).await;
                }
            },
        }
    }
}

/// Reads the program's lines, and returns them for the protocol's library.
fn read_by(reader: &MessageReader, lines: &[u8]) -> Vec<u8> {
    let lines = lines.split(|byte| *byte == b'\n');
    let messages = lines.flat_map(|line| reader.read(line, None));
    messages.flat_map(|message| format!("{message}\n").into_bytes()).collect()
}

fn ended(exit: ProgramExit, complaint: &str) -> String {
    let reason = match exit {
        ProgramExit::Code(code) => format!("it ended with code {code}"),
        ProgramExit::Signal(signal) => format!("it was ended by signal {signal}"),
    };
    if complaint.is_empty() { reason } else { format!("{reason}, and said last: \"{complaint}\"") }
}

/// Rate limit for reading a program's output.
struct Pace {
    since: Instant,
    bytes: usize,
}

impl Pace {
    fn new() -> Self {
        Self { since: Instant::now(), bytes: 0 }
    }

    /// Waits until `bytes` more are within the limit.
    async fn read(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MAX_A_SECOND {
            sleep_until(self.since + Duration::from_secs(1)).await;
        }
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::{reshaped, shapes};
    use a2a_hub_protocol::id::AgentId;
    use rmcp::{model::ListToolsRequest, transport::DynamicTransportError};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    /// An MCP server may send any JSON between its answers, and any JSON as an answer.
    #[tokio::test]
    async fn connection_survives_json_of_any_shape() {
        let (ours, theirs) = duplex(1 << 20);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let (read, mut write) = split(theirs);
            let mut lines = BufReader::new(read).lines();
            let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
            let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" } });
            let mut listed = reshaped(&json!({ "tools": [tool] })).into_iter();
            while let Ok(Some(line)) = lines.next_line().await {
                let request: Value = serde_json::from_str(&line).unwrap();
                let Some(id) = request.get("id") else { continue };
                let result = match request["method"].as_str() {
                    Some("initialize") => hello.clone(),
                    Some("tools/list") => listed.next().unwrap_or_default(),
                    _ => json!({}),
                };
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                let reader = MessageReader::new(AgentId::parse("a").unwrap(), "s".to_owned());
                for told in shapes().iter().chain([&answer]) {
                    for message in reader.read(told.to_string().as_bytes(), None) {
                        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
                    }
                }
            }
        });
        let (read, write) = split(ours);
        let us = Implementation::new("a2a-hub", "1");
        let us = ClientConfig::new(ClientCapabilities::default(), us);
        let transport = AsyncRwTransport::new_client(read, write).with_max_line_length(MAX_LINE);
        let service = us.serve(transport).await.unwrap();
        for _ in 0..reshaped(&json!({ "tools": [{ "name": "t", "inputSchema": {} }] })).len() {
            let request = ListToolsRequest {
                method: Default::default(),
                params: None,
                extensions: Default::default(),
            };
            let request = ClientRequest::ListToolsRequest(request);
            let _ = timeout(PONG_WITHIN, service.peer().send_request(request)).await.unwrap();
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        assert!(service.peer().send_request(ping).await.is_ok(), "it answers still");
    }

    #[test]
    fn negotiation_failure_names_no_type() {
        let closed = ClientInitializeError::ConnectionClosed("x".to_owned());
        assert_eq!(
            not_agreed(&closed),
            "it does not speak the protocol: it hung up before it answered"
        );
        let lost = std::io::Error::other(Failure::Unavailable("it answers 400".to_owned()));
        let error = DynamicTransportError::from_parts(
            "rmcp::transport::worker::WorkerTransport<X>",
            std::any::TypeId::of::<()>(),
            Box::new(lost),
        );
        let context = "send initialize request".into();
        let lost = ClientInitializeError::TransportError { error, context };
        assert_eq!(not_agreed(&lost), "it does not speak the protocol: it answers 400");
    }

    #[tokio::test(start_paused = true)]
    async fn reading_is_limited_per_second() {
        let (mut pace, begun) = (Pace::new(), Instant::now());
        for _ in 0..4 {
            pace.read(MAX_A_SECOND + 1).await;
        }
        assert_eq!(begun.elapsed(), Duration::from_secs(4));
        pace.read(1).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn only_unused_connection_becomes_idle() {
        let shared = ConnectionInner {
            over: CancellationToken::new(),
            fault: Mutex::default(),
            refused: Refusals::default(),
            users: AtomicUsize::new(1),
            used_last: Mutex::new(Instant::now()),
        };
        assert!(timeout(3 * IDLE, shared.idle()).await.is_err(), "somebody uses it");
        shared.users.store(0, Relaxed);
        *shared.used_last.lock() = Instant::now();
        let begun = Instant::now();
        shared.idle().await;
        assert!(
            (IDLE..=IDLE + IDLE_CHECK_INTERVAL).contains(&begun.elapsed()),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn exit_reason_quotes_last_error_line() {
        assert_eq!(ended(ProgramExit::Code(1), ""), "it ended with code 1");
        assert_eq!(
            ended(ProgramExit::Signal(9), "no key"),
            "it was ended by signal 9, and said last: \"no key\""
        );
    }
}
