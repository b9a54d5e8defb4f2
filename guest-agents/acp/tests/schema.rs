//! Check of each line that the driver of ACP programs writes against the published JSON schema
//! (`tests/schemas/acp-v1.json`).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};

use a2a_hub_sdk::testing::{ScriptedHost, acp_recorded, task};
use a2a_hub_sdk::{Agent, Part};
use acp::AnyAcp;
use serde_json::{Value, json};

/// Method of releases of the protocol up to 2025, which later schemas lack. The driver sends it to
/// programs that offer their models in no other way, such as Gemini CLI.
const OLDER: &str = "session/set_model";

/// Check of the client's lines.
struct ClientSchema {
    schema: Value,
    /// Definitions by the side that receives the request, its method, and `params` or `result`.
    definitions: BTreeMap<(String, String, &'static str), String>,
    /// Requests, notifications and results that were valid.
    valid: BTreeSet<String>,
}

impl ClientSchema {
    fn new() -> Self {
        let text = include_str!("../../../tests/schemas/acp-v1.json");
        let schema: Value = serde_json::from_str(text).unwrap();
        let mut definitions = BTreeMap::new();
        for (name, of) in schema["$defs"].as_object().unwrap() {
            let (Some(side), Some(method)) = (of["x-side"].as_str(), of["x-method"].as_str())
            else {
                continue;
            };
            let member = if name.ends_with("Response") { "result" } else { "params" };
            definitions.insert((side.to_owned(), method.to_owned(), member), name.clone());
        }
        Self { schema, definitions, valid: BTreeSet::new() }
    }

    fn definition(&self, side: &str, method: &str, member: &'static str) -> Option<&str> {
        let key = (side.to_owned(), method.to_owned(), member);
        self.definitions.get(&key).map(String::as_str)
    }

    /// Reason why a value does not conform to a definition.
    fn fault(&self, definition: &str, value: &Value) -> Option<String> {
        let defs = &self.schema["$defs"];
        let schema = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": defs });
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        validator.validate(value).err().map(|why| format!("{definition}: {why}"))
    }

    /// Reason why a line of the client is invalid. `asked` has the methods of the program's
    /// requests by their ids as JSON.
    fn line(&mut self, line: &Value, asked: &BTreeMap<String, String>) -> Option<String> {
        if line["jsonrpc"] != "2.0" {
            return Some("jsonrpc".to_owned());
        }
        let (definition, value, kind) = if let Some(method) = line["method"].as_str() {
            if method == OLDER {
                return None;
            }
            let found = self.definition("agent", method, "params");
            let Some(found) = found.or_else(|| self.definition("protocol", method, "params"))
            else {
                return Some(format!("unknown method {method}"));
            };
            if found.ends_with("Notification") == line.get("id").is_some() {
                return Some(format!("id of {method}"));
            }
            (found.to_owned(), &line["params"], method.to_owned())
        } else {
            let Some(method) = asked.get(&line["id"].to_string()) else {
                return Some("answer to no request".to_owned());
            };
            match (line.get("result"), line.get("error")) {
                (Some(result), None) => {
                    let Some(found) = self.definition("client", method, "result") else {
                        return Some(format!("result of {method}"));
                    };
                    (found.to_owned(), result, format!("{method} result"))
                }
                (None, Some(error)) => ("Error".to_owned(), error, "error".to_owned()),
                _ => return Some("not one of result and error".to_owned()),
            }
        };
        let fault = self.fault(&definition, value);
        if fault.is_none() {
            self.valid.insert(kind);
        }
        fault
    }

    /// Panics if a line of the client is invalid. `script` is the conversation, with the program's
    /// lines behind `< `.
    fn check(&mut self, script: &str, sent: &[Value]) {
        let lines = script.lines().filter_map(|line| line.strip_prefix("< "));
        let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let asked = lines.filter_map(|line| {
            Some((line.get("id")?.to_string(), line["method"].as_str()?.to_owned()))
        });
        let asked = asked.collect();
        for line in sent {
            let fault = self.line(line, &asked);
            assert_eq!(fault, None, "{line}");
        }
    }
}

fn hub() -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("workspace", "/w");
    let program = json!({ "name": "Mine", "program": "mine", "login": "mine login" });
    host.setting("acp", &program.to_string());
    host
}

fn says(message: &Value) -> String {
    let mut message = message.clone();
    message["jsonrpc"] = "2.0".into();
    format!("< {message}\n")
}

fn answer(id: u64, result: &Value) -> String {
    says(&json!({ "id": id, "result": result }))
}

fn asks(id: u64, method: &str, params: &Value) -> String {
    format!("{}> answer\n", says(&json!({ "id": id, "method": method, "params": params })))
}

fn permission() -> Value {
    let call = json!({ "toolCallId": "c", "title": "touch x", "kind": "execute", "rawInput": { "command": "touch x" } });
    let options = json!([{ "optionId": "o1", "name": "Allow", "kind": "allow_once" },
        { "optionId": "o2", "name": "Reject", "kind": "reject_once" }]);
    json!({ "sessionId": "s1", "toolCall": call, "options": options })
}

