//! Tests of MCP servers by other makers: what can be read of them is used, and a server that cannot
//! be used says why.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, said, send},
};
use a2a_hub_tests::{
    Client, test_guests,
    tools::{SERVER, call, config},
};
use anyhow::Result;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, task::JoinSet};

/// Manners of the server, which the first segment of the path chooses.
const CASES: [&str; 6] = ["silent", "loud", "cut", "page", "nowhere", "refusing"];

/// Messages that the server received and did not ask for by a request of the hub.
type Seen = Arc<Mutex<Vec<Value>>>;

async fn odd(State(seen): State<Seen>, uri: Uri, body: String) -> Response {
    let case = uri.path().trim_start_matches('/').to_owned();
    let asked: Value = serde_json::from_str(&body).unwrap_or_default();
    let (id, method) = (&asked["id"], asked["method"].as_str().unwrap_or_default());
    if id.is_null() || method.is_empty() {
        if let Ok(mut seen) = seen.lock() {
            seen.push(asked.clone());
        }
        // Several public servers answer a notification with 200, some of them with a body.
        return match case.as_str() {
            "loud" => ([("content-type", "application/json")], "null").into_response(),
            "cut" => (StatusCode::BAD_REQUEST, "no notifications here").into_response(),
            _ => StatusCode::OK.into_response(),
        };
    }
    let tools = json!([
        { "name": "good", "description": "does good", "inputSchema": { "type": "object" } },
        { "name": "bad", "inputSchema": "none" },
        { "name": "hints", "inputSchema": { "type": "object" }, "annotations": "odd" },
    ]);
    let result = match method {
        "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "odd", "version": "1" } }),
        "tools/list" => json!({ "tools": tools, "nextCursor": "again" }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "before" },
            { "type": "hologram" }, { "type": "text", "text": "after", "annotations": 3 }] }),
        _ => json!({}),
    };
    let answer = |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    match (case.as_str(), method) {
        ("page", _) => ([("content-type", "text/html")], "<html>hello</html>").into_response(),
        ("refusing", _) => {
            let error = json!({ "code": -32000, "message": "not today" });
            let error = json!({ "jsonrpc": "2.0", "id": "server-error", "error": error });
            (StatusCode::BAD_REQUEST, error.to_string()).into_response()
        }
        ("nowhere", "tools/call") => StatusCode::ACCEPTED.into_response(),
        ("cut", "tools/call") => {
            ([("content-type", "text/event-stream")], "data: {\"jsonrpc\"").into_response()
        }
        ("loud", "tools/call") => {
            let ask = |id: &str, method: &str| {
                let ask = json!({ "jsonrpc": "2.0", "id": id, "method": method });
                format!("id: 7\rdata: {ask}\r\r")
            };
            let body = [
                "\u{feff}: hello\r\revent: ping\rdata: {}\r\rdata: \r\rdata: [DONE]\r\r".to_owned(),
                ask("p", "ping"),
                ask("r", "roots/list"),
                ask("u", "brand/new"),
                format!("data: {}\r\r", json!({ "method": "notifications/brandNew" })),
                format!("data: {}\r\r", answer(&json!(id.to_string()))),
            ];
            ([("content-type", "Text/Event-Stream")], body.concat()).into_response()
        }
        _ => {
            let media = [("content-type", "Application/JSON; charset=UTF-8")];
            (media, answer(&Value::Null).to_string()).into_response()
        }
    }
}

#[tokio::test]
async fn odd_http_servers_are_used_or_explained() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let seen = Seen::default();
    let router = Router::new().fallback(odd).with_state(Arc::clone(&seen));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });
    let url =
        |case: &str| format!("[agents.guest.mcp.{case}]\nurl = 'http://127.0.0.1:{port}/{case}'\n");
    let granted = |case: &str| format!("{case} = ['good', 'bad', 'hints']\n");
    let (urls, grants) = (CASES.map(url).concat(), CASES.map(granted).concat());
    let rule = format!("scheme = 'http'\nprivate = true\nports = [{port}]\nmethods = ['POST']\n");
    let config = format!(
        "{GRANT}\n{urls}\n[agents.guest.grant.tools]\n{grants}\n[agents.guest.grant.http.'127.0.0.1']\n{rule}"
    );
    let guests = test_guests()?;
    let hub = InProcessHub::builder().config(config).plugin("guest", &guests).start().await?;
    let client = Client::unix(&hub);

    let listed = send(&client, "guest", "tools").await?;
    let listed: Vec<_> = said(&listed).lines().collect();
    for case in ["silent", "loud"] {
        let good = format!(r#"{case}:good does good {{"type":"object"}}"#);
        assert!(listed.contains(&good.as_str()), "{listed:?}");
        assert!(listed.iter().any(|line| line.starts_with(&format!("{case}:hints"))), "{listed:?}");
        assert!(!listed.iter().any(|line| line.starts_with(&format!("{case}:bad"))), "{listed:?}");
    }
    let mut told = String::new();
    for case in CASES {
        let answer = send(&client, "guest", &format!("tool {case}:good 20000 {{}}")).await?;
        told.push_str(&format!("{case}: {}\n", said(&answer).replace('\n', " ")));
    }
    insta::assert_snapshot!(told, @r#"
    silent: None before [a content block of the type "hologram" was left out] after
    loud: None before [a content block of the type "hologram" was left out] after
    cut: unavailable: call the tool `good` of `cut`: its stream ended before the answer
    page: unavailable: call the tool `good` of `page`: it answers with `text/html`, and neither JSON nor events: "<html>hello</html>"
    nowhere: unavailable: call the tool `good` of `nowhere`: it answers a request with 202 Accepted, and no result
    refusing: unavailable: call the tool `good` of `refusing`: it refuses: "not today"
    "#);
    let seen = seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    let answer = |id: &str| seen.iter().find(|message| message["id"] == id).cloned();
    let (ping, roots) = (answer("p").unwrap_or_default(), answer("r").unwrap_or_default());
    assert_eq!((&ping["result"], &roots["result"]["roots"]), (&json!({}), &json!([])), "{seen:?}");
    let unknown = answer("u").unwrap_or_default();
    assert_eq!(unknown["error"]["code"], -32601, "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn odd_program_server_loses_only_odd_parts() -> Result<()> {
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("server.py"), SERVER)?;
    let guests = test_guests()?;
    let hub = InProcessHub::builder().config(config(place.path(), "'read', 'odd', 'hologram'"));
    let hub = hub.plugin("guest", &guests).plugin("other", &guests).start().await?;
    let listed = send(&Client::unix(&hub), "guest", "tools").await?;
    let names: Vec<_> = said(&listed).lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["files:hologram", "files:read"], "{listed}");
    let told = call(&hub, "hologram").await?;
    assert!(told.contains("before") && told.contains("after"), "{told}");
    assert!(told.contains("of the type \"hologram\" was left out"), "{told}");
    Ok(())
}
