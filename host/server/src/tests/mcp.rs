//! Tests of MCP on a connection: odd messages, batches of 2025-03-26, and pages of resources.

use super::{TestDispatcher, connections::TestConnection};
use serde_json::{Value, json};
use std::collections::HashSet;

fn hello(version: &str) -> Value {
    let client = json!({ "name": "t", "version": "1" });
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client })
}

async fn begun(stand: &TestDispatcher, version: &str) -> TestConnection {
    let mut connection = TestConnection::silent_mcp(stand);
    let answer = connection.ask("initialize", hello(version)).await;
    assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
    connection.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    connection
}

/// Sends a line and returns the next one.
async fn answer(connection: &mut TestConnection, line: &Value) -> Value {
    connection.say(&line.to_string()).await;
    connection.hear().await
}

#[tokio::test(start_paused = true)]
async fn messages_before_handshake_are_skipped() {
    let stand = TestDispatcher::new().await;
    for early in [
        json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unheard", "params": [] }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "id": 9, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 9, "error": "odd" }),
    ] {
        let mut connection = TestConnection::silent_mcp(&stand);
        connection.say(&early.to_string()).await;
        let told = connection.ask("initialize", hello("2025-06-18")).await;
        assert_eq!(told["result"]["protocolVersion"], "2025-06-18", "{early}");
        assert!(connection.ask("tools/list", json!({})).await["result"]["tools"].is_array());
    }
}

/// A request is answered before the handshake as well, and the handshake succeeds after it.
#[tokio::test(start_paused = true)]
async fn requests_before_handshake_are_answered() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::silent_mcp(&stand);
    for method in ["tools/list", "tools/call", "unheard/of", "server/discover"] {
        let told = connection.ask(method, json!({})).await;
        assert!(told["error"]["code"].is_i64(), "{method}: {told}");
    }
    assert_eq!(connection.ask("ping", json!({})).await["result"], json!({}));
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    connection.say(&notice.to_string()).await;
    let told = connection.ask("initialize", json!({ "protocolVersion": "2025-06-18" })).await;
    assert_eq!(told["result"]["protocolVersion"], "2025-06-18", "without `clientInfo`: {told}");
}

