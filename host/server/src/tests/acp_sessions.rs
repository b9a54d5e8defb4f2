//! Tests of ACP's sessions: list, resume, close, delete and options.

use super::{
    TestDispatcher,
    acp::{prompt, say, session, texts},
    connections::TestConnection,
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::id::TenantId;
use serde_json::{Value, json};
use std::{collections::BTreeSet, slice};

fn place(session: &Value) -> Value {
    json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] })
}

async fn list(connection: &mut TestConnection, params: Value) -> Value {
    connection.ask("session/list", params).await["result"].take()
}

fn ids(list: &Value) -> Vec<Value> {
    let sessions = list["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["sessionId"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn listed_sessions_are_paged_by_cursor() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let mut begun = Vec::new();
    for at in 0..60 {
        let place = json!({ "cwd": if at == 7 { "/other" } else { "/w" }, "mcpServers": [] });
        let session = connection.ask("session/new", place).await["result"]["sessionId"].clone();
        say(&mut connection, &session, &format!("request {at}\n of mine")).await;
        begun.insert(0, session);
    }
    let first = list(&mut connection, json!({})).await;
    assert_eq!(ids(&first), begun[..50]);
    assert_eq!(first["sessions"][0]["title"], "request 59 of mine");
    assert!(first["sessions"][0]["updatedAt"].is_string(), "{first}");
    // A conversation that goes on moves to the top, and no other one is missed or repeated.
    say(&mut connection, &begun[55], "once more").await;
    let second = list(&mut connection, json!({ "cursor": first["nextCursor"] })).await;
    let left: Vec<_> = begun[50..].iter().filter(|id| **id != begun[55]).cloned().collect();
    assert_eq!(ids(&second), left);
    assert!(second.get("nextCursor").is_none(), "{second}");
    let top = list(&mut connection, json!({ "cwd": null, "cursor": null })).await;
    assert_eq!(top["sessions"][0]["title"], "request 4 of mine", "the first prompt is the title");

    let within = list(&mut connection, json!({ "cwd": "/other" })).await;
    assert_eq!(
        (ids(&within), &within["sessions"][0]["cwd"]),
        (vec![begun[52].clone()], &json!("/other"))
    );
    assert_eq!(ids(&list(&mut connection, json!({ "cwd": "/none" })).await), Vec::<Value>::new());
    for wrong in [
        json!({ "cursor": "50" }),
        json!({ "cursor": "" }),
        json!({ "cursor": 7 }),
        json!({ "cursor": "x".repeat(36) }),
        json!({ "cwd": "w" }),
        json!({ "cwd": [] }),
        json!("all"),
    ] {
        let answer = connection.ask("session/list", wrong.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn resumed_session_answers_open_question() {
    let stand = TestDispatcher::new().await;
    let mut first = TestConnection::acp(&stand).await;
    let session = session(&mut first).await;
    say(&mut first, &session, "ask").await;
    for (method, replays) in [("session/resume", false), ("session/load", true)] {
        let mut other = TestConnection::acp(&stand).await;
        let id = other.begin(method, place(&session)).await;
        let told = other.until(id).await;
        assert_eq!(told.len() > 1, replays, "{told:?}");
        assert!(told.last().unwrap()["result"]["configOptions"].is_array(), "{told:?}");
        let told = say(&mut other, &session, "blue").await;
        assert_eq!(texts(&told, "agent_message_chunk").concat(), "blue");
        say(&mut other, &session, "ask").await;
    }
    let mut other = TestConnection::acp(&stand).await;
    for (wrong, code) in [
        (json!({ "sessionId": "none", "cwd": "/w" }), -32002),
        (json!({ "sessionId": session, "cwd": "w" }), -32602),
        (json!({ "sessionId": 7, "cwd": "/w" }), -32602),
        (json!({ "sessionId": session }), -32602),
    ] {
        let answer = other.ask("session/resume", wrong.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{wrong}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn closed_session_cancels_its_turn() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let session = session(&mut connection).await;
    let working = connection.begin("session/prompt", prompt(&session, "work")).await;
    let closing = connection.begin("session/close", json!({ "sessionId": session })).await;
    // A prompt behind the closing gets an error, or is cancelled with the session.
    let told = connection.until(closing).await;
    let stopped = told.iter().find(|line| line["id"] == working);
    let stopped = match stopped {
        Some(stopped) => stopped.clone(),
        None => connection.until(working).await.pop().unwrap(),
    };
    assert_eq!(stopped["result"]["stopReason"], "cancelled", "{stopped}");
    assert_eq!(told.last().unwrap()["result"], json!({}));
    for (method, params) in [
        ("session/prompt", prompt(&session, "hello")),
        ("session/close", json!({ "sessionId": session })),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "ask" })),
        ("session/close", json!({ "sessionId": "none" })),
    ] {
        let answer = connection.ask(method, params).await;
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    assert_eq!(ids(&list(&mut connection, json!({})).await).len(), 1, "the conversation stays");
    assert!(connection.ask("session/resume", place(&session)).await.get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn deleted_session_leaves_list_and_cancels() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    for text in ["hello", "ask", "work"] {
        let session = session(&mut connection).await;
        let delete = json!({ "sessionId": session });
        let id = connection.begin("session/prompt", prompt(&session, text)).await;
        if text != "work" {
            connection.until(id).await;
        }
        let deleted = connection.ask("session/delete", delete.clone()).await;
        assert_eq!(deleted["result"], json!({}), "{text}: {deleted}");
        assert_eq!(ids(&list(&mut connection, json!({})).await), Vec::<Value>::new(), "{text}");
        let answer = connection.ask("session/prompt", prompt(&session, "hello")).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        let again = connection.ask("session/delete", delete).await;
        assert_eq!(again["result"], json!({}), "an unknown session counts as deleted");
    }
    for wrong in [json!({}), json!({ "sessionId": null }), json!([])] {
        let answer = connection.ask("session/delete", wrong).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn session_at_work_elsewhere_is_kept() {
    let stand = TestDispatcher::new().await;
    let (mut one, mut other) =
        (TestConnection::acp(&stand).await, TestConnection::acp(&stand).await);
    let session = session(&mut one).await;
    say(&mut one, &session, "hello").await;
    one.begin("session/prompt", prompt(&session, "work")).await;
    loop {
        let deleted = other.ask("session/delete", json!({ "sessionId": session })).await;
        // The other client's task may not have begun yet.
        if let Some(error) = deleted.get("error") {
            assert!(error["message"].as_str().unwrap().contains("is not over"), "{error}");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn session_of_other_tenant_is_unknown() {
    let tenants = ["acme", "other"].map(|name| TenantId::try_from(name.to_owned()).unwrap());
    let stand = TestDispatcher::of_tenants(8, BTreeSet::from(tenants)).await;
    let client = |name: &str| Principal::Client(name.to_owned());
    let mut acme = TestConnection::acp_of(&stand, client("acme"), json!({})).await;
    let session = session(&mut acme).await;
    say(&mut acme, &session, "hello").await;
    assert_eq!(ids(&list(&mut acme, json!({})).await), slice::from_ref(&session));

    let mut other = TestConnection::acp_of(&stand, client("other"), json!({})).await;
    assert_eq!(ids(&list(&mut other, json!({})).await), Vec::<Value>::new());
    for method in ["session/load", "session/resume", "session/close"] {
        let answer = other.ask(method, place(&session)).await;
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    let refused = other.ask("session/delete", place(&session)).await;
    assert!(refused.get("error").is_some(), "{refused}");
    let mut operator = TestConnection::acp(&stand).await;
    operator.ask("session/delete", place(&session)).await;
    assert_eq!(ids(&list(&mut acme, json!({})).await), [session], "it is of another tenant");
}

#[tokio::test(start_paused = true)]
async fn option_is_set_by_offered_value_only() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let begun = connection.ask("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
    let (session, options) = (&begun["result"]["sessionId"], &begun["result"]["configOptions"]);
    assert_eq!(
        (&options[0]["id"], &options[0]["currentValue"]),
        (&json!("agent"), &json!("claude-code"))
    );
    let set =
        |id: Value, value: Value| json!({ "sessionId": session, "configId": id, "value": value });
    let same = connection
        .ask("session/set_config_option", set(json!("agent"), json!("claude-code")))
        .await;
    assert_eq!(same["result"]["configOptions"], *options);
    for (wrong, code) in [
        (set(json!("agent"), json!("nobody")), -32602),
        (set(json!("agent"), json!(true)), -32602),
        (set(json!("mode"), json!("ask")), -32602),
        (set(json!("model"), json!("large")), -32602),
        (set(json!("colour"), json!("red")), -32602),
        (set(json!(7), json!("red")), -32602),
        (json!({ "sessionId": "none", "configId": "agent", "value": "claude-code" }), -32002),
        (json!({ "sessionId": session, "configId": "agent" }), -32602),
    ] {
        let answer = connection.ask("session/set_config_option", wrong.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{wrong}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_additional_directories_are_refused() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let with =
        |more: Value| json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": more });
    for more in [
        json!(["in"]),
        json!(["/w", ""]),
        json!(vec!["/w/in"; 101]),
        json!([format!("/{}", "x".repeat(4_096))]),
    ] {
        let answer = connection.ask("session/new", with(more)).await;
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(why.starts_with("`additionalDirectories`") && why.len() < 400, "{answer}");
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    for odd in [json!("/other"), json!({}), json!([7])] {
        let answer = connection.ask("session/new", with(odd)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    for more in [json!([]), json!(null), json!(["/w", "/elsewhere"])] {
        let begun = connection.ask("session/new", with(more)).await;
        assert!(begun["result"]["sessionId"].is_string(), "{begun}");
    }
}

/// The list names those of the conversation's latest task, and the schema knows their member.
#[tokio::test(start_paused = true)]
async fn prompt_and_list_carry_additional_directories() {
    let stand = TestDispatcher::new().await;
    let mut connection = TestConnection::acp(&stand).await;
    let place = json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": ["/a", "/b"] });
    let begun = connection.ask("session/new", place).await;
    let session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
    let text = json!([{ "type": "text", "text": "hi" }]);
    let prompt = json!({ "sessionId": session, "prompt": text });
    connection.ask("session/prompt", prompt.clone()).await;
    let sessions = list(&mut connection, json!({})).await["sessions"].take();
    assert_eq!(sessions[0]["additionalDirectories"], json!(["/a", "/b"]), "{sessions}");

    let again = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    connection.ask("session/resume", again).await;
    connection.ask("session/prompt", prompt).await;
    let sessions = list(&mut connection, json!({})).await["sessions"].take();
    assert_eq!(sessions[0].get("additionalDirectories"), None, "{sessions}");
}
