//! Tolerant reader for the messages of MCP servers. It turns each message into a form that rmcp's
//! types accept: one unusable tool does not cost the others, one unknown content block does not
//! cost the rest of a result, and members that nobody uses decide nothing.

use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{
    foreign::{self, NotJson},
    id::AgentId,
};
use rmcp::model::{ContentBlock, ServerJsonRpcMessage};
use serde_json::{Map, Value, json};

/// Longest name or excerpt of a server that a log line quotes, in characters.
const MAX_NAME: usize = 64;

/// Code of an error without a usable one: an internal error (JSON-RPC 2.0, section 5.1).
const INTERNAL: i64 = -32603;

/// Members of a content block that are hints only.
const HINTS: [&str; 4] = ["annotations", "_meta", "icons", "size"];

/// Reader of one server's messages.
#[derive(Clone)]
pub(super) struct MessageReader {
    agent: AgentId,
    server: String,
}

impl MessageReader {
    pub(super) fn new(agent: AgentId, server: String) -> Self {
        Self { agent, server }
    }

    /// Reads a JSON text: a message, or a batch of them. What is no message is skipped. An answer
    /// without an id is that to the request `request_id`, if the text answers only one.
    pub(super) fn read(&self, text: &[u8], request_id: Option<&Value>) -> Vec<Value> {
        match foreign::read(text) {
            Ok(Value::Array(batch)) => {
                batch.into_iter().filter_map(|message| self.message(message, request_id)).collect()
            }
            Ok(message) => self.message(message, request_id).into_iter().collect(),
            Err(NotJson { why, .. }) => {
                let text = String::from_utf8_lossy(&text[..text.len().min(4 * MAX_NAME)]);
                if !text.trim().is_empty() {
                    self.skip("a message", &text, &why.to_string());
                }
                Vec::new()
            }
        }
    }

    fn message(&self, message: Value, request_id: Option<&Value>) -> Option<Value> {
        let Value::Object(mut of) = message else {
            self.skip("a message", &message.to_string(), "it is no object");
            return None;
        };
        of.insert("jsonrpc".to_owned(), "2.0".into());
        of.retain(|name, value| name == "result" || !value.is_null());
        if of.get("method").is_some_and(Value::is_string) {
            if of.get("params").is_some_and(|params| !params.is_object()) {
                of.remove("params");
            }
        } else {
            if let (Some(id), false) = (request_id, of.contains_key("id")) {
                of.insert("id".to_owned(), id.clone());
            }
            self.answer(&mut of);
        }
        let message = Value::Object(of);
        match serde_json::from_value::<ServerJsonRpcMessage>(message.clone()) {
            Ok(_) => Some(message),
            Err(why) => {
                self.skip("a message", &message.to_string(), &why.to_string());
                None
            }
        }
    }

    /// Reads a result or an error.
    fn answer(&self, of: &mut Map<String, Value>) {
        // Requests of the hub have whole numbers as ids.
        if let Some(id) = of.get_mut("id") {
            let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            if let Ok(number) = text.trim_end_matches(".0").parse::<i64>() {
                *id = number.into();
            }
        }
        if let Some(error) = of.remove("error") {
            of.remove("result");
            of.insert("error".to_owned(), read_error(&error));
            return;
        }
        if of.get("result").is_some_and(Value::is_null) {
            of.insert("result".to_owned(), json!({}));
        }
        let Some(Value::Object(result)) = of.get_mut("result") else { return };
        if result.get("resultType").is_some_and(|kind| !kind.is_string()) {
            result.remove("resultType");
        }
        let is_call = ["content", "structuredContent", "isError"];
        if result.contains_key("tools") {
            self.tools(result);
        } else if result.contains_key("protocolVersion") {
            read_hello(result);
        } else if is_call.iter().any(|name| result.contains_key(*name)) {
            self.call_result(result);
        }
    }

