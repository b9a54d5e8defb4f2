//! Line-delimited JSON-RPC 2.0 with requests in both directions.

use a2a_hub_protocol::foreign::{self, NotJson};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::sync::{mpsc, oneshot};

/// Notification in both directions: the sender of a request does not wait for it any more.
pub(super) const CANCEL_REQUEST: &str = "$/cancel_request";

/// A message from the client.
#[derive(Debug, PartialEq)]
pub(super) enum AcpMessage {
    /// A request, which gets a response.
    Request { id: Value, method: String, params: Value },
    /// A notification.
    Notice { method: String, params: Value },
    /// A response to a request of the hub.
    Answer { id: Option<u64>, result: Option<Value> },
}

/// Error response to a request.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) why: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    /// Creates the error for a missing or invalid parameter.
    pub(super) fn params(why: impl Into<String>) -> Self {
        Self { code: -32602, why: why.into(), data: None }
    }

    /// Creates the error for a JSON line that is not a message.
    fn message(problem: &str) -> Self {
        let why = format!(
            "the line is no message of JSON-RPC 2.0: {problem}; send one object a line, with a `method`, or with an `id` and a `result`"
        );
        Self { code: -32600, why, data: None }
    }

    /// Creates the error for a request that the client cancelled.
    pub(super) fn cancelled() -> Self {
        Self { code: -32800, why: "the client cancelled the request".to_owned(), data: None }
    }

    /// Creates the error for an unknown method.
    pub(super) fn method(name: &str) -> Self {
        let why = format!("`{name}` is no method of this agent");
        Self { code: -32601, why, data: None }
    }
}

/// Creates the error for a session that is not open.
pub(super) fn no_session(id: &str) -> Refusal {
    let why = format!(
        "no session is called `{id}`; begin one with `session/new`, or open an earlier one with `session/load`"
    );
    Refusal { code: -32002, why, data: None }
}

/// Parses a line. A line that is not understood yields an error and the id of its response, which
/// is `null` if the line has none.
pub(super) fn read(line: &str) -> Result<AcpMessage, (Value, Refusal)> {
    let message = match foreign::read(line.as_bytes()) {
        Ok(message) => message,
        Err(NotJson { why, members }) => {
            if let Some(id) = members.get("id").and_then(number)
                && !members.contains_key("method")
            {
                // The hub's request fails at once in place of waiting.
                return Ok(AcpMessage::Answer { id: Some(id), result: None });
            }
            let why = format!("the line is not JSON: {why}; send one JSON object a line");
            let id = foreign::request_id(line.as_bytes()).unwrap_or_default();
            return Err((id, Refusal { code: -32700, why, data: None }));
        }
    };
    understand(message)
        .map_err(|why| (foreign::request_id(line.as_bytes()).unwrap_or_default(), why))
}

fn understand(message: Value) -> Result<AcpMessage, Refusal> {
    let Value::Object(mut message) = message else {
        return Err(Refusal::message("it is no JSON object, and there are no batches"));
    };
    let method = match message.remove("method") {
        None => None,
        Some(Value::String(method)) => Some(method),
        Some(_) => return Err(Refusal::message("its `method` is no string")),
    };
    let id = message.remove("id");
    if matches!(id, Some(Value::Bool(_) | Value::Array(_) | Value::Object(_))) {
        return Err(Refusal::message("its `id` is neither a string nor a number"));
    }
    let params = message.remove("params").unwrap_or_default();
    Ok(match (method, id) {
        (Some(method), Some(id)) => AcpMessage::Request { id, method, params },
        (Some(method), None) => AcpMessage::Notice { method, params },
        (None, Some(id)) => {
            AcpMessage::Answer { id: number(&id), result: message.remove("result") }
        }
        (None, None) => return Err(Refusal::message("it has neither `method` nor `id`")),
    })
}

/// Id of a request of the hub; clients may write `1` as `1.0` or `"1"`.
fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| match id {
        Value::String(digits) => digits.parse().ok(),
        Value::Number(number) => number.to_string().strip_suffix(".0")?.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    })
}

/// Sender of messages to the client.
pub(super) struct Wire {
    outbox: mpsc::Sender<Vec<u8>>,
    ids: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
}

impl Wire {
    pub(super) fn new(outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self { outbox, ids: AtomicU64::new(1), waiting: Mutex::default() }
    }