#[tokio::test(start_paused = true)]
async fn each_fault_has_its_code() {
    let stand = TestDispatcher::new().await;
    let mut connection = begun(&stand, "2025-06-18").await;
    for (method, params, code) in [
        ("prompts/list", json!({ "cursor": 5 }), -32602),
        ("prompts/get", json!({ "name": "x" }), -32602),
        ("prompts/get", json!({}), -32602),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } }),
            -32602,
        ),
        ("completion/complete", json!({}), -32602),
        ("logging/setLevel", json!({ "level": "debug" }), -32601),
        ("resources/subscribe", json!({ "uri": "x" }), -32002),
        ("resources/subscribe", json!({ "uri": "a2a-hub://tasks/none" }), -32002),
        ("resources/subscribe", json!({}), -32602),
        ("resources/unsubscribe", json!({ "uri": 5 }), -32602),
        ("tasks/get", json!({}), -32601),
        ("unheard/of", json!({}), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": 5 }), -32602),
        ("tools/call", json!({ "name": "claude-code", "arguments": "x" }), -32602),
        ("tools/call", json!({ "name": "claude-code", "arguments": [] }), -32602),
        ("tools/call", json!([]), -32602),
        ("tools/list", json!({ "cursor": 5 }), -32602),
        ("resources/list", json!({ "cursor": "x" }), -32602),
        ("resources/list", json!({ "cursor": {} }), -32602),
        ("resources/read", json!({ "uri": "a2a-hub://tasks/none" }), -32002),
        ("resources/read", json!({ "uri": 5 }), -32602),
        ("resources/read", json!({}), -32602),
    ] {
        let told = connection.ask(method, params.clone()).await;
        assert_eq!(told["error"]["code"], code, "{method} {params}: {told}");
        if code == -32002 {
            assert_eq!(told["error"]["data"], json!({ "uri": params["uri"] }), "{told}");
        }
    }
    let unknown = connection.ask("unheard/of", json!({})).await;
    let why = unknown["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("no method is called `unheard/of`, or"), "{why}");
    let call = json!({ "name": "claude-code", "arguments": { "message": 1 } });
    let told = connection.ask("tools/call", call).await;
    assert_eq!(told["result"]["isError"], true, "the model reads it: {told}");
    for params in [json!(null), json!({ "cursor": null }), json!({ "_meta": 1 })] {
        let told = connection.ask("tools/list", params.clone()).await;
        assert!(told["result"]["tools"].is_array(), "{params}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_topic_calls_are_results() {
    let stand = TestDispatcher::new().await;
    let mut connection = begun(&stand, "2025-11-25").await;
    for (tool, arguments, why) in [
        ("publish_to_topic", json!({ "topic": "a/#", "text": "x" }), "`#` is a wildcard"),
        ("publish_to_topic", json!({ "topic": "a", "text": "x", "task": 1 }), "no argument"),
        ("read_topics", json!({ "pattern": 5 }), "expected a string"),
        ("list_topics", json!({}), "this hub was built without topics"),
    ] {
        let call = json!({ "name": tool, "arguments": arguments });
        let told = connection.ask("tools/call", call).await;
        assert_eq!(told["result"]["isError"], true, "the model reads it: {told}");
        assert!(told.to_string().contains(why), "{told}");
    }
    let call = json!({ "name": "list_topics", "arguments": {}, "task": {} });
    assert_eq!(connection.ask("tools/call", call).await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn batch_of_its_version_is_answered_together() {
    let stand = TestDispatcher::new().await;
    let mut connection = begun(&stand, "2025-03-26").await;
    let ping = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let call = json!({ "name": "claude-code", "arguments": { "message": "hello" } });
    let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call });
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let again =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "initialize", "params": hello("2025-03-26") });
    let batch = json!([ping(json!(1)), call, 7, notice, ping(json!(1)), again]);
    let told = answer(&mut connection, &batch).await;
    let told = told.as_array().unwrap();
    let of = |id: Value| told.iter().filter(|it| it["id"] == id).collect::<Vec<_>>();
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!(of(json!(1)).len(), 2, "one of them is refused: {told:?}");
    assert_eq!(of(json!("c"))[0]["result"]["isError"], false, "{told:?}");
    assert_eq!(of(json!(null))[0]["error"]["code"], -32600, "{told:?}");
    assert_eq!(of(json!(5))[0]["error"]["code"], -32600, "{told:?}");

    connection.say(&json!([notice, notice]).to_string()).await;
    let told = answer(&mut connection, &ping(json!(2))).await;
    assert_eq!(told["id"], 2, "notifications alone get no answer: {told}");
    let told = answer(&mut connection, &json!([])).await;
    assert_eq!(told["error"]["code"], -32600, "{told}");
}

#[tokio::test(start_paused = true)]
async fn batch_of_other_version_is_refused() {
    let stand = TestDispatcher::new().await;
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut connection = begun(&stand, version).await;
        let batch = json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
        let told = answer(&mut connection, &batch).await;
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(-32600), &json!(null)));
    }
}

#[tokio::test(start_paused = true)]
async fn resource_pages_are_full_and_disjoint() {
    let stand = TestDispatcher::new().await;
    let mut connection = begun(&stand, "2025-06-18").await;
    let say = |text: &str| json!({ "name": "claude-code", "arguments": { "message": text } });
    for _ in 0..3 {
        connection.ask("tools/call", say("stream")).await;
        // Tasks without artifacts, more than a page of them.
        for _ in 0..25 {
            connection.ask("tools/call", say("hello")).await;
        }
    }
    let (mut seen, mut cursor) = (HashSet::new(), Value::Null);
    for _ in 0..10 {
        let page = connection.ask("resources/list", json!({ "cursor": cursor })).await;
        let resources = page["result"]["resources"].as_array().unwrap().clone();
        cursor = page["result"]["nextCursor"].clone();
        assert!(!resources.is_empty() || cursor.is_null(), "{page}");
        for resource in resources {
            assert!(resource["description"].as_str().unwrap().contains("by `claude-code`"));
            assert!(seen.insert(resource["uri"].to_string()), "twice: {resource}");
        }
        if cursor.is_null() {
            break;
        }
        connection.ask("tools/call", say("stream")).await;
    }
    assert!(cursor.is_null());
    assert!(seen.len() >= 3, "{seen:?}");
}