    /// Reads a page of tools: their name, description and input schema, which are all that the hub
    /// uses.
    fn tools(&self, result: &mut Map<String, Value>) {
        let tools = match result.remove("tools") {
            Some(Value::Array(tools)) => tools,
            Some(Value::Null) | None => Vec::new(),
            Some(other) => {
                self.skip("the list of tools", &other.to_string(), "it is no list");
                Vec::new()
            }
        };
        let tools: Vec<_> = tools.into_iter().filter_map(|tool| self.tool(tool)).collect();
        let cursor = result.remove("nextCursor").filter(|cursor| !cursor.is_null());
        result.retain(|name, _| name == "resultType");
        result.insert("tools".to_owned(), tools.into());
        if let Some(cursor) = cursor {
            let text = cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned);
            result.insert("nextCursor".to_owned(), text.into());
        }
    }

    fn tool(&self, mut tool: Value) -> Option<Value> {
        let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = name.map(str::to_owned) else {
            self.skip("a tool", &tool.to_string(), "it has no name");
            return None;
        };
        let mut taken = |name: &str| tool.get_mut(name).map(Value::take).unwrap_or_default();
        let schema = match (taken("inputSchema"), taken("parameters")) {
            (schema @ Value::Object(_), _) | (Value::Null, schema @ Value::Object(_)) => schema,
            // A tool without arguments.
            (Value::Null, _) => json!({ "type": "object" }),
            (_, _) => {
                self.skip("a tool", &name, "its `inputSchema` is no object");
                return None;
            }
        };
        let mut read = json!({ "name": name, "inputSchema": schema });
        if let (Value::String(text), Some(read)) = (taken("description"), read.as_object_mut()) {
            read.insert("description".to_owned(), text.into());
        }
        Some(read)
    }

    /// Reads the result of a call.
    fn call_result(&self, result: &mut Map<String, Value>) {
        let content = match result.remove("content") {
            Some(Value::Array(content)) => content,
            Some(Value::Null) | None => Vec::new(),
            // Some servers write one block, or its text.
            Some(one) => vec![one],
        };
        let content: Vec<_> = content.into_iter().map(|block| self.block(block)).collect();
        result.insert("content".to_owned(), content.into());
        if let Some(flag) = result.get_mut("isError") {
            let is_error = flag.as_bool().unwrap_or_else(|| flag == "true" || flag == 1);
            *flag = is_error.into();
        }
        if result.get("_meta").is_some_and(|meta| !meta.is_object()) {
            result.remove("_meta");
        }
    }

    /// Reads a content block. A text that names an unknown block takes its place, because the agent
    /// would otherwise take the rest for the whole.
    fn block(&self, block: Value) -> Value {
        let is_known =
            |block: &Value| serde_json::from_value::<ContentBlock>(block.clone()).is_ok();
        let text = |text: &str| json!({ "type": "text", "text": text });
        if is_known(&block) {
            return block;
        }
        if let Value::String(string) = &block {
            return text(string);
        }
        let mut plain = block.clone();
        if let Value::Object(members) = &mut plain {
            HINTS.iter().for_each(|hint| drop(members.remove(*hint)));
            members.retain(|_, value| !value.is_null());
        }
        if is_known(&plain) {
            return plain;
        }
        let kind = block.get("type").and_then(Value::as_str).unwrap_or("none");
        let kind = plain_text::line(kind, MAX_NAME);
        self.skip("a content block", &kind, "it is none of the protocol's");
        text(&format!("[a content block of the type \"{kind}\" was left out]"))
    }

    fn skip(&self, subject: &str, which: &str, why: &str) {
        let (agent, server) = (&self.agent, self.server.as_str());
        let (which, why) = (plain_text::line(which, MAX_NAME), plain_text::line(why, MAX_NAME));
        tracing::warn!(%agent, server, which, why, "{subject} of an MCP server is skipped");
    }
}

/// Error object with a number as code and a text as message.
fn read_error(error: &Value) -> Value {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let code = error.get("code").map(text);
    let code = code.and_then(|code| code.trim_end_matches(".0").parse::<i32>().ok());
    let message = error.get("message").filter(|message| !message.is_null()).map(text);
    let mut read = json!({
        "code": code.map_or(INTERNAL, i64::from), "message": message.unwrap_or_else(|| text(error)),
    });
    if let (Some(data), Some(read)) = (error.get("data"), read.as_object_mut()) {
        read.insert("data".to_owned(), data.clone());
    }
    read
}

