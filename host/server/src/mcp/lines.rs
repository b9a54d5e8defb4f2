//! MCP on a connection of the unix socket, a message a line, as `a2a-hub mcp` brings it from the standard input of a program.

use super::session::McpSession;
use crate::{dispatcher::Dispatcher, line_reader::LineReader};
use a2a_hub_core::access::Principal;
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
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
                Err(why) => drop(lost.send(refusal(why.message)).await),
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
                    let why = format!("the line is no message of MCP: {why}");
                    // A client that does not listen misses it.
                    let _ = self.outbox.try_send(refusal(why));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.taken.close();
        Ok(())
    }
}

/// The answer to what is no message.
fn refusal(why: String) -> Vec<u8> {
    let error: ServerJsonRpcMessage =
        JsonRpcMessage::error(ErrorData::parse_error(why, None), None);
    serde_json::to_vec(&error).unwrap_or_default()
}