/// Conversation with everything that the driver chooses and answers.
fn full() -> String {
    let can = json!({ "promptCapabilities": { "image": true }, "mcpCapabilities": { "http": true },
        "sessionCapabilities": { "additionalDirectories": {} } });
    let option = |id: &str, category: &str, values: [&str; 2]| {
        let options = values.map(|value| json!({ "value": value, "name": value }));
        json!({ "id": id, "name": id, "category": category, "type": "select",
            "currentValue": values[0], "options": options })
    };
    let options = json!([
        option("mode", "mode", ["auto", "default"]),
        option("model", "model", ["small", "large"]),
        option("effort", "thought_level", ["low", "high"]),
    ]);
    let set = json!({ "configOptions": options });
    let form = json!({ "sessionId": "s1", "mode": "form", "message": "which?",
        "requestedSchema": { "type": "object", "properties": { "answer": { "type": "string" } } } });
    [
        "> initialize\n",
        &answer(1, &json!({ "protocolVersion": 1, "agentCapabilities": can })),
        "> session/new\n",
        &answer(2, &json!({ "sessionId": "s1", "configOptions": options })),
        "> mode\n",
        &answer(3, &set),
        "> model\n",
        &answer(4, &set),
        "> effort\n",
        &answer(5, &set),
        "> session/prompt\n",
        &asks(0, "session/request_permission", &permission()),
        &asks(1, "elicitation/create", &form),
        &asks(2, "fs/read_text_file", &json!({ "sessionId": "s1", "path": "/w/a" })),
        &answer(6, &json!({ "stopReason": "end_turn" })),
    ]
    .concat()
}

#[test]
fn driver_lines_conform_to_schema() {
    let mut schema = ClientSchema::new();
    let host = hub();
    let servers = r#"{"docs":{"command":"/bin/docs","args":["-v"],"env":{"A":"b"}},"web":{"url":"http://127.0.0.1:9/","headers":{"K":"v"}}}"#;
    for (name, value) in [("model", "large"), ("effort", "high"), ("mcp_servers", servers)] {
        host.setting(name, value);
    }
    host.answer("allow");
    host.answer("blue");
    let program = host.program("mine").plays(&full());
    let mut asked = task("look");
    asked.message.parts.push(Part::file("a.png", "image/png", b"\x89PNG\r\n".to_vec()));
    asked.message.metadata = Some(json!({ "additionalDirectories": ["/more"] }).to_string());
    let outcome = AnyAcp::run(&host.context(), &asked).unwrap();
    assert_eq!(outcome.metadata().get("reason"), None, "{}", outcome.text());
    schema.check(&full(), &program.told());

    // A login, a session that is loaded, and a cancelled question.
    let modes = json!({ "currentModeId": "auto", "availableModes": [{ "id": "auto", "name": "A" }, { "id": "default", "name": "D" }] });
    let refused = says(&json!({ "id": 2, "error": { "code": -32000, "message": "log in" } }));
    let script = [
        "> initialize\n",
        &answer(1, &json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } })),
        "> session/load\n",
        &refused,
        "> authenticate\n",
        &answer(3, &json!({})),
        "> session/load\n",
        &answer(4, &json!({ "modes": modes })),
        "> session/set_mode\n",
        &answer(5, &json!({})),
        "> session/prompt\n",
        &says(&json!({ "method": "session/update", "params": { "sessionId": "s1", "update":
            { "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "x" } } } })),
        &says(&json!({ "id": 0, "method": "session/request_permission", "params": permission() })),
        "> session/cancel\n> answer\n",
        &answer(6, &json!({ "stopReason": "cancelled" })),
    ]
    .concat();
    let host = hub();
    host.setting("login_method", "in");
    host.context().remember("session/context-1", &json!({ "id": "s1" })).unwrap();
    host.cancel_after(1);
    let program = host.program("mine").plays(&script);
    let _cancelled = AnyAcp::run(&host.context(), &task("go"));
    schema.check(&script, &program.told());

    let seen: Vec<_> = schema.valid.iter().map(String::as_str).collect();
    let wanted = [
        "authenticate",
        "elicitation/create result",
        "error",
        "initialize",
        "session/cancel",
        "session/load",
        "session/new",
        "session/prompt",
        "session/request_permission result",
        "session/set_config_option",
        "session/set_mode",
    ];
    assert_eq!(seen, wanted);
}

/// The tests of the agents check that the driver writes the client's lines of their recordings.
#[test]
fn recorded_client_lines_conform_to_schema() {
    let mut schema = ClientSchema::new();
    macro_rules! recordings {
        ($($path:literal),*) => {
            [$(include_str!(concat!("../../", $path, ".jsonl"))),*]
        };
    }
    for recording in recordings![
        "gemini/tests/transcripts/command",
        "gemini/tests/transcripts/edit",
        "gemini/tests/transcripts/read_only",
        "vibe/tests/transcripts/command",
        "vibe/tests/transcripts/question",
        "vibe/tests/transcripts/resumed"
    ] {
        let mut sent = acp_recorded(recording);
        for line in &mut sent {
            line["jsonrpc"] = "2.0".into();
        }
        schema.check(recording, &sent);
    }
    let loads = schema.valid.contains("session/load");
    assert!(loads && schema.valid.contains("elicitation/create result"), "{:?}", schema.valid);
}

#[test]
fn invalid_line_fails_schema_check() {
    let mut schema = ClientSchema::new();
    let asked = BTreeMap::from([("0".to_owned(), "session/request_permission".to_owned())]);
    for (line, reason) in [
        (json!({ "id": 1, "method": "session/new", "params": { "cwd": "/w" } }), "mcpServers"),
        (json!({ "id": 1, "method": "session/cancel", "params": { "sessionId": "s" } }), "id of"),
        (json!({ "method": "session/prompt", "params": {} }), "id of"),
        (json!({ "id": 1, "method": "session/update", "params": {} }), "unknown method"),
        (json!({ "id": 0, "result": { "outcome": "selected" } }), "RequestPermissionResponse"),
        (json!({ "id": 0, "result": {}, "error": {} }), "not one of"),
        (json!({ "id": 9, "result": {} }), "no request"),
    ] {
        let mut line = line;
        line["jsonrpc"] = "2.0".into();
        let fault = schema.line(&line, &asked).unwrap_or_default();
        assert!(fault.contains(reason), "{line}: {fault}");
    }
}
