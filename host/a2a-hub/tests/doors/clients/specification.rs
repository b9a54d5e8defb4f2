//! Tests with the examples of the Local Hub specification: each gets a response of the documented
//! shape.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, hub_with_guest},
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

/// Expected response of an example.
enum Wanted {
    /// Response of this shape, comments included. If the specification shows no response, the shape
    /// follows its types.
    Shape(&'static str),
    /// Error, because the example names an unknown object.
    Code(i64),
}

/// Each example: its request and its expected response.
const EXAMPLES: &[(&str, Wanted)] = &[
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "hub/status",
  "params": {},
  "id": "1"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": {
    "version": "1.0.0",
    "uptime": 12345,
    "agents": [
      { "id": "claude-code", "name": "Claude Code CLI", "status": "healthy" },
      { "id": "gemini", "name": "Gemini CLI", "status": "healthy" }
    ],
    "activeTasks": 0,
    "totalTasks": 5,
    "total": 4,
    "healthy": 4,
    "degraded": 0,
    "unhealthy": 0,
    "unknown": 0
  },
  "id": "1"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "hub/agents/list",
  "params": {
    "includeHealth": true
  },
  "id": "2"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": [
    {
      "id": "claude-code",
      "name": "Claude Code CLI",
      "card": { /* AgentCard */ },
      "health": { "status": "healthy", "latencyMs": 50 },
      "registeredAt": "2025-01-01T00:00:00.000Z"
    }
  ],
  "id": "2"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "hub/agents/get",
  "params": {
    "agentId": "claude-code"
  },
  "id": "3"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": {
    "id": "claude-code",
    "name": "Claude Code CLI",
    "card": {
      "protocolVersion": "1.0", "name": "", "description": "", "url": "", "version": "",
      "provider": { "name": "" },
      "skills": [ { "id": "", "name": "", "description": "", "tags": [ "" ] } ],
      "capabilities": { "streaming": true, "pushNotifications": false, "stateTransitionHistory": true }
    },
    "health": { "status": "healthy|degraded|unhealthy|unknown" },
    "registeredAt": "2025-01-01T00:00:00.000Z"
  },
  "id": "3"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "hub/agents/health",
  "params": {
    "agentId": "claude-code"
  },
  "id": "4"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": {
    "status": "healthy|degraded|unhealthy|unknown",
    "lastCheck": "2025-01-01T00:00:00.000Z",
    "latencyMs": 50
  },
  "id": "4"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "hub/tasks/list",
  "params": {
    "contextId": "optional-context-id",
    "state": "completed",
    "limit": 20,
    "offset": 0
  },
  "id": "5"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": [
    {
      "kind": "task",
      "id": "task-456",
      "contextId": "optional-context-id",
      "status": {
        "state": "completed",
        "message": {
          "kind": "message", "messageId": "", "role": "agent", "taskId": "", "contextId": "",
          "parts": [ { "kind": "text", "text": "" } ]
        },
        "timestamp": "2025-01-01T00:00:00.000Z"
      },
      "history": [
        { "kind": "message", "messageId": "", "role": "user", "taskId": "", "contextId": "",
          "parts": [ { "kind": "text", "text": "" } ] }
      ]
    }
  ],
  "id": "5"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "hub/contexts/list",
  "params": {
    "limit": 10
  },
  "id": "6"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": [
    {
      "id": "optional-context-id",
      "taskCount": 1,
      "agents": [ "echo" ],
      "createdAt": "2025-01-01T00:00:00.000Z",
      "updatedAt": "2025-01-01T00:00:00.000Z",
      "lastState": "completed"
    }
  ],
  "id": "6"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "message/send",
  "params": {
    "message": {
      "kind": "message",
      "messageId": "msg-123",
      "role": "user",
      "parts": [
        {
          "kind": "text",
          "text": "Write a hello world function in Python"
        }
      ],
      "contextId": "optional-context-id",
      "metadata": {
        "targetAgent": "claude-code"
      }
    },
    "configuration": {
      "historyLength": 10
    }
  },
  "id": "7"
}"#,
        Wanted::Shape(
            r#"{
  "jsonrpc": "2.0",
  "result": {
    "kind": "task",
    "id": "task-456",
    "contextId": "ctx-789",
    "status": {
      "state": "completed",
      "message": {
        "kind": "message",
        "messageId": "resp-123",
        "role": "agent",
        "parts": [
          {
            "kind": "text",
            "text": "def hello():\n    print('Hello, World!')"
          }
        ],
        "taskId": "task-456",
        "contextId": "ctx-789"
      },
      "timestamp": "2025-01-01T00:00:00.000Z"
    },
    "history": [ /* message history */ ],
    "artifacts": []
  },
  "id": "7"
}"#,
        ),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "tasks/get",
  "params": {
    "id": "task-456"
  },
  "id": "8"
}"#,
        Wanted::Code(-32001),
    ),
    (
        r#"{
  "jsonrpc": "2.0",
  "method": "tasks/cancel",
  "params": {
    "id": "task-456"
  },
  "id": "9"
}"#,
        Wanted::Code(-32001),
    ),
];

/// Healthy `claude` that does nothing: its task fails, with the same shape.
const CLAUDE: &str = r#"#!/bin/sh
case "$1" in --version) echo 2.1.332 ;; auth) echo '{"loggedIn":true}' ;; *) exit 1 ;; esac
"#;

