//! Tests of skills as tools, prompts, completion and subscriptions on a connection.

use super::{TestDispatcher, connections::TestConnection};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::id::AgentId;
use serde_json::{Value, json};

fn skill() -> Value {
    let prompt = json!({
        "name": "greet",
        "arguments": [{ "name": "who", "required": true, "values": ["Ada"] }],
        "parts": [{ "text": "Greet {{who}}." }, { "raw": "cG5n", "mediaType": "image/png" }],
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "speed": { "enum": ["slow", "fast"] } },
        "properties": { "n": { "type": "integer" }, "speed": { "$ref": "#/$defs/speed" } },
        "required": ["n"],
        "additionalProperties": false,
    });
    json!({ "id": "run", "name": "Run", "description": "Runs", "examples": ["run fast"],
        "inputSchema": schema, "prompts": [prompt] })
}

async fn begun(stand: &TestDispatcher, caller: Principal, version: &str) -> TestConnection {
    let mut connection = TestConnection::mcp_of(stand, caller);
    let client = json!({ "name": "t", "version": "1" });
    let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    connection.ask("initialize", hello).await;
    connection.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    connection
}

#[tokio::test(start_paused = true)]
async fn skill_with_schema_is_tool() {
    let stand = TestDispatcher::with_skills(&[skill()]).await;
    let mut client = begun(&stand, Principal::Operator, "2025-11-25").await;
    let tools = client.ask("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "claude-code_run").unwrap();
    assert_eq!(tool["inputSchema"], skill()["inputSchema"]);
    assert_eq!(tool["execution"]["taskSupport"], "optional");

    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let done = call("claude-code_run", json!({ "n": 7, "speed": "slow" }));
    let done = client.ask("tools/call", done).await["result"].clone();
    assert_eq!(done["structuredContent"]["text"], "n: 7\nspeed: slow", "{done}");
    let uri = done["structuredContent"]["uri"].clone();
    let read = client.ask("resources/read", json!({ "uri": uri })).await;
    let task: Value =
        serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    let message = &task["history"][0];
    assert_eq!(message["parts"][1]["data"], json!({ "n": 7, "speed": "slow" }), "{task}");
    assert_eq!(message["metadata"]["targetSkill"], "run", "{task}");

    let wrong = call("claude-code_run", json!({ "speed": "slow", "x": 1 }));
    let wrong = client.ask("tools/call", wrong).await["result"].clone();
    let why = wrong["content"][0]["text"].as_str().unwrap();
    assert_eq!(wrong["isError"], true, "{wrong}");
    assert!(why.contains("`/n` is missing") && why.contains("`/x`"), "{why}");
    for unknown in ["claude-code_none", "none_run", "claude-code_"] {
        let told = client.ask("tools/call", call(unknown, json!({}))).await;
        assert_eq!(told["error"]["code"], -32602, "{told}");
    }
    let mut task = call("claude-code_run", json!({ "n": 7 }));
    task["task"] = json!({});
    let begun = client.ask("tools/call", task).await;
    assert!(begun["result"]["task"]["taskId"].is_string(), "{begun}");
}

#[tokio::test(start_paused = true)]
async fn prompts_are_listed_filled_and_completed() {
    let stand = TestDispatcher::with_skills(&[skill()]).await;
    let mut client = begun(&stand, Principal::Operator, "2025-06-18").await;
    let listed = client.ask("prompts/list", json!({})).await;
    let listed = listed["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = listed.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["claude-code", "claude-code_run", "claude-code_greet"]);

    let asked = json!({ "name": "claude-code_greet", "arguments": { "who": "Ada" } });
    let told = client.ask("prompts/get", asked).await["result"].clone();
    assert_eq!(told["messages"][1]["content"]["text"], "Greet Ada.", "{told}");
    let image = json!({ "type": "image", "data": "cG5n", "mimeType": "image/png" });
    assert_eq!(told["messages"][2]["content"], image, "{told}");
    let wrong = client.ask("prompts/get", json!({ "name": "claude-code_greet" })).await;
    let why = wrong["error"]["message"].as_str().unwrap();
    assert_eq!(why, "get `claude-code_greet`: the argument `who` is missing");

    let call = json!({ "name": "claude-code", "arguments": { "message": "stream" } });
    let made = client.ask("tools/call", call).await["result"]["structuredContent"].clone();
    let id = made["taskId"].as_str().unwrap();
    let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
    let template = "a2a-hub://tasks/{task_id}/artifacts/{artifact_id}";
    let resource = json!({ "type": "ref/resource", "uri": template });
    for (of, argument, value, values) in [
        (prompt("claude-code"), "request", "ru", &["run fast"][..]),
        (prompt("claude-code_greet"), "who", "", &["Ada"]),
        (resource.clone(), "task_id", &id[..8], &[id]),
        (resource.clone(), "artifact_id", "", &["text"]),
    ] {
        let asked = json!({ "ref": of, "argument": { "name": argument, "value": value },
            "context": { "arguments": { "task_id": id } } });
        let told = client.ask("completion/complete", asked).await;
        assert_eq!(told["result"]["completion"]["values"], json!(values), "{told}");
    }
    let other = json!({ "type": "ref/resource", "uri": "file:///{path}" });
    for (of, argument) in
        [(prompt("claude-code"), "other"), (resource, "other"), (other, "task_id")]
    {
        let asked = json!({ "ref": of, "argument": { "name": argument, "value": "" } });
        assert_eq!(client.ask("completion/complete", asked).await["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn program_of_agent_gets_no_prompts() {
    let stand = TestDispatcher::with_skills(&[skill()]).await;
    let program = Principal::of_tree(AgentId::parse("claude-code").unwrap(), "1");
    let mut client = begun(&stand, program, "2025-06-18").await;
    let of = json!({ "type": "ref/prompt", "name": "claude-code" });
    let complete = json!({ "ref": of, "argument": { "name": "request", "value": "" } });
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "claude-code" })),
        ("completion/complete", complete),
        ("resources/subscribe", json!({ "uri": "a2a-hub://tasks/t" })),
        ("resources/unsubscribe", json!({ "uri": "a2a-hub://tasks/t" })),
    ] {
        let told = client.ask(method, params).await;
        assert_eq!(told["error"]["code"], -32601, "{method}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscriber_is_told_of_changed_task() {
    let stand = TestDispatcher::with_skills(&[skill()]).await;
    let mut client = begun(&stand, Principal::Operator, "2025-06-18").await;
    let mut other = begun(&stand, Principal::Operator, "2025-06-18").await;
    let call =
        json!({ "name": "claude-code", "arguments": { "message": "work", "wait_seconds": 0 } });
    let first = client.ask("tools/call", call.clone()).await["result"]["structuredContent"].clone();
    let second = client.ask("tools/call", call).await["result"]["structuredContent"].clone();
    for task in [&first, &second] {
        let told = client.ask("resources/subscribe", json!({ "uri": task["uri"] })).await;
        assert_eq!(told["result"], json!({}), "{told}");
    }
    let told = client.ask("resources/unsubscribe", json!({ "uri": first["uri"] })).await;
    assert_eq!(told["result"], json!({}), "{told}");
    for task in [&first, &second] {
        let cancel = json!({ "name": "cancel_task", "arguments": { "task_id": task["taskId"] } });
        other.ask("tools/call", cancel).await;
    }
    let told = client.until_method("notifications/resources/updated").await;
    let uri = &told.last().unwrap()["params"]["uri"];
    assert_eq!(uri, &second["uri"], "the first subscription has ended: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn listener_of_2026_hears_changed_task() {
    let stand = TestDispatcher::with_skills(&[skill()]).await;
    let mut other = begun(&stand, Principal::Operator, "2025-06-18").await;
    let call =
        json!({ "name": "claude-code", "arguments": { "message": "work", "wait_seconds": 0 } });
    let task = other.ask("tools/call", call).await["result"]["structuredContent"].clone();
    let mut client = TestConnection::silent_mcp(&stand);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let wanted = json!({ "resourceSubscriptions": [task["uri"], "file:///etc/passwd"] });
    client.begin("subscriptions/listen", json!({ "notifications": wanted, "_meta": meta })).await;
    let told = client.until_method("notifications/subscriptions/acknowledged").await;
    let accepted = &told.last().unwrap()["params"]["notifications"];
    assert_eq!(accepted["resourceSubscriptions"], json!([task["uri"]]), "{told:?}");
    let cancel = json!({ "name": "cancel_task", "arguments": { "task_id": task["taskId"] } });
    other.ask("tools/call", cancel).await;
    let told = client.until_method("notifications/resources/updated").await;
    assert_eq!(told.last().unwrap()["params"]["uri"], task["uri"], "{told:?}");
}
