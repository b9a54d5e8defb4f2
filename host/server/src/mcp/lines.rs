//! MCP on a connection of the Unix socket, line-delimited. `a2a-hub mcp` relays it from a program's
//! standard input.

use super::{request_ids::RequestIds, session::McpSession};
use crate::rpc::{dispatcher::Dispatcher, line_reader::LineReader};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    foreign,
};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{
        ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use std::io;
use tokio::{io::AsyncRead, sync::mpsc};
use tokio_util::sync::CancellationToken;

/// Serves one client until it disconnects or the hub stops.
pub(crate) async fn serve<R: AsyncRead + Send + Unpin>(
    dispatcher: Dispatcher,
    caller: Principal,
    directory: Option<String>,
    reader: &mut LineReader<R>,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
) {
    // The SDK takes ownership of its input, but the connection is still needed to detect a
    // disconnect.
    let (lines, taken) = mpsc::channel(1);
    let session = McpSession::new(dispatcher, Some(caller), directory, stop.clone());
    // The SDK cancels its token at the end of a session.
    let stop = stop.child_token();
    let lost = outbox.clone();
    let transport = Lines { taken, outbox, ids: RequestIds::default(), refusal: None };
    let talk = async {
        match Box::pin(session.serve_with_ct(transport, stop)).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            Err(why) => tracing::debug!(%why, "an MCP client left before it began"),
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
struct Lines {
    taken: mpsc::Receiver<String>,
    outbox: mpsc::Sender<Vec<u8>>,
    /// Ids of the client's requests.
    ids: RequestIds<RequestId>,
    /// Pending error response to a line that was not passed to the SDK.
    refusal: Option<Vec<u8>>,
}

impl Lines {
    /// Admits a message to the session, or returns the error response for a request whose id is in
    /// use.
    fn admits(&mut self, message: &ClientJsonRpcMessage) -> Result<(), Vec<u8>> {
        match message {
            JsonRpcMessage::Request(request) => {
                let refused = self.ids.begin(&request.id);
                refused.map_err(|why| {
                    let why = ErrorData::invalid_request(why.why(), None);
                    error(why, Some(request.id.clone()))
                })
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ids.cancelled(id);
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        answered.into_iter().for_each(|id| self.ids.answered(id));
        let outbox = self.outbox.clone();
        async move {
            let line = serde_json::to_vec(&message)?;
            outbox.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.refusal.is_some() {
                // The SDK may drop this future and call again, so the response is kept until it can
                // be sent.
                let room = self.outbox.reserve().await.ok()?;
                if let Some(refusal) = self.refusal.take() {
                    room.send(refusal);
                }
            }
            let line = self.taken.recv().await?;
            self.refusal = match foreign::read_as(line.as_bytes()) {
                Ok(message) => match self.admits(&message) {
                    Ok(()) => return Some(message),
                    Err(refused) => Some(refused),
                },
                Err(why) => Some(no_message(&why, &line)),
            };
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.taken.close();
        Ok(())
    }
}

fn error(why: ErrorData, id: Option<RequestId>) -> Vec<u8> {
    let error: ServerJsonRpcMessage = JsonRpcMessage::error(why, id);
    serde_json::to_vec(&error).unwrap_or_default()
}

/// Error response to an unreadable line.
fn unreadable(why: &A2aError) -> Vec<u8> {
    let is_text = why.kind != ErrorKind::Parse;
    let code = if is_text { ErrorCode::INVALID_REQUEST } else { ErrorCode::PARSE_ERROR };
    refusal(code, &why.message, None)
}

/// Error response to a line that is not JSON, or not a message.
fn no_message(why: &serde_json::Error, line: &str) -> Vec<u8> {
    let id = foreign::request_id(line.as_bytes());
    if why.is_data() {
        let why = "the line is no message of MCP; send one object a line, with a `method`, or with an `id` and a `result`";
        return refusal(ErrorCode::INVALID_REQUEST, why, id.as_ref());
    }
    let why = format!("the line is not JSON: {why}; send one JSON object a line");
    refusal(ErrorCode::PARSE_ERROR, &why, id.as_ref())
}

/// Error response to a request that was not passed to the SDK.
fn refusal(code: ErrorCode, why: &str, id: Option<&Value>) -> Vec<u8> {
    let error = json!({ "code": code.0, "message": why });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}