#[tokio::test]
async fn specification_examples_match_their_shapes() -> Result<()> {
    let bin = tempfile::tempdir()?;
    let claude = bin.path().join("claude");
    fs::write(&claude, CLAUDE)?;
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755))?;
    let programs =
        format!("[agents.claude-code]\nprograms = {{ claude = '{}' }}", claude.display());
    let config = format!("{GRANT}\n{programs}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    // Creates entries for the lists.
    let mut hello = message_to("echo", "hello");
    hello["message"]["contextId"] = json!("optional-context-id");
    Client::http(&hub).call("message/send", hello).await?;
    let client = reqwest::Client::new();
    for (request, wanted) in EXAMPLES {
        let read: Value = serde_json::from_str(request)?;
        let post = client.post(format!("http://{}/", hub.http())).body(*request);
        let answer = post.header("Content-Type", "application/json").send().await?;
        let answer: Value = serde_json::from_str(&answer.text().await?)?;
        assert_eq!(answer["id"], read["id"]);
        let method = read["method"].as_str().context("an example without a method")?;
        match wanted {
            Wanted::Shape(shape) => {
                let shape: Value = serde_json::from_str(&without_comments(shape))?;
                fits(&shape, &answer, method);
            }
            Wanted::Code(code) => assert_eq!(answer["error"]["code"], *code, "{method}: {answer}"),
        }
    }
    Ok(())
}

/// Checks that `answer` has all members of `shape`, with the same types. A text with alternatives
/// matches one of them.
fn fits(shape: &Value, answer: &Value, at: &str) {
    match (shape, answer) {
        (Value::Object(shape), Value::Object(answer)) => {
            for (name, wanted) in shape {
                let at = format!("{at}.{name}");
                fits(wanted, answer.get(name).unwrap_or_else(|| panic!("{at} is missing")), &at);
            }
        }
        (Value::Array(shape), Value::Array(answer)) => {
            let Some(wanted) = shape.first() else { return };
            assert!(!answer.is_empty(), "{at} is empty");
            answer.iter().for_each(|item| fits(wanted, item, &format!("{at}[]")));
        }
        (Value::String(words), Value::String(word)) if words.contains('|') => {
            assert!(words.split('|').any(|one| one == word), "{at}: {word} is none of {words}");
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Null, Value::Null) => {}
        _ => panic!("{at}: {answer} is not as {shape}"),
    }
}

fn without_comments(text: &str) -> String {
    let mut pieces = text.split("/*");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once("*/").map_or("", |(_, rest)| rest))
}

/// Tasks can be listed by all nine states of the specification, although no task of this hub is
/// ever `unknown`.
#[tokio::test]
async fn tasks_are_listed_by_any_state() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    client.call("message/send", message_to("echo", "hello")).await?;
    for state in [
        "submitted",
        "working",
        "input-required",
        "completed",
        "canceled",
        "failed",
        "rejected",
        "auth-required",
        "unknown",
    ] {
        let listed = client.call("hub/tasks/list", json!({ "state": state })).await?;
        let listed = listed.as_array().context("no list")?;
        assert_eq!(listed.len(), usize::from(state == "completed"), "{state}");
        assert!(listed.iter().all(|task| task["agentId"] == "echo"));
    }
    Ok(())
}

/// The card's shape follows the TypeScript types of the specification.
#[tokio::test]
async fn well_known_cards_match_specification() -> Result<()> {
    let hub = hub_with_guest().await?;
    let shape = json!({
        "protocolVersion": "1.0", "name": "", "description": "", "version": "",
        "url": format!("http://{}/", hub.http()),
        "provider": {"name": ""},
        "skills": [{"id": "", "name": "", "description": "", "tags": []}],
        "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": true},
    });
    let client = reqwest::Client::new();
    let get = async |path: &str| {
        let answer = client.get(format!("http://{}/.well-known/{path}", hub.http())).send().await?;
        let (status, tag) = (answer.status().as_u16(), answer.headers().get("etag").cloned());
        Ok::<_, anyhow::Error>((status, tag, serde_json::from_str::<Value>(&answer.text().await?)?))
    };
    for (path, url) in [("agent.json", "/"), ("agents/guest.json", "/agents/guest")] {
        let (status, tag, card) = get(path).await?;
        assert_eq!(status, 200, "{path}");
        fits(&shape, &card, path);
        // The first card's endpoint speaks the Local Hub's dialect; each other card has its own
        // endpoint.
        assert_eq!(card["url"], format!("http://{}{url}", hub.http()));
        let again = client.get(format!("http://{}/.well-known/{path}", hub.http()));
        let again = again.header("If-None-Match", tag.context("no ETag")?).send().await?;
        assert_eq!(again.status(), 304, "{path}");
    }
    let (_, _, all) = get("agents").await?;
    fits(&json!([shape]), &all, "agents");
    let guest = all.as_array().and_then(|all| all.iter().find(|one| one["agentId"] == "guest"));
    assert_eq!(guest, Some(&get("agents/guest.json").await?.2));
    for nobody in ["agents/nobody.json", "agents/guest", "agents/..%2Fguest.json"] {
        let (status, _, error) = get(nobody).await?;
        assert_eq!((status, &error["error"]["code"]), (404, &json!(-32003)), "{nobody}");
    }
    Ok(())
}
