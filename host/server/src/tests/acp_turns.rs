//! Tests of ACP's turns: forms, cancelled requests, ids of messages and titles.

use super::{
    STREAMED, TestDispatcher,
    acp::{prompt, say, session, texts},
    connections::TestConnection,
};
use a2a_hub_core::access_control::Principal;
use serde_json::{Value, json};

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// Begins a turn that asks by a form; returns its id and the form's request.
async fn asked(connection: &mut TestConnection, session: &Value) -> (u64, Value) {
    let id = connection.begin("session/prompt", prompt(session, "ask")).await;
    let mut told = connection.until_method("elicitation/create").await;
    (id, told.pop().unwrap())
}

async fn reply(connection: &mut TestConnection, request: &Value, result: Value) {
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    connection.say(&answer.to_string()).await;
}

#[tokio::test(start_paused = true)]
async fn filled_form_answers_question_in_turn() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp_of(&stand, Principal::Operator, forms()).await;
    let session = session(&mut connection).await;
    let (id, form) = asked(&mut connection, &session).await;
    assert_eq!((&form["params"]["sessionId"], &form["params"]["mode"]), (&session, &json!("form")));
    assert_eq!(form["params"]["message"], "which one?");
    reply(&mut connection, &form, json!({ "action": "accept", "content": { "answer": "blue" } }))
        .await;
    let told = connection.until(id).await;
    assert_eq!(told.last().unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(texts(&told, "agent_message_chunk").concat().trim(), "blue");
}

#[tokio::test(start_paused = true)]
async fn dismissed_form_leaves_question_to_prompt() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp_of(&stand, Principal::Operator, forms()).await;
    for result in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "answer": 7 } }),
        json!({ "action": ["accept"] }),
        json!(null),
    ] {
        let session = session(&mut connection).await;
        let (id, form) = asked(&mut connection, &session).await;
        reply(&mut connection, &form, result.clone()).await;
        let told = connection.until(id).await;
        assert_eq!(told.last().unwrap()["result"]["stopReason"], "end_turn", "{result}");
        let told = say(&mut connection, &session, "green").await;
        assert_eq!(texts(&told, "agent_message_chunk").concat(), "green", "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_of_other_client_closes_form() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp_of(&stand, Principal::Operator, forms()).await;
    let session = session(&mut connection).await;
    let (id, form) = asked(&mut connection, &session).await;
    let mut other = TestConnection::acp(&stand).await;
    let place = json!({ "sessionId": session, "cwd": "/w" });
    other.ask("session/resume", place).await;
    say(&mut other, &session, "red").await;
    let told = connection.until(id).await;
    let closed = told.iter().find(|line| line["method"] == "$/cancel_request").unwrap();
    assert_eq!(closed["params"]["requestId"], form["id"]);
    assert_eq!(told.last().unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(texts(&told, "agent_message_chunk").concat().trim(), "red");
    // A late answer changes nothing.
    reply(&mut connection, &form, json!({ "action": "accept", "content": { "answer": "blue" } }))
        .await;
    let told = say(&mut connection, &session, "hello").await;
    assert_eq!(texts(&told, "agent_message_chunk").concat(), "hello");
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_ends_its_turn() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp_of(&stand, Principal::Operator, forms()).await;
    let cancel = |id: Value| {
        json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } })
            .to_string()
    };
    let session = session(&mut connection).await;
    let id = connection.begin("session/prompt", prompt(&session, "work")).await;
    for unknown in [json!(9), json!("x"), json!(null), json!({}), json!(id.to_string())] {
        connection.say(&cancel(unknown)).await;
    }
    connection.say(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":7}"#).await;
    connection.say(r#"{"jsonrpc":"2.0","method":"$/unknown"}"#).await;
    assert!(connection.ask("authenticate", json!({})).await.get("result").is_some());
    connection.say(&cancel(json!(id))).await;
    let told = connection.until(id).await;
    assert_eq!(told.last().unwrap()["result"]["stopReason"], "cancelled");
    connection.say(&cancel(json!(id))).await;

    let (id, form) = asked(&mut connection, &session).await;
    connection.say(&cancel(json!(id))).await;
    let told = connection.until(id).await;
    assert!(told.iter().any(|line| line["params"]["requestId"] == form["id"]), "{told:?}");
    assert_eq!(told.last().unwrap()["result"]["stopReason"], "cancelled");
}

/// Ids and texts of the agent's messages.
fn messages(told: &[Value]) -> Vec<(String, String)> {
    let updates = told.iter().map(|line| &line["params"]["update"]);
    let mut messages: Vec<(String, String)> = Vec::new();
    for update in updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk") {
        let id = update["messageId"].as_str().unwrap().to_owned();
        let text = update["content"]["text"].as_str().unwrap();
        match messages.last_mut() {
            Some((latest, whole)) if *latest == id => whole.push_str(text),
            _ => messages.push((id, text.to_owned())),
        }
    }
    messages
}

