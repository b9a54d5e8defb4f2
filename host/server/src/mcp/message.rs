//! Reader for a client's messages: JSON of any shape becomes messages, or errors with the right
//! code and id. The SDK takes a request with wrong parameters for a request of an unknown method,
//! and a request with a wrong id for a notification.

use super::tasks::UNREAD;
use a2a_hub_protocol::foreign::{self, NotJson};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientJsonRpcMessage, ClientRequest,
    CompleteRequestParams, ErrorCode, ErrorData, GetPromptRequestParams, Implementation,
    InitializeRequestParams, JsonRpcMessage, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, RequestId, SubscribeRequestParams, SubscriptionsListenRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Maximum number of messages of a batch.
pub(super) const MAX_BATCH: usize = 100;

/// Member of `_meta` with the version of a request, since 2026-07-28.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Messages of a line or body.
#[derive(Debug)]
pub(super) enum McpFrame {
    One(McpMessage),
    /// A batch, which only the version 2025-03-26 has.
    Batch(Vec<McpMessage>),
}

/// A read message.
#[derive(Debug)]
pub(super) enum McpMessage {
    Message(Box<ClientMessage>),
    /// Needs an answer with this error.
    Refused(McpRefusal),
    /// A notification that cannot be read; nobody waits for an answer.
    Skipped,
}

/// A message as the SDK knows it, and as JSON.
#[derive(Debug)]
pub(super) struct ClientMessage {
    pub(super) message: ClientJsonRpcMessage,
    pub(super) json: Value,
}

/// Error response to a message.
#[derive(Debug, PartialEq)]
pub(super) struct McpRefusal {
    pub(super) code: ErrorCode,
    pub(super) why: String,
    /// Id of the request; `Null` if it has none that could be echoed.
    pub(super) id: Value,
}

impl McpRefusal {
    pub(super) fn new(code: ErrorCode, why: impl Into<String>, id: Value) -> Self {
        Self { code, why: why.into(), id }
    }

    /// Creates the error for JSON that is no message.
    pub(super) fn request(why: &str, id: Value) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, why, id)
    }

    /// The response.
    pub(super) fn json(&self) -> Value {
        let error = json!({ "code": self.code.0, "message": self.why });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }
}

impl ClientMessage {
    /// Id of a request.
    pub(super) fn request_id(&self) -> Option<&RequestId> {
        let JsonRpcMessage::Request(request) = &self.message else { return None };
        Some(&request.id)
    }

    /// True for the request that begins a session.
    pub(super) fn is_initialize(&self) -> bool {
        matches!(&self.message, JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::InitializeRequest(_)))
    }
}

/// Reads a line or body.
pub(super) fn read(bytes: &[u8]) -> McpFrame {
    match foreign::read(bytes) {
        Ok(Value::Array(messages)) if messages.is_empty() => {
            let why = "the batch is empty; send one JSON object with a `method`, or with an `id` and a `result`";
            McpFrame::One(McpMessage::Refused(McpRefusal::request(why, Value::Null)))
        }
        Ok(Value::Array(messages)) if messages.len() > MAX_BATCH => {
            let why =
                format!("the batch has {} messages; send {MAX_BATCH} at most", messages.len());
            McpFrame::One(McpMessage::Refused(McpRefusal::request(&why, Value::Null)))
        }
        Ok(Value::Array(messages)) => McpFrame::Batch(messages.into_iter().map(one).collect()),
        Ok(message) => McpFrame::One(one(message)),
        Err(NotJson { why, members }) => {
            let why = format!("the message is not JSON: {why}; send one JSON object");
            let id = members
                .get("id")
                .filter(|id| members.contains_key("method") && request_id(id).is_some());
            let id = id.cloned().unwrap_or_default();
            McpFrame::One(McpMessage::Refused(McpRefusal::new(ErrorCode::PARSE_ERROR, why, id)))
        }
    }
}

