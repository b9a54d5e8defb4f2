//! MCP on a connection of the unix socket, a message a line, as `a2a-hub mcp` brings it from the standard input of a program.

use super::session::McpSession;
use crate::{dispatcher::Dispatcher, line_reader::LineReader};
use a2a_hub_core::access::Principal;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientJsonRpcMessage, ErrorCode, ServerJsonRpcMessage},
    transport::Transport,
};
use serde_json::json;
use std::io;
use tokio::{io::AsyncRead, sync::mpsc};
use tokio_util::sync::CancellationToken;

/// Serves one client, which may be anybody, until it hangs up or the hub stops.
pub(crate) async fn serve<R: AsyncRead + Send + Unpin>(
    dispatcher: Dispatcher,
    caller: Principal,
    directory: Option<String>,
    reader: &mut LineReader<R>,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
) {
    // The SDK wants to own what it reads from, and the connection is still needed to see whether anybody listens.
    let (lines, taken) = mpsc::channel(1);
    let session = McpSession::new(dispatcher, Some(caller), directory, stop.clone());
    // The SDK cancels what it is given when a session ends.
    let stop = stop.child_token();
    let lost = outbox.clone();
    let talk = async {
        match Box::pin(session.serve_with_ct(Lines { taken, outbox }, stop)).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            Err(why) => tracing::debug!(%why, "an MCP client left before it began"),
        }
    };
    let read = async {
        loop {
            match reader.next_line().await {
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

/// A client's lines, and where its answers go.
struct Lines {
    taken: mpsc::Receiver<String>,
    outbox: mpsc::Sender<Vec<u8>>,
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let outbox = self.outbox.clone();
        async move {
            let line = serde_json::to_vec(&message)?;
            outbox.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = self.taken.recv().await?;
            match serde_json::from_str(&line) {
                Ok(message) => return Some(message),
                Err(why) => {
                    // A client that does not listen misses it.
                    let _ = self.outbox.try_send(no_message(&why));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.taken.close();
        Ok(())
    }
}

/// The answer to a line that was not read.
fn unreadable(why: &A2aError) -> Vec<u8> {
    let is_text = why.kind != ErrorKind::Parse;
    let code = if is_text { ErrorCode::INVALID_REQUEST } else { ErrorCode::PARSE_ERROR };
    refusal(code, &why.message)
}

/// The answer to a line that is no message: no JSON, or JSON of another shape.
fn no_message(why: &serde_json::Error) -> Vec<u8> {
    if why.is_data() {
        let why = "the line is no message of MCP; send one object a line, with a `method`, or with an `id` and a `result`";
        return refusal(ErrorCode::INVALID_REQUEST, why);
    }
    let why = format!("the line is not JSON: {why}; send one JSON object a line");
    refusal(ErrorCode::PARSE_ERROR, &why)
}

/// An error that answers no request in particular.
fn refusal(code: ErrorCode, why: &str) -> Vec<u8> {
    let error = json!({ "code": code.0, "message": why });
    json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string().into_bytes()
}
