//! MCP client that exchanges lines on a hub's socket.

use crate::Endpoints;
use anyhow::Result;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

/// Sends lines on the hub's socket, and returns this number of responses.
pub async fn spoken(hub: &Endpoints, lines: &[Value], answers: usize) -> Result<Vec<Value>> {
    let (read, mut write) = UnixStream::connect(hub.socket()).await?.into_split();
    for line in lines {
        write.write_all(format!("{line}\n").as_bytes()).await?;
    }
    let mut told = BufReader::new(read).lines();
    let mut heard = Vec::new();
    while heard.len() < answers {
        let Some(line) = told.next_line().await? else { break };
        heard.push(serde_json::from_str(&line)?);
    }
    Ok(heard)
}

/// Request that switches a connection to MCP.
pub fn speak(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "hub/speak", "params": params })
}

/// First request of a client.
pub fn initialize() -> Value {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params })
}
