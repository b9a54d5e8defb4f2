//! Tests of the ACP endpoint: updates, replay of conversations, and cancelled turns.

use super::{STREAMED, TestDispatcher, connections::TestConnection};
use serde_json::{Value, json};

pub(super) async fn session(connection: &mut TestConnection) -> Value {
    let params = json!({ "cwd": "/w", "mcpServers": [] });
    connection.ask("session/new", params).await["result"]["sessionId"].clone()
}

pub(super) fn prompt(session: &Value, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// Texts of the updates of this kind.
pub(super) fn texts<'a>(told: &'a [Value], kind: &str) -> Vec<&'a str> {
    let updates = told.iter().map(|line| &line["params"]["update"]);
    let updates = updates.filter(|update| update["sessionUpdate"] == kind);
    updates.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// Kinds and texts of all updates.
fn updates(told: &[Value]) -> Vec<(&str, &str)> {
    let updates = told.iter().map(|line| &line["params"]["update"]);
    let of = |update| text_of(update);
    updates.filter_map(of).collect()
}

fn text_of(update: &Value) -> Option<(&str, &str)> {
    Some((update["sessionUpdate"].as_str()?, update["content"]["text"].as_str()?))
}

pub(super) async fn say(
    connection: &mut TestConnection,
    session: &Value,
    text: &str,
) -> Vec<Value> {
    let id = connection.begin("session/prompt", prompt(session, text)).await;
    connection.until(id).await
}

#[tokio::test(start_paused = true)]
async fn streamed_answer_is_shown_once() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let told = say(&mut connection, &session, "stream").await;
    let shown = texts(&told, "agent_message_chunk").concat();
    assert_eq!(shown, format!("{}\n\ndone", STREAMED.concat()));
}

#[tokio::test(start_paused = true)]
async fn loaded_session_replays_whole_conversation() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    say(&mut connection, &session, "stream").await;
    for at in 0..210 {
        say(&mut connection, &session, &format!("message {at}")).await;
    }
    say(&mut connection, &session, "ask").await;

    let mut other = TestConnection::acp(&stand).await;
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let id = other.begin("session/load", load).await;
    let told = other.until(id).await;
    assert!(told.last().is_some_and(|answer| answer.get("result").is_some()), "{told:?}");
    let (user, agent) = ("user_message_chunk", "agent_message_chunk");
    let mut wanted = vec![(user, "stream".to_owned())];
    wanted.extend([STREAMED.concat(), "\n\ndone".to_owned()].map(|text| (agent, text)));
    for at in 0..210 {
        wanted.extend([user, agent].map(|kind| (kind, format!("message {at}"))));
    }
    wanted.extend([(user, "ask".to_owned()), (agent, "which one?".to_owned())]);
    let shown: Vec<_> =
        updates(&told).into_iter().map(|(kind, text)| (kind, text.to_owned())).collect();
    assert_eq!(shown, wanted);
}

#[tokio::test(start_paused = true)]
async fn prompt_after_cancel_waits_for_end() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let cancel = json!({ "method": "session/cancel", "params": { "sessionId": session } });
    let working = connection.begin("session/prompt", prompt(&session, "work")).await;
    let refused = connection.ask("session/prompt", prompt(&session, "hello")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    connection.say(&cancel.to_string()).await;
    let cancelled = connection.begin("session/prompt", prompt(&session, "hello")).await;
    connection.say(&cancel.to_string()).await;
    let last = connection.begin("session/prompt", prompt(&session, "hello")).await;
    let told = connection.until(last).await;
    for (id, reason) in [(working, "cancelled"), (cancelled, "cancelled"), (last, "end_turn")] {
        let answer = told.iter().find(|line| line["id"] == id).unwrap();
        assert_eq!(answer["result"]["stopReason"], reason, "{told:?}");
    }
    assert_eq!(texts(&told, "agent_message_chunk"), ["hello"]);
}

#[tokio::test(start_paused = true)]
async fn cancel_request_is_answered() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let working = connection.begin("session/prompt", prompt(&session, "work")).await;
    let answer = connection.begin("session/cancel", json!({ "sessionId": session })).await;
    let mut told = connection.until(working).await;
    if !told.iter().any(|line| line["id"] == answer) {
        told.extend(connection.until(answer).await);
    }
    let stopped = told.iter().find(|line| line["id"] == working).unwrap();
    assert_eq!(stopped["result"]["stopReason"], "cancelled");
    assert!(told.iter().any(|line| line["id"] == answer && line["result"] == json!({})));
}

#[tokio::test(start_paused = true)]
async fn unused_mcp_servers_are_named_once() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let servers = json!([{ "name": "files\u{1b}[2J", "command": "/x", "args": [] }, { "url": "http://u/" }, 1]);
    let begun = connection.ask("session/new", json!({ "cwd": "/w", "mcpServers": servers })).await;
    let names = json!(["files[2J", "http://u/", "a server without a name"]);
    assert_eq!(begun["result"]["_meta"]["a2a-hub/ignoredMcpServers"], names, "{begun}");
    let session = &begun["result"]["sessionId"];
    let told = say(&mut connection, session, "hello").await;
    let thoughts = texts(&told, "agent_thought_chunk").concat();
    assert!(thoughts.contains("MCP servers are not used: files[2J, http://u/"), "{thoughts}");
    let told = say(&mut connection, session, "hello").await;
    assert!(!texts(&told, "agent_thought_chunk").concat().contains("MCP servers"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn odd_prompt_metadata_is_ignored() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    for meta in [json!(null), json!("x"), json!([1]), json!(7)] {
        let mut params = prompt(&session, "hello");
        params.as_object_mut().unwrap().insert("_meta".to_owned(), meta.clone());
        let answer = connection.ask("session/prompt", params).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{meta}: {answer}");
    }
}