/// Reads the answer to `initialize`: the version and the server's name, which are all that the hub
/// uses.
fn read_hello(result: &mut Map<String, Value>) {
    let server = result.remove("serverInfo").unwrap_or_default();
    let named = |name: &str| server.get(name).and_then(Value::as_str).unwrap_or("unknown");
    let server = json!({ "name": named("name"), "version": named("version") });
    result.retain(|name, value| {
        ["protocolVersion", "resultType"].contains(&&**name) && value.is_string()
    });
    result.insert("serverInfo".to_owned(), server);
    result.insert("capabilities".to_owned(), json!({ "tools": {} }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> MessageReader {
        MessageReader::new(AgentId::parse("a").unwrap(), "s".to_owned())
    }

    fn read(message: &Value) -> String {
        let read = reader().read(message.to_string().as_bytes(), None);
        read.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
    }

    fn result(result: &Value) -> String {
        let read = reader().read(json!({ "id": 1, "result": result }).to_string().as_bytes(), None);
        read.first().map(|message| message["result"].to_string()).unwrap_or_default()
    }

    #[test]
    fn unusable_tools_are_skipped_beside_others() {
        let told = [
            json!({ "tools": [{ "name": "good", "inputSchema": { "type": "object" } },
                { "name": "bad", "inputSchema": "text" }, { "inputSchema": {} }, 7, { "name": "" },
                { "name": "hints", "inputSchema": {}, "annotations": "odd", "outputSchema": 3, "icons": {},
                    "description": ["odd"], "_meta": [] },
                { "name": "bare", "inputSchema": null, "description": "d" }] }),
            json!({ "tools": null, "nextCursor": null }),
            json!({ "tools": "none", "nextCursor": 7, "ttlMs": "long" }),
        ]
        .map(|page| result(&page));
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"tools":[{"inputSchema":{"type":"object"},"name":"good"},{"inputSchema":{},"name":"hints"},{"description":"d","inputSchema":{"type":"object"},"name":"bare"}]}
        {"tools":[]}
        {"nextCursor":"7","tools":[]}
        "#);
    }

    #[test]
    fn unknown_content_block_is_named_in_its_place() {
        let told = [
            json!({ "content": [{ "type": "text", "text": "a" }, { "type": "hologram", "x": 1 },
                { "type": "text", "text": "b", "annotations": "odd" }, "c", { "type": "text" }, null] }),
            json!({ "content": "text" }),
            json!({ "content": null, "structuredContent": { "n": 1 }, "_meta": 3 }),
            json!({ "content": { "type": "text", "text": "one" }, "isError": "true" }),
            json!({ "structuredContent": [1] }),
        ]
        .map(|called| result(&called));
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"content":[{"text":"a","type":"text"},{"text":"[a content block of the type \"hologram\" was left out]","type":"text"},{"text":"b","type":"text"},{"text":"c","type":"text"},{"text":"[a content block of the type \"text\" was left out]","type":"text"},{"text":"[a content block of the type \"none\" was left out]","type":"text"}]}
        {"content":[{"text":"text","type":"text"}]}
        {"content":[],"structuredContent":{"n":1}}
        {"content":[{"text":"one","type":"text"}],"isError":true}
        {"content":[],"structuredContent":[1]}
        "#);
    }

    #[test]
    fn odd_messages_are_read_or_skipped() {
        let told = [
            json!({ "id": "1", "result": {} }),
            json!({ "jsonrpc": 2.0, "id": 1.0, "result": null, "error": null }),
            json!({ "id": 1, "result": null, "error": "no" }),
            json!({ "id": 1, "error": { "code": "-32602", "message": 3 } }),
            json!({ "id": null, "error": {} }),
            json!({ "id": 1, "result": { "protocolVersion": "2025-06-18", "capabilities": null, "serverInfo": 1 } }),
            json!({ "id": "x", "method": "ping", "params": [] }),
            json!({ "id": "x", "method": "brand/new", "params": null }),
            json!({ "id": null, "method": "notifications/brandNew", "params": { "a": 1 } }),
            json!({ "method": "notifications/message", "params": { "level": "odd" } }),
            json!([{ "id": 1, "result": {} }, 3, { "method": "notifications/x" }]),
            json!({ "id": 1 }),
            json!({}),
            json!("text"),
        ]
        .map(|message| read(&message));
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"id":1,"jsonrpc":"2.0","result":{}}
        {"id":1,"jsonrpc":"2.0","result":{}}
        {"error":{"code":-32603,"message":"no"},"id":1,"jsonrpc":"2.0"}
        {"error":{"code":-32602,"message":"3"},"id":1,"jsonrpc":"2.0"}
        {"error":{"code":-32603,"message":"{}"},"jsonrpc":"2.0"}
        {"id":1,"jsonrpc":"2.0","result":{"capabilities":{"tools":{}},"protocolVersion":"2025-06-18","serverInfo":{"name":"unknown","version":"unknown"}}}
        {"id":"x","jsonrpc":"2.0","method":"ping"}
        {"id":"x","jsonrpc":"2.0","method":"brand/new"}
        {"jsonrpc":"2.0","method":"notifications/brandNew","params":{"a":1}}
        {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"odd"}}
        {"id":1,"jsonrpc":"2.0","result":{}} {"jsonrpc":"2.0","method":"notifications/x"}
        "#);
        assert!(reader().read(b"no json", None).is_empty());
        assert!(reader().read(b"\r", None).is_empty());
        let answer = json!({ "id": null, "result": {} }).to_string();
        let read = reader().read(answer.as_bytes(), Some(&json!(7)));
        assert_eq!(read, [json!({ "id": 7, "jsonrpc": "2.0", "result": {} })]);
    }
}