fn one(message: Value) -> McpMessage {
    let refused = |why: &str, id: Option<Value>| {
        let why = format!(
            "no message of JSON-RPC 2.0: {why}; send one object with a `method`, or with an `id` and a `result`"
        );
        // Only a valid id is echoed.
        let id = id.filter(|id| request_id(id).is_some()).unwrap_or_default();
        McpMessage::Refused(McpRefusal::request(&why, id))
    };
    let Value::Object(mut message) = message else { return refused("it is no object", None) };
    // A response of another version still ends the wait for it.
    let is_response = !message.contains_key("method") && has_outcome(&message);
    if !is_response && message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused("its `jsonrpc` is not \"2.0\"", message.remove("id"));
    }
    message.insert("jsonrpc".to_owned(), "2.0".into());
    // A client that writes all members writes null for those that it does not use.
    for name in ["method", "params"] {
        if message.get(name).is_some_and(Value::is_null) {
            message.remove(name);
        }
    }
    let id = message.get("id").cloned();
    match (message.get("method"), &id) {
        (Some(Value::String(method)), None) => {
            let method = method.clone();
            notification(message).unwrap_or_else(|| {
                tracing::debug!(method, "an MCP client's notification cannot be read");
                McpMessage::Skipped
            })
        }
        (Some(Value::String(method)), Some(id)) => {
            let method = method.clone();
            match request_id(id) {
                Some(id) => request(&method, id, message),
                None => refused("its `id` is neither a string nor an integer", None),
            }
        }
        (Some(_), _) => refused("its `method` is no string", id),
        (None, None) => refused("it has neither `method` nor `id`", None),
        (None, Some(id)) => match (request_id(id), has_outcome(&message)) {
            (Some(id), true) => answer(id, message),
            (Some(_), false) => refused("it has neither `method` nor `result`", Some(id.clone())),
            (None, _) => refused("its `id` is neither a string nor an integer", None),
        },
    }
}

fn request_id(id: &Value) -> Option<RequestId> {
    serde_json::from_value(id.clone()).ok()
}

fn has_outcome(message: &Map<String, Value>) -> bool {
    message.contains_key("result") || message.contains_key("error")
}

fn parsed(message: Map<String, Value>) -> Option<ClientMessage> {
    let json = Value::Object(message);
    serde_json::from_value(json.clone()).ok().map(|message| ClientMessage { message, json })
}

fn notification(mut message: Map<String, Value>) -> Option<McpMessage> {
    drop_odd_meta(&mut message);
    let read = parsed(message)?;
    matches!(read.message, JsonRpcMessage::Notification(_))
        .then(|| McpMessage::Message(Box::new(read)))
}

fn request(method: &str, id: RequestId, mut message: Map<String, Value>) -> McpMessage {
    // The JSON form of a number may differ: `1.0` is 1.
    let id = id.into_json_value();
    let refused = |why: &str| {
        let why = format!("call `{method}`: {why}");
        McpMessage::Refused(McpRefusal::new(ErrorCode::INVALID_PARAMS, why, id.clone()))
    };
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return refused("`params` must be an object");
    }
    drop_odd_meta(&mut message);
    let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
    if is_removed(method, &params) {
        let why = format!(
            "version 2026-07-28 has no method `{method}`; its methods for that are `server/discover` and \
             `subscriptions/listen`"
        );
        return McpMessage::Refused(McpRefusal::new(ErrorCode::METHOD_NOT_FOUND, why, id));
    }
    // The SDK takes a page whose cursor it cannot read for the first one.
    let is_paged = matches!(
        method,
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list"
    );
    let cursor = params.get("cursor").filter(|_| is_paged);
    if cursor.is_some_and(|cursor| !(cursor.is_string() || cursor.is_null())) {
        return refused("`cursor` must be the `nextCursor` of the page before");
    }
    if is_of_tasks(method, &params) {
        if params.get("task").is_some_and(|task| !task.is_object()) {
            return refused("`task` must be an object, such as {}");
        }
        message.insert("method".to_owned(), format!("{UNREAD}{method}").into());
        let read = parsed(message).map(|read| McpMessage::Message(Box::new(read)));
        return read.unwrap_or_else(|| refused("it cannot be read"));
    }
    if method == "initialize" {
        message.insert("params".to_owned(), completed(params.clone()));
    }
    let Some(read) = parsed(message) else { return refused("it cannot be read") };
    let JsonRpcMessage::Request(request) = &read.message else {
        return refused("it cannot be read");
    };
    let is_unknown = matches!(&request.request, ClientRequest::CustomRequest(_));
    match is_unknown.then(|| wrong_params(method, params)).flatten() {
        Some(why) => refused(&format!("`params`: {why}")),
        None => McpMessage::Message(Box::new(read)),
    }
}

