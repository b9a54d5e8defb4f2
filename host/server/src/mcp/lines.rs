//! MCP on a connection of the Unix socket, line-delimited. `a2a-hub mcp` relays it from a program's
//! standard input.

use super::{
    batch::Batches,
    message::{self, ClientMessage, McpFrame, McpMessage, McpRefusal},
    request_ids::RequestIds,
    session::{McpSession, SessionOffer},
    tasks,
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_rpc::{dispatcher::Dispatcher, line_reader::LineReader};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta as _,
        JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use serde_json::Value;
use std::{
    collections::{HashSet, VecDeque},
    io,
};
use tokio::{io::AsyncRead, sync::mpsc};
use tokio_util::sync::CancellationToken;

/// Serves one client until it disconnects or the hub stops.
pub(crate) async fn serve<R: AsyncRead + Send + Unpin>(
    dispatcher: Dispatcher,
    caller: Principal,
    offer: SessionOffer,
    reader: &mut LineReader<R>,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
) {
    // The SDK takes ownership of its input, but the connection is still needed to detect a
    // disconnect.
    let (lines, taken) = mpsc::channel(1);
    let session = McpSession::new(dispatcher, Some(caller), offer, stop.clone());
    // The SDK cancels its token at the end of a session.
    let stop = stop.child_token();
    let lost = outbox.clone();
    let transport = LineTransport::new(taken, outbox);
    let talk = async {
        match Box::pin(session.serve_with_ct(transport, stop)).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            Err(why) => tracing::debug!(%why, "MCP session ended before its first request"),
        }
    };
    let read = async {
        loop {
            match reader.next_lossy_line().await {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => {
                    if lines.send(line).await.is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(why) => drop(lost.send(unreadable(&why)).await),
            }
        }
        drop(lines);
    };
    tokio::pin!(talk);
    tokio::select! {
        () = &mut talk => {}
        () = read => talk.await,
        () = lost.closed() => {}
    }
}

/// Transport between the SDK and a client's lines.
struct LineTransport {
    taken: mpsc::Receiver<String>,
    outbox: mpsc::Sender<Vec<u8>>,
    /// Ids of the client's requests.
    ids: RequestIds<RequestId>,
    /// Pending responses that do not come from the SDK.
    responses: VecDeque<Value>,
    /// Messages for the SDK that were read with another one, in a batch.
    messages: VecDeque<ClientJsonRpcMessage>,
    /// True after the request that begins the session. Before it, the SDK takes requests only.
    has_begun: bool,
    /// Version of the session, if it was negotiated by a handshake.
    version: Option<ProtocolVersion>,
    batches: Batches,
}

impl LineTransport {
    fn new(taken: mpsc::Receiver<String>, outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            taken,
            outbox,
            ids: RequestIds::default(),
            responses: VecDeque::new(),
            messages: VecDeque::new(),
            has_begun: false,
            version: None,
            batches: Batches::default(),
        }
    }

    /// Takes a line: queues its messages for the SDK, and responses to what the SDK does not get.
    fn take_line(&mut self, line: &str) {
        match message::read(line.as_bytes()) {
            McpFrame::One(read) => {
                if let Some(response) = self.take_one(read) {
                    self.responses.push_back(response);
                }
            }
            McpFrame::Batch(_) if self.version != Some(ProtocolVersion::V_2025_03_26) => {
                self.responses.push_back(no_batches().json());
            }
            McpFrame::Batch(reads) => self.take_batch(reads),
        }
    }

    fn take_batch(&mut self, reads: Vec<McpMessage>) {
        let (mut open, mut responses) = (HashSet::new(), Vec::new());
        for read in reads {
            let id = match &read {
                McpMessage::Message(message) if message.is_initialize() => {
                    responses.push(no_handshake(message).json());
                    continue;
                }
                McpMessage::Message(message) => message.request_id().cloned(),
                McpMessage::Refused(_) | McpMessage::Skipped => None,
            };
            match self.take_one(read) {
                Some(response) => responses.push(response),
                None => open.extend(id),
            }
        }
        self.responses.extend(self.batches.begin(open, responses));
    }

    /// Queues a message for the SDK, or returns the response to one that the SDK does not get.
    fn take_one(&mut self, read: McpMessage) -> Option<Value> {
        let message = match read {
            McpMessage::Message(message) => message.message,
            McpMessage::Refused(why) => return Some(why.json()),
            McpMessage::Skipped => return None,
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                if let Err(why) = self.ids.begin(&request.id) {
                    let id = request.id.clone().into_json_value();
                    return Some(McpRefusal::request(&why.why(), id).json());
                }
                self.has_begun |= begins(&request.request);
            }
            // The SDK ends a session that begins with anything but a request.
            _ if !self.has_begun => {
                tracing::debug!("an MCP client's message before its first request is skipped");
                return None;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ids.cancelled(id);
                    self.responses.extend(self.batches.answered(id, None));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        self.messages.push_back(message);
        None
    }

    /// Notes a message of the SDK, and returns what is sent for it.
    fn give(&mut self, message: ServerJsonRpcMessage) -> Result<Option<Vec<u8>>, io::Error> {
        let answered = match &message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.version = Some(result.protocol_version.clone());
                }
                Some(response.id.clone())
            }
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let message = tasks::in_core_form(message, self.version.as_ref());
        let Some(id) = answered else { return Ok(Some(serde_json::to_vec(&message)?)) };
        self.ids.answered(&id);
        if !self.batches.has(&id) {
            return Ok(Some(serde_json::to_vec(&message)?));
        }
        let all = self.batches.answered(&id, Some(serde_json::to_value(&message)?));
        Ok(all.map(|all| all.to_string().into_bytes()))
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let line = self.give(message);
        let outbox = self.outbox.clone();
        async move {
            let Some(line) = line? else { return Ok(()) };
            outbox.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // The SDK may drop this future and call again, so a response is kept until it can be
            // sent.
            while !self.responses.is_empty() {
                let permit = self.outbox.reserve().await.ok()?;
                if let Some(response) = self.responses.pop_front() {
                    permit.send(response.to_string().into_bytes());
                }
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let line = self.taken.recv().await?;
            self.take_line(&line);
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.taken.close();
        Ok(())
    }
}

/// True for a request with which the SDK begins a session: a handshake, or a request with all the
/// metadata of the versions without one.
fn begins(request: &ClientRequest) -> bool {
    if matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)) {
        return false;
    }
    let meta = request.get_meta();
    let is_complete = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
    let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
    matches!(request, ClientRequest::InitializeRequest(_))
        || is_complete && meta.protocol_version().is_some_and(is_known)
}

/// Error response to a batch of another version.
pub(super) fn no_batches() -> McpRefusal {
    let why = "a message of MCP is one JSON object with a `method` or an answer; only sessions of 2025-03-26 have batches";
    McpRefusal::request(why, Value::Null)
}

/// Error response to a handshake in a batch.
pub(super) fn no_handshake(message: &ClientMessage) -> McpRefusal {
    let id = message.request_id().cloned().map(RequestId::into_json_value);
    let why = "`initialize` cannot be part of a batch; send it alone";
    McpRefusal::request(why, id.unwrap_or_default())
}

/// Error response to an unreadable line.
fn unreadable(why: &A2aError) -> Vec<u8> {
    let is_text = why.kind != ErrorKind::Parse;
    let code = if is_text { ErrorCode::INVALID_REQUEST } else { ErrorCode::PARSE_ERROR };
    McpRefusal::new(code, &*why.message, Value::Null).json().to_string().into_bytes()
}
