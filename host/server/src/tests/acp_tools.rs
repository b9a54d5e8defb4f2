//! Tests of ACP's tool calls, permissions, content blocks and commands.

use super::{
    TestDispatcher,
    acp::{prompt, say, session, texts},
    connections::TestConnection,
    scripted::script,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// State of each tool call after these lines. Panics if an id is announced twice, or updated before
/// it is announced.
fn call_states(lines: &[Value]) -> BTreeMap<String, String> {
    let mut states = BTreeMap::new();
    for line in lines {
        let update = &line["params"]["update"];
        let id = || update["toolCallId"].as_str().unwrap().to_owned();
        let state = update["status"].as_str().map(str::to_owned);
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => {
                let before = states.insert(id(), state.unwrap_or_else(|| "pending".to_owned()));
                assert_eq!(before, None, "announced twice: {update}");
            }
            Some("tool_call_update") => {
                let known = states.get_mut(&id());
                let known = known.unwrap_or_else(|| panic!("not announced: {update}"));
                *known = state.unwrap_or_else(|| known.clone());
            }
            _ => {}
        }
        if line["method"] == "session/request_permission" {
            let id = line["params"]["toolCall"]["toolCallId"].as_str().unwrap();
            assert!(states.contains_key(id), "not announced: {line}");
        }
    }
    states
}

fn tool(id: &str, status: &str) -> Value {
    json!({ "working": { "tool": { "id": id, "name": "Bash", "kind": "execute", "status": status,
        "title": format!("call {id}"), "input": { "command": format!("echo {id}") } } } })
}

fn end(state: &str) -> Value {
    json!({ "end": { "state": state, "message": [{ "text": format!("it is {state}") }] } })
}

fn permission(of: &Value) -> Value {
    json!({ "permission": of })
}

/// Runs a script, and answers each permission request with this outcome, or cancels at the first
/// request without one.
async fn run(connection: &mut TestConnection, steps: Value, outcome: Option<Value>) -> Vec<Value> {
    let session = session(connection).await;
    let id = connection.begin("session/prompt", prompt(&session, &script(&steps))).await;
    let cancel = json!({ "method": "session/cancel", "params": { "sessionId": session } });
    let mut lines = Vec::new();
    loop {
        let line = connection.hear().await;
        let waits = line["params"]["update"]["title"] == "call wait";
        if line["method"] == "session/request_permission" || waits {
            match &outcome {
                Some(outcome) if !waits => {
                    let result = json!({ "outcome": outcome });
                    let answer = json!({ "jsonrpc": "2.0", "id": line["id"], "result": result });
                    connection.say(&answer.to_string()).await;
                }
                Some(_) | None => connection.say(&cancel.to_string()).await,
            }
        }
        let is_last = line["id"] == id && line.get("method").is_none();
        lines.push(line);
        if is_last {
            return lines;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_tool_call_ends_with_turn() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    let select = |id: &str| Some(json!({ "outcome": "selected", "optionId": id }));
    let named = json!({ "tool": "Bash", "toolCall": { "id": "1" } });
    let unnamed = json!({ "tool": "Other", "input": { "a": 1 } });
    let open = || vec![tool("0", "completed"), tool("1", "in_progress")];
    let steps = |more: &[Value]| json!([open(), more.to_vec()].concat());
    for (steps, outcome, stop, states) in [
        (steps(&[end("completed")]), None, "end_turn", vec!["completed", "completed"]),
        (steps(&[end("rejected")]), None, "end_turn", vec!["completed", "failed"]),
        (steps(&[end("failed")]), None, "error", vec!["completed", "failed"]),
        (
            steps(&[tool("wait", "pending"), json!({ "wait": true })]),
            None,
            "cancelled",
            vec!["completed", "failed", "failed"],
        ),
        (
            steps(&[permission(&named), json!({ "wait": true })]),
            None,
            "cancelled",
            vec!["completed", "failed"],
        ),
        (
            steps(&[permission(&named), end("completed")]),
            Some(json!({ "outcome": "cancelled" })),
            "cancelled",
            vec!["completed", "failed"],
        ),
        (
            steps(&[permission(&named), tool("1", "failed"), end("completed")]),
            select("deny"),
            "end_turn",
            vec!["completed", "failed"],
        ),
        (
            steps(&[permission(&named), end("completed")]),
            select("deny"),
            "end_turn",
            vec!["completed", "failed"],
        ),
        (
            steps(&[permission(&named), end("completed")]),
            select("allow"),
            "end_turn",
            vec!["completed", "completed"],
        ),
        // The question's own entry sorts before the reported calls: `#` precedes `/`.
        (
            steps(&[permission(&unnamed), end("completed")]),
            select("deny"),
            "end_turn",
            vec!["failed", "completed", "completed"],
        ),
        (
            steps(&[permission(&unnamed), end("failed")]),
            select("allow"),
            "error",
            vec!["completed", "completed", "failed"],
        ),
    ] {
        let lines = run(&mut connection, steps.clone(), outcome).await;
        let answer = lines.last().unwrap();
        let stopped = answer["result"]["stopReason"].as_str().unwrap_or("error");
        let found: Vec<_> = call_states(&lines).into_values().collect();
        assert_eq!(
            (stopped, found),
            (stop, states.iter().map(|it| (*it).to_owned()).collect()),
            "{steps}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_prompt_keeps_its_reason() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    for (steps, reason) in [
        (json!([end("rejected")]), "it is rejected"),
        (
            json!([{ "end": { "state": "rejected" } }]),
            "The agent rejected the request, and does not say why.",
        ),
    ] {
        let lines = run(&mut connection, steps, None).await;
        let result = &lines.last().unwrap()["result"];
        let ended = (&result["stopReason"], &result["_meta"]["a2a-hub/state"]);
        assert_eq!(ended, (&json!("end_turn"), &json!("rejected")));
        assert_eq!(texts(&lines, "agent_message_chunk"), [reason]);
    }
}

/// A turn that ends with a question, and the one that answers it, are one task.
#[tokio::test(start_paused = true)]
async fn next_turn_continues_tool_calls() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let steps =
        json!([tool("1", "in_progress"), { "input": {} }, tool("1", "failed"), end("completed")]);
    let mut lines = say(&mut connection, &session, &script(&steps)).await;
    assert!(call_states(&lines).values().all(|state| state == "completed"));
    lines.extend(say(&mut connection, &session, "go on").await);
    assert_eq!(call_states(&lines).into_values().collect::<Vec<_>>(), ["failed"]);

    let mut other = TestConnection::acp(&stand).await;
    let place = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let id = other.begin("session/load", place).await;
    let loaded = call_states(&other.until(id).await);
    assert_eq!(loaded.into_values().collect::<Vec<_>>(), ["failed"]);
}

#[tokio::test(start_paused = true)]
async fn loaded_conversation_has_no_open_calls() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    for state in ["completed", "failed"] {
        let steps = json!([tool("1", "in_progress"), end(state)]);
        let lines = run(&mut connection, steps, None).await;
        let session = &lines[0]["params"]["sessionId"];
        let place = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
        let id = connection.begin("session/load", place).await;
        let loaded = call_states(&connection.until(id).await);
        assert_eq!(loaded.into_values().collect::<Vec<_>>(), [state]);
    }
}

#[tokio::test(start_paused = true)]
async fn pictures_and_links_are_content_blocks() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    let parts = json!([
        { "text": "see" },
        { "raw": "iVBORw==", "filename": "pixel.png", "mediaType": "image/png" },
        { "url": "https://x.test/report.pdf" },
    ]);
    let message = json!([{ "text": "done" }, { "raw": "aGk=", "filename": "note.md" }]);
    let steps = json!([
        { "artifact": { "id": "a", "parts": parts } },
        { "end": { "state": "completed", "message": message } },
    ]);
    let lines = run(&mut connection, steps, None).await;
    let kinds = |lines: &[Value]| -> Vec<String> {
        let updates = lines.iter().map(|line| &line["params"]["update"]);
        let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.map(|chunk| chunk["content"]["type"].as_str().unwrap().to_owned()).collect()
    };
    let shown = ["text", "image", "resource_link", "text", "resource"];
    assert_eq!(kinds(&lines), shown);
    let session = &lines[0]["params"]["sessionId"];
    let place = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let id = connection.begin("session/load", place).await;
    assert_eq!(kinds(&connection.until(id).await), shown);
}