    /// Sends the response to a request.
    pub(super) async fn answer(&self, id: &Value, answer: Result<Value, Refusal>) {
        let response = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(Refusal { code, why, data }) => {
                let mut error = json!({ "code": code, "message": why });
                if let Some(data) = data {
                    error["data"] = data;
                }
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        self.send(&response).await;
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request and waits for its result; `None` if the client answers with an error or
    /// disconnects.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(id, sender);
        let _forget = Forget { wire: self, id };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        answer.await.ok()
    }

    /// Delivers a response to the waiting request.
    pub(super) fn answered(&self, id: Option<u64>, result: Option<Value>) {
        let mut waiting = self.waiting.lock();
        // A client that could not read a request returns an error with the id null. Most likely it
        // concerns the latest request, which would wait for ever.
        let id = id.or_else(|| waiting.keys().max().copied().filter(|_| result.is_none()));
        let sender = id.and_then(|id| waiting.remove(&id));
        drop(waiting);
        if let (Some(sender), Some(result)) = (sender, result) {
            // The waiting request may have been dropped.
            let _ = sender.send(result);
        }
    }

    /// A message for a disconnected client is dropped.
    async fn send(&self, message: &Value) {
        let _ = self.outbox.send(message.to_string().into_bytes()).await;
    }
}

/// Removes a waiting request on drop. If the client has not answered it yet, it gets
/// [`CANCEL_REQUEST`], so that it can close its dialog.
struct Forget<'a> {
    wire: &'a Wire,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if self.wire.waiting.lock().remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id });
            let cancel = json!({ "jsonrpc": "2.0", "method": CANCEL_REQUEST, "params": params });
            // A full outbox belongs to a client that reads nothing.
            let _ = self.wire.outbox.try_send(cancel.to_string().into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_classified_by_members() {
        let params = json!({ "a": 1 });
        let request = read(r#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1}}"#);
        let method = "m".to_owned();
        let heard =
            AcpMessage::Request { id: json!("x"), method: method.clone(), params: params.clone() };
        assert_eq!(request, Ok(heard));
        let notice = read(r#"{"jsonrpc":"2.0","method":"m","params":{"a":1}}"#);
        assert_eq!(notice, Ok(AcpMessage::Notice { method, params: params.clone() }));
        let answer = read(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
        assert_eq!(answer, Ok(AcpMessage::Answer { id: Some(7), result: Some(params) }));
        let refused = read(r#"{"jsonrpc":"2.0","id":7,"error":{}}"#);
        assert_eq!(refused, Ok(AcpMessage::Answer { id: Some(7), result: None }));
        for (line, code, id) in [
            ("{", -32700, json!(null)),
            ("{}", -32600, json!(null)),
            (r#"{"id":"a","method":"m","params":{"#, -32700, json!("a")),
            (r#"{"id":5,"method":{}}"#, -32600, json!(5)),
            (r#"{"id":[],"method":"m"}"#, -32600, json!(null)),
        ] {
            let (asked, refusal) = read(line).unwrap_err();
            assert_eq!((refusal.code, asked), (code, id), "{line}");
        }
    }

    /// JavaScript cuts an emoji into halves, and some clients write ids as text.
    #[test]
    fn faulty_line_keeps_its_request() {
        let request = read("\u{feff}{\"id\":1,\"method\":\"m\",\"params\":\"\\ud83d\"}");
        let method = "m".to_owned();
        assert_eq!(
            request,
            Ok(AcpMessage::Request { id: json!(1), method, params: json!("\u{fffd}") })
        );
        for line in [
            r#"{"id":7,"result":{"a":"#,
            r#"{"id":"7","error":{"code":1}}"#,
            r#"{"id":7.0,"error":{}}"#,
        ] {
            assert_eq!(read(line), Ok(AcpMessage::Answer { id: Some(7), result: None }), "{line}");
        }
    }

    #[tokio::test]
    async fn error_without_id_ends_latest_request() {
        let (outbox, _sent) = mpsc::channel(8);
        let wire = Wire::new(outbox);
        let reply = async { wire.answered(None, None) };
        let (answered, ()) = tokio::join!(wire.ask("m", json!({})), reply);
        assert_eq!(answered, None);
    }

    #[tokio::test]
    async fn dropped_request_is_cancelled_at_client() {
        let (outbox, mut sent) = mpsc::channel(8);
        let wire = Wire::new(outbox);
        let ask = wire.ask("m", json!({}));
        let _ = tokio::time::timeout(std::time::Duration::ZERO, ask).await;
        let mut next = || serde_json::from_slice::<Value>(&sent.try_recv().unwrap()).unwrap();
        let id = next()["id"].clone();
        let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } });
        assert_eq!(next(), cancel);
    }

    #[test]
    fn answer_id_is_read_in_any_form() {
        for id in ["7", "7.0", "\"7\""] {
            let answer = read(&format!(r#"{{"id":{id},"result":null}}"#));
            assert_eq!(
                answer,
                Ok(AcpMessage::Answer { id: Some(7), result: Some(Value::Null) }),
                "{id}"
            );
        }
    }

    proptest::proptest! {
        /// Every line with a method and an id gets an answer: it is a request, or refused.
        #[test]
        fn any_line_is_read_or_refused(line in crate::tests::line_strategy::lines()) {
            let heard = read(&String::from_utf8_lossy(&line));
            let json: Value = serde_json::from_slice(&line).unwrap_or_default();
            if json.get("id").is_some() && json["method"].is_string() {
                let is_answered = matches!(heard, Ok(AcpMessage::Request { .. }) | Err(_));
                proptest::prop_assert!(is_answered, "{json}: {heard:?}");
            }
        }
    }

    #[tokio::test]
    async fn response_is_matched_by_request_id() {
        let (outbox, mut sent) = mpsc::channel(8);
        let wire = Wire::new(outbox);
        let reply = async {
            for result in [Some(json!("yes")), None] {
                let asked: Value = serde_json::from_slice(&sent.recv().await.unwrap()).unwrap();
                wire.answered(Some(9_999), Some(json!("to nobody")));
                wire.answered(asked["id"].as_u64(), result);
            }
        };
        let ask = async { (wire.ask("m", json!({})).await, wire.ask("m", json!({})).await) };
        let ((answered, refused), ()) = tokio::join!(ask, reply);
        assert_eq!((answered, refused), (Some(json!("yes")), None));
        assert!(wire.waiting.lock().is_empty());
    }
}