#[tokio::test(start_paused = true)]
async fn loaded_messages_keep_their_ids() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let told = messages(&say(&mut connection, &session, "stream").await);
    let texts: Vec<_> = told.iter().map(|(_, text)| text.trim()).collect();
    assert_eq!(texts, [&STREAMED.concat(), "done"]);
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let id = connection.begin("session/load", load).await;
    let loaded = connection.until(id).await;
    assert_eq!(messages(&loaded), told);
    let user = loaded.iter().map(|line| &line["params"]["update"]);
    let user = user.filter(|update| update["sessionUpdate"] == "user_message_chunk");
    assert!(user.into_iter().all(|update| update["messageId"].is_string()), "{loaded:?}");
}

#[tokio::test(start_paused = true)]
async fn reported_tools_and_plan_replace_thoughts() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let kinds = |told: &[Value]| -> Vec<String> {
        let updates = told.iter().map(|line| &line["params"]["update"]);
        let kinds = updates.filter_map(|update| {
            let status = update["status"].as_str().unwrap_or_default();
            Some(format!("{} {status}", update["sessionUpdate"].as_str()?).trim().to_owned())
        });
        kinds.filter(|kind| !kind.contains("info")).collect()
    };
    let told = kinds(&say(&mut connection, &session, "use tools").await);
    let reported = [
        "tool_call in_progress",
        "tool_call_update completed",
        "tool_call in_progress",
        "plan",
        "agent_thought_chunk",
        "usage_update",
        "tool_call completed",
    ];
    assert_eq!(told[..7], reported);
    let end = ["tool_call_update completed", "usage_update", "agent_message_chunk"];
    assert_eq!(told[7..], end, "the call that was left open ends with the turn");
}

#[tokio::test(start_paused = true)]
async fn first_prompt_is_title_of_session() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let titles = |told: &[Value]| -> Vec<Value> {
        told.iter()
            .map(|line| line["params"]["update"]["title"].clone())
            .filter(Value::is_string)
            .collect()
    };
    let long = "word\u{1b} ".repeat(100);
    let told = titles(&say(&mut connection, &session, &long).await);
    assert_eq!(told.len(), 1);
    let title = told[0].as_str().unwrap();
    assert!(title.starts_with("word word") && title.chars().count() <= 80, "{title}");
    assert_eq!(titles(&say(&mut connection, &session, "hello").await), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn unused_mcp_servers_are_reported_as_notice() {
    let stand = TestDispatcher::new().await;
    let can = json!({ "session": { "notices": {} } });
    let mut connection = TestConnection::acp_of(&stand, Principal::Operator, can).await;
    let servers = json!([{ "name": "files", "command": "/x", "args": [], "env": [] }]);
    let begun = connection.ask("session/new", json!({ "cwd": "/w", "mcpServers": servers })).await;
    let told = say(&mut connection, &begun["result"]["sessionId"], "hello").await;
    let notice = told.iter().map(|line| &line["params"]["update"]);
    let notice = notice.filter(|update| update["sessionUpdate"] == "notice").collect::<Vec<_>>();
    assert_eq!((notice.len(), &notice[0]["severity"]), (1, &json!("warning")));
    assert!(notice[0]["description"].as_str().unwrap().contains("files"), "{notice:?}");
}