/// Response to a request of the hub. An unreadable one ends the wait for it, as an error does.
fn answer(id: RequestId, message: Map<String, Value>) -> McpMessage {
    let read = parsed(message).filter(|read| {
        matches!(read.message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
    });
    let read = read.unwrap_or_else(|| {
        let why = ErrorData::internal_error("the client's answer cannot be read", None);
        let message: ClientJsonRpcMessage = JsonRpcMessage::error(why, Some(id));
        let json = serde_json::to_value(&message).unwrap_or_default();
        ClientMessage { message, json }
    });
    McpMessage::Message(Box::new(read))
}

/// True for a request about tasks that the SDK would read in another form than that of a session's
/// version: all but those that name their version, as 2026-07-28 has it.
fn is_of_tasks(method: &str, params: &Value) -> bool {
    let names_version = params["_meta"].get(VERSION).is_some();
    let asks_for_task =
        method == "tools/call" && params.get("task").is_some_and(|task| !task.is_null());
    !names_version && (asks_for_task || method.starts_with("tasks/"))
}

/// True for a method of sessions in a request of 2026-07-28 or later, which have none. The SDK
/// would begin a session, or check the parameters first.
fn is_removed(method: &str, params: &Value) -> bool {
    let is_of_sessions =
        matches!(method, "initialize" | "resources/subscribe" | "resources/unsubscribe");
    let version = params["_meta"][VERSION].as_str();
    let named = ProtocolVersion::KNOWN_VERSIONS.iter().find(|it| Some(it.as_str()) == version);
    is_of_sessions && named.is_some_and(|version| *version >= ProtocolVersion::NO_INITIALIZE)
}

/// Removes metadata that is no object; it decides nothing.
fn drop_odd_meta(message: &mut Map<String, Value>) {
    if let Some(Value::Object(params)) = message.get_mut("params")
        && params.get("_meta").is_some_and(|meta| !meta.is_object())
    {
        params.remove("_meta");
    }
}

/// Parameters of `initialize` with the members that clients leave out or write otherwise, except
/// the version, which decides how the client is served.
fn completed(params: Value) -> Value {
    let Value::Object(mut params) = params else { return params };
    let client = params.remove("clientInfo").unwrap_or_default();
    let text = |name: &str| client[name].as_str().unwrap_or_default().to_owned();
    let is_known = serde_json::from_value::<Implementation>(client.clone()).is_ok();
    let info = json!({ "name": text("name"), "version": text("version") });
    params.insert("clientInfo".to_owned(), if is_known { client } else { info });
    let offered = params.remove("capabilities").unwrap_or_default();
    let Value::Object(mut offered) = offered else {
        params.insert("capabilities".to_owned(), json!({}));
        return params.into();
    };
    offered.retain(|name, value| {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        serde_json::from_value::<ClientCapabilities>(alone.into()).is_ok()
    });
    params.insert("capabilities".to_owned(), offered.into());
    params.into()
}

/// Fault of these parameters; `None` if the server has no such method.
fn wrong_params(method: &str, params: Value) -> Option<String> {
    fn fault<T: DeserializeOwned>(params: Value) -> Option<String> {
        let why = serde_json::from_value::<T>(params).err();
        Some(why.map_or_else(|| "they cannot be read".to_owned(), |why| why.to_string()))
    }
    match method {
        "initialize" => fault::<InitializeRequestParams>(completed(params)),
        "tools/call" => fault::<CallToolRequestParams>(params),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            fault::<PaginatedRequestParams>(params)
        }
        "prompts/get" => fault::<GetPromptRequestParams>(params),
        "completion/complete" => fault::<CompleteRequestParams>(params),
        "resources/read" => fault::<ReadResourceRequestParams>(params),
        "resources/subscribe" | "resources/unsubscribe" => fault::<SubscribeRequestParams>(params),
        "subscriptions/listen" => fault::<SubscriptionsListenRequestParams>(params),
        "ping" | "server/discover" => fault::<Value>(params),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::json_shapes::{reshaped, shapes};

    fn read_value(message: &Value) -> McpFrame {
        read(message.to_string().as_bytes())
    }

    /// Code and id of a refusal, or a word for what became of the message.
    fn outcome(frame: McpFrame) -> (i32, Value, &'static str) {
        match frame {
            McpFrame::One(McpMessage::Refused(why)) => (why.code.0, why.id, "refused"),
            McpFrame::One(McpMessage::Skipped) => (0, Value::Null, "skipped"),
            McpFrame::Batch(_) => (0, Value::Null, "batch"),
            McpFrame::One(McpMessage::Message(read)) => match read.message {
                JsonRpcMessage::Request(it) => (0, it.id.into_json_value(), "request"),
                JsonRpcMessage::Notification(_) => (0, Value::Null, "notification"),
                JsonRpcMessage::Response(it) => (0, it.id.into_json_value(), "response"),
                JsonRpcMessage::Error(it) => (it.error.code.0, json!(it.id), "error"),
            },
        }
    }

    #[test]
    fn messages_are_classified_with_code_and_id() {
        let none = Value::Null;
        for (text, code, id, what) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 0, json!(1), "request"),
            (
                r#"{"jsonrpc":"2.0","id":"1","method":"tools/list","params":null}"#,
                0,
                json!("1"),
                "request",
            ),
            (
                "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"unheard/of\",\"params\":{}}",
                0,
                json!(1),
                "request",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}"#,
                0,
                json!(1),
                "request",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602, json!(1), "refused"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":"x"}}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":null}}"#,
                0,
                json!(1),
                "request",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":[]}}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{}}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":-1}}}"#,
                0,
                json!(1),
                "request",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":true}}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, -32602, json!(1), "refused"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}"#,
                -32602,
                json!(1),
                "refused",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(1), "refused"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, none.clone(), "refused"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, none.clone(), "refused"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, none.clone(), "refused"),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1), "refused"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 0, json!(1), "response"),
            (r#"{"jsonrpc":"2.0","id":1,"error":"odd"}"#, -32603, json!(1), "error"),
            (
                r#"{"jsonrpc":"2.0","method":null,"id":1,"error":{"code":-1,"message":"no"}}"#,
                -1,
                json!(1),
                "error",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                0,
                none.clone(),
                "notification",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/unheard","params":[]}"#,
                0,
                none.clone(),
                "skipped",
            ),
            (r#"{"id":1,"method":"ping"}"#, -32600, json!(1), "refused"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, json!(1), "refused"),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600, json!(1), "refused"),
            (
                r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#,
                -32600,
                none.clone(),
                "refused",
            ),
            (r#"{"id":1,"result":{}}"#, 0, json!(1), "response"),
            ("{", -32700, none.clone(), "refused"),
            ("", -32700, none.clone(), "refused"),
            ("[]", -32600, none.clone(), "refused"),
            ("7", -32600, none.clone(), "refused"),
            ("{}", -32600, none.clone(), "refused"),
            (r#"[{"id":1,"method":"ping"}]"#, 0, none, "batch"),
        ] {
            assert_eq!(outcome(read(text.as_bytes())), (code, id, what), "{text}");
        }
        let lossy = read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
        assert_eq!(outcome(lossy), (0, json!(1), "request"), "of an unknown method");
        let cut = read(br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"#);
        assert_eq!(outcome(cut), (-32700, json!(1), "refused"));
    }

    /// No request with a valid id becomes anything that gets no answer.
    #[test]
    fn reshaped_requests_are_never_silent() {
        let call = json!({ "name": "echo", "arguments": { "message": "m" }, "_meta": { "progressToken": 1 } });
        let client = json!({ "name": "t", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "roots": {}, "elicitation": {} }, "clientInfo": client });
        for (method, params) in [
            ("initialize", hello),
            ("tools/call", call),
            ("tools/list", json!({ "cursor": "c" })),
            ("resources/read", json!({ "uri": "u" })),
            ("resources/list", json!({})),
            ("ping", json!({})),
            ("unheard/of", json!({ "x": 1 })),
        ] {
            let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
            for other in reshaped(&line).into_iter().filter(|other| other["id"] == 7) {
                let (_, id, what) = outcome(read_value(&other));
                assert!(matches!(what, "request" | "refused"), "{other}: {what}");
                assert_eq!(id, 7, "{other}");
            }
        }
    }

    proptest::proptest! {
        /// Every line with a method and an id gets an answer, under that id if it is valid.
        #[test]
        fn any_line_is_read_or_refused(line in crate::tests::line_strategy::lines()) {
            let json: Value = serde_json::from_slice(&line).unwrap_or_default();
            let (_, answered, what) = outcome(read(&line));
            let Some(id) = json.get("id").filter(|_| json["method"].is_string()) else { return Ok(()) };
            proptest::prop_assert!(matches!(what, "request" | "refused"), "{json}: {what}");
            if id.is_string() || id.is_i64() {
                proptest::prop_assert_eq!(&answered, id, "{}", json);
            }
        }
    }

    #[test]
    fn session_methods_are_unknown_since_2026() {
        for (method, params) in [
            ("initialize", json!({ "protocolVersion": "2025-11-25" })),
            ("resources/subscribe", json!({ "uri": "u" })),
            ("resources/unsubscribe", json!({ "uri": "u" })),
        ] {
            let refused = |version: &str, params: &Value| {
                let mut params = params.clone();
                params["_meta"] = json!({ VERSION: version });
                let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
                outcome(read_value(&line))
            };
            let unknown = (-32601, json!(7), "refused");
            // Also with parameters that the method never had.
            for params in [&params, &json!({})] {
                assert_eq!(refused("2026-07-28", params), unknown, "{method} {params}");
            }
            for older in ["2025-11-25", "2099-01-01", "x"] {
                assert_eq!(refused(older, &params), (0, json!(7), "request"), "{method} {older}");
            }
        }
    }

    #[test]
    fn incomplete_handshake_is_completed() {
        let hello = json!({ "protocolVersion": "2025-06-18" });
        for name in ["clientInfo", "capabilities"] {
            for odd in shapes() {
                let mut params = hello.clone();
                params.as_object_mut().unwrap().insert(name.to_owned(), odd);
                let line =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
                assert_eq!(outcome(read_value(&line)).2, "request", "{line}");
            }
        }
        let odd = json!({ "elicitation": {}, "roots": true });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": odd });
        let told = completed(params);
        assert_eq!(told["capabilities"], json!({ "elicitation": {} }), "the others count");
    }

    #[test]
    fn large_batch_is_refused() {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        for (count, what) in [(MAX_BATCH, "batch"), (MAX_BATCH + 1, "refused")] {
            assert_eq!(outcome(read_value(&vec![ping.clone(); count].into())).2, what);
        }
    }
}