/// An editor offers each command of its menu, and this one would be a text for the model.
#[tokio::test(start_paused = true)]
async fn uncallable_commands_are_never_offered() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    let first = session(&mut connection).await;
    let offered = |lines: &[Value]| -> Vec<usize> {
        let updates = lines.iter().map(|line| &line["params"]["update"]);
        let updates = updates.filter(|it| it["sessionUpdate"] == "available_commands_update");
        updates.map(|it| it["availableCommands"].as_array().unwrap().len()).collect()
    };
    let reports = |commands: Value| {
        script(&json!([{ "working": { "commands": commands } }, end("completed")]))
    };
    let listed = json!([{ "name": "compact", "description": "Shorten it", "callable": false }]);
    let lines = say(&mut connection, &first, &reports(listed.clone())).await;
    assert_eq!(offered(&lines), Vec::<usize>::new());
    say(&mut connection, &first, "/compact").await;
    let facts = stand.latest_message_facts(first.as_str().unwrap()).await;
    assert_eq!(facts["command"], Value::Null, "{facts}");

    // A menu that the client has is cleared.
    let lines = say(&mut connection, &first, &reports(json!([{ "name": "init" }]))).await;
    assert_eq!(offered(&lines), [1]);
    let lines = say(&mut connection, &first, &reports(listed)).await;
    assert_eq!(offered(&lines), [0]);
}

#[tokio::test(start_paused = true)]
async fn reported_commands_are_offered_and_called() {
    let stand = TestDispatcher::with_tasks_only().await;
    let mut connection = TestConnection::acp(&stand).await;
    let first = session(&mut connection).await;
    let commands =
        json!([{ "name": "compact", "description": "Shorten it", "hint": "what to keep" }]);
    let steps = json!([{ "working": { "commands": commands } }, end("completed")]);
    let lines = say(&mut connection, &first, &script(&steps)).await;
    let offered = |lines: &[Value]| -> Vec<Value> {
        let updates = lines.iter().map(|line| &line["params"]["update"]);
        let updates = updates.filter(|it| it["sessionUpdate"] == "available_commands_update");
        updates.map(|update| update["availableCommands"][0]["name"].clone()).collect()
    };
    assert_eq!(offered(&lines), [json!("compact")]);
    assert_eq!(texts(&lines, "agent_thought_chunk"), ["for people\n"], "the status has a text");

    // A new session of the agent in the directory has them as well.
    let mut other = TestConnection::acp(&stand).await;
    let second = session(&mut other).await;
    let lines = other.until_method("session/update").await;
    assert_eq!(offered(&lines), [json!("compact")]);
    assert_eq!(lines.last().unwrap()["params"]["sessionId"], second);
    for (text, command) in [
        ("/compact all but the plan", json!({ "name": "compact", "input": "all but the plan" })),
        ("/etc/passwd", Value::Null),
    ] {
        say(&mut other, &second, text).await;
        let facts = stand.latest_message_facts(second.as_str().unwrap()).await;
        assert_eq!(facts["command"], command, "{facts}");
    }
}
