//! Client of the hub, with the same calls over HTTP and over the unix socket.

use crate::Endpoints;
use futures::TryStreamExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::{future::Future, io, path::PathBuf, pin::Pin, time::Duration};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::UnixStream,
    time,
};
use tokio_util::io::StreamReader;
use uuid::Uuid;

/// Timeout of a test for one response or one event.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Client of one hub. Every call is a separate request.
#[derive(Clone, Debug)]
pub struct Client(Wire);

#[derive(Clone, Debug)]
enum Wire {
    Http { client: reqwest::Client, url: String, headers: HeaderMap },
    Unix { socket: PathBuf },
}

/// Error of a call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RpcError {
    /// The hub refused.
    #[error("the hub refused with {code}: {message} {data}")]
    Refused {
        /// Code of JSON-RPC or A2A.
        code: i64,
        /// Text for people.
        message: String,
        /// Data for machines, or null.
        data: Value,
    },
    /// No response, or an invalid one.
    #[error("no answer: {0}")]
    Lost(String),
}

impl RpcError {
    /// Code of a refusal.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Lost(_) => None,
        }
    }

    fn lost(why: impl std::fmt::Display) -> Self {
        Self::Lost(why.to_string())
    }
}

/// Parameters of `message/send` and `message/stream`: a text for an agent.
pub fn message_to(agent: &str, text: &str) -> Value {
    json!({"message": {
        "kind": "message",
        "messageId": Uuid::now_v7().to_string(),
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
        "metadata": {"targetAgent": agent},
    }})
}

impl Client {
    /// Creates a client that speaks JSON-RPC over HTTP.
    pub fn http(hub: &Endpoints) -> Self {
        let url = format!("http://{}", hub.http());
        Self(Wire::Http { client: reqwest::Client::new(), url, headers: HeaderMap::new() })
    }

    /// Creates a client that speaks JSON-RPC over the unix socket.
    pub fn unix(hub: &Endpoints) -> Self {
        Self(Wire::Unix { socket: hub.socket().to_owned() })
    }

    /// Adds a header to every call over HTTP; the unix socket has no headers.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        if let Wire::Http { headers, .. } = &mut self.0 {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        self
    }

    /// Calls a method that has one result.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let request = request(method, &params);
        within(async {
            match &self.0 {
                Wire::Http { client, url, headers } => {
                    unpack(&body(post(client, format!("{url}/"), headers, &request).await?).await?)
                }
                Wire::Unix { socket } => {
                    let answer = send_line(socket, &request).await?.next_line().await;
                    let answer = answer.map_err(RpcError::lost)?;
                    unpack(&parse(&answer.ok_or_else(|| RpcError::lost("the connection ended"))?)?)
                }
            }
        })
        .await
    }

    /// Calls a method that has a stream of results.
    pub async fn stream(&self, method: &str, params: Value) -> Result<Updates, RpcError> {
        let request = request(method, &params);
        within(async {
            let (lines, framing) = match &self.0 {
                Wire::Http { client, url, headers } => {
                    let url = format!("{url}/stream");
                    let response = post(client, url, headers, &request).await?;
                    if !is_event_stream(&response) {
                        let answer = unpack(&body(response).await?)?;
                        return Err(RpcError::Lost(format!("no stream, but {answer}")));
                    }
                    let bytes = response.bytes_stream().map_err(io::Error::other);
                    (lines(StreamReader::new(bytes)), Framing::Sse)
                }
                Wire::Unix { socket } => (send_line(socket, &request).await?, Framing::Ndjson),
            };
            Ok(Updates { lines, framing, last_event_id: None })
        })
        .await
    }
}

/// Results of a streaming call, in order.
pub struct Updates {
    lines: AnyLines,
    framing: Framing,
    last_event_id: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Sse,
    Ndjson,
}

impl Updates {
    /// Next result; `None` once the hub has ended the stream.
    pub async fn next(&mut self) -> Option<Result<Value, RpcError>> {
        let document = within(async {
            match self.framing {
                Framing::Sse => self.next_event().await,
                Framing::Ndjson => self.next_document().await,
            }
        });
        document.await.and_then(|document| document.as_ref().map(unpack).transpose()).transpose()
    }

    /// All remaining results of the stream.
    pub async fn rest(mut self) -> Result<Vec<Value>, RpcError> {
        let mut results = Vec::new();
        while let Some(result) = self.next().await {
            results.push(result?);
        }
        Ok(results)
    }

    /// Id of the latest event, over HTTP.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// Data of the next server-sent event.
    async fn next_event(&mut self) -> Result<Option<Value>, RpcError> {
        let mut data = String::new();
        while let Some(line) = self.lines.next_line().await.map_err(RpcError::lost)? {
            if line.is_empty() && !data.is_empty() {
                return parse(&data).map(Some);
            } else if let Some(more) = line.strip_prefix("data:") {
                data.push_str(more);
            } else if let Some(id) = line.strip_prefix("id:") {
                self.last_event_id = Some(id.trim().to_owned());
            }
        }
        Ok(None)
    }

    /// Next line; `None` for the one that ends the stream.
    async fn next_document(&mut self) -> Result<Option<Value>, RpcError> {
        let line = self.lines.next_line().await.map_err(RpcError::lost)?;
        let line = line.ok_or_else(|| RpcError::lost("the connection ended before the stream"))?;
        let document = parse(&line)?;
        Ok((document["result"]["kind"] != "stream-end").then_some(document))
    }
}

type AnyLines = Lines<Pin<Box<dyn AsyncBufRead + Send>>>;

fn lines(reader: impl AsyncBufRead + Send + 'static) -> AnyLines {
    let reader: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(reader);
    reader.lines()
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": Uuid::now_v7().to_string(), "method": method, "params": params})
}

async fn within<T>(answer: impl Future<Output = Result<T, RpcError>>) -> Result<T, RpcError> {
    let silent = |_| Err(RpcError::Lost(format!("silent for {ANSWER_WITHIN:?}")));
    time::timeout(ANSWER_WITHIN, answer).await.unwrap_or_else(silent)
}

async fn post(
    client: &reqwest::Client,
    url: String,
    headers: &HeaderMap,
    request: &Value,
) -> Result<reqwest::Response, RpcError> {
    let request = client.post(url).headers(headers.clone()).json(request);
    request.send().await.map_err(RpcError::lost)
}

fn is_event_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Body of a response of any status: errors are JSON-RPC too.
async fn body(response: reqwest::Response) -> Result<Value, RpcError> {
    let status = response.status();
    let text = response.text().await.map_err(RpcError::lost)?;
    parse(&text).map_err(|_| RpcError::Lost(format!("{status}: {text}")))
}

async fn send_line(socket: &PathBuf, request: &Value) -> Result<AnyLines, RpcError> {
    let mut stream = UnixStream::connect(socket).await.map_err(RpcError::lost)?;
    stream.write_all(format!("{request}\n").as_bytes()).await.map_err(RpcError::lost)?;
    Ok(lines(BufReader::new(stream)))
}

fn parse(text: &str) -> Result<Value, RpcError> {
    serde_json::from_str(text).map_err(|why| RpcError::Lost(format!("{why} in: {text}")))
}

/// Result of a JSON-RPC response.
fn unpack(response: &Value) -> Result<Value, RpcError> {
    if let Some(error) = response.get("error") {
        return Err(RpcError::Refused {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        });
    }
    let result = response.get("result").cloned();
    result.ok_or_else(|| RpcError::Lost(format!("no JSON-RPC response: {response}")))
}

#[cfg(test)]
mod tests;
