//! Robustness tests: lines of arbitrary JSON on a connection get a proper response, and the
//! connection survives.

use super::{
    TestDispatcher,
    connections::TestConnection,
    json_shapes::{reshaped, shapes},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{binding::jsonrpc::ParamsSource, error::A2aError, hub::methods::METHODS};
use a2a_hub_rpc::dispatcher::RequestContext;
use serde_json::{Value, json};

/// True for the error response to a panic.
fn is_of_a_panic(told: &Value) -> bool {
    told.to_string().contains(&A2aError::internal().message)
}

/// Sends these lines, each followed by a `probe` request, and returns all responses.
async fn feed(connection: &mut TestConnection, lines: Vec<Value>, probe: &str) -> Vec<Value> {
    let mut told = Vec::new();
    for line in lines {
        connection.say(&line.to_string()).await;
        let id = connection.begin(probe, json!({})).await;
        told.extend(connection.until(id).await);
    }
    told
}

/// Asserts one refusal of an invalid message for each shape.
fn assert_refused(told: &[Value]) {
    let refused: Vec<_> = told.iter().filter(|told| told["error"]["code"] == -32600).collect();
    assert_eq!(refused.len(), shapes().len(), "{told:?}");
    assert!(refused.iter().all(|told| told.get("id") == Some(&Value::Null)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn acp_connection_survives_arbitrary_json() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let told = feed(&mut connection, shapes().to_vec(), "authenticate").await;
    assert_refused(&told);

    let begun = connection.ask("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
    let session = &begun["result"]["sessionId"];
    let resource = json!({ "uri": "file:///a", "text": "t" });
    let blocks = json!([
        { "type": "text", "text": "hi" },
        { "type": "resource", "resource": resource },
        { "type": "image", "data": "AA==", "mimeType": "image/png" },
    ]);
    let meta = json!({ "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" });
    for (method, params) in [
        ("initialize", json!({ "protocolVersion": 1, "clientCapabilities": { "fs": {} } })),
        ("session/new", json!({ "cwd": "/w", "mcpServers": [{ "name": "n" }] })),
        ("session/load", json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] })),
        ("session/resume", json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] })),
        ("session/list", json!({ "cwd": "/w", "cursor": "01a21956-d9cb-75c5-aa3f-1fb5eef11841" })),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "ask" })),
        (
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "agent", "value": "claude-code" }),
        ),
        ("$/cancel_request", json!({ "requestId": "x" })),
        ("session/cancel", json!({ "sessionId": session })),
        ("session/prompt", json!({ "sessionId": session, "prompt": blocks, "_meta": meta })),
        ("session/delete", json!({ "sessionId": session })),
        ("session/close", json!({ "sessionId": session })),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params });
        let told = feed(&mut connection, reshaped(&line), "authenticate").await;
        assert!(!told.iter().any(is_of_a_panic), "{method}: {told:?}");
    }
    let answers = json!({ "jsonrpc": "2.0", "id": 7, "result": { "outcome": { "outcome": "selected", "optionId": "x" } } });
    feed(&mut connection, reshaped(&answers), "authenticate").await;
}

#[tokio::test(start_paused = true)]
async fn mcp_connection_survives_arbitrary_json() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::mcp(&stand).await;
    let told = feed(&mut connection, shapes().to_vec(), "ping").await;
    assert_refused(&told);

    let call = json!({ "message": "hi", "context_id": "c", "model": "m", "wait_seconds": 1 });
    for (method, params) in [
        (
            "tools/call",
            json!({ "name": "claude-code", "arguments": call, "_meta": { "progressToken": 1 } }),
        ),
        (
            "tools/call",
            json!({ "name": "check_task", "arguments": { "task_id": "t", "wait_seconds": 0 } }),
        ),
        (
            "tools/call",
            json!({ "name": "answer_task", "arguments": { "task_id": "t", "message": "m" } }),
        ),
        ("tools/call", json!({ "name": "list_questions", "arguments": { "limit": 1 } })),
        (
            "tools/call",
            json!({ "name": "answer_question", "arguments": { "ids": ["q"], "answer": "deny" } }),
        ),
        ("resources/list", json!({ "cursor": "1" })),
        ("resources/read", json!({ "uri": "a2a-hub://tasks/t" })),
        ("notifications/cancelled", json!({ "requestId": 1, "reason": "r" })),
    ] {
        // Lines with another id are left out, because the SDK might answer a different request.
        let line = json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params });
        let lines = reshaped(&line).into_iter().filter(|line| line["id"] == "x").collect();
        let told = feed(&mut connection, lines, "ping").await;
        assert!(!told.iter().any(is_of_a_panic), "{method}: {told:?}");
    }
}

/// Every method answers any parameters without a panic.
#[tokio::test(start_paused = true)]
async fn methods_survive_arbitrary_parameters() {
    let stand = TestDispatcher::with_streams(10_000).await;
    let mut answered = 0;
    for method in METHODS {
        let params: Value = serde_json::from_str(method.example).unwrap();
        for other in reshaped(&params) {
            let request =
                json!({ "jsonrpc": "2.0", "id": 1, "method": method.name, "params": other });
            let of = RequestContext::of_hub(Principal::Operator, "http://hub/", None);
            let of = RequestContext { source: ParamsSource::Metadata, ..of };
            let text = match stand.dispatcher.respond(request.to_string(), &of).await {
                Ok(Some(Reply::One(text))) => text,
                Ok(Some(Reply::Stream(_)) | None) => continue,
                Err(refused) => refused.text,
            };
            let told: Value = serde_json::from_slice(&text).unwrap();
            assert!(!is_of_a_panic(&told), "{request}: {told}");
            answered += 1;
        }
    }
    assert!(answered > 500, "{answered} requests are answered");
}

/// Halves of surrogate pairs, bytes that are not UTF-8, and lines that break off after their id.
#[tokio::test(start_paused = true)]
async fn faulty_lines_are_answered_by_id() {
    let stand = TestDispatcher::new().await;
    for (mut connection, method) in [
        (TestConnection::acp(&stand).await, "authenticate"),
        (TestConnection::mcp(&stand).await, "ping"),
    ] {
        for (id, line) in [
            (7, &b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"METHOD\"}\r\n"[..]),
            (8, b"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"METHOD\",\"params\":{\"_meta\":{\"a\":\"\\ud83d\"}}}\n"),
            (9, b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"METHOD\",\"params\":{\"_meta\":{\"a\":\"\xff\"}}}\n"),
            (10, b"{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"METHOD\",\"params\":{\"a\n"),
        ] {
            let at = line.windows(6).position(|part| part == b"METHOD").unwrap();
            let line = [&line[..at], method.as_bytes(), &line[at + 6..]].concat();
            connection.write(&line).await;
            let answer = connection.until(id).await.pop().unwrap_or_default();
            assert_eq!(answer["error"]["code"] == -32700, id == 10, "{method}: {answer}");
        }
    }
}
