//! Tests of the access that MCP gives to its client, and to no one else.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, send},
};
use a2a_hub_tests::{
    Client,
    mcp::{initialize, speak, spoken},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::process::Command;

async fn hub() -> Result<InProcessHub> {
    InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn socket_connection_survives_malformed_lines() -> Result<()> {
    let hub = hub().await?;
    let lines = [
        speak(&json!({ "protocol": "morse" })),
        speak(&json!({ "protocol": "mcp" })),
        initialize(),
    ];
    let told = spoken(&hub, &lines, 3).await?;
    let why = told[0]["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("this hub speaks `acp` and `mcp`"), "{why}");
    assert_eq!(told[1]["result"], json!({}));
    assert_eq!(told[2]["result"]["serverInfo"]["name"], "a2a-hub");
    let nonsense = json!("nonsense");
    let lines = [speak(&json!({ "protocol": "mcp" })), nonsense, initialize()];
    let told = spoken(&hub, &lines, 3).await?;
    assert!(told.iter().any(|line| line["result"]["serverInfo"]["name"] == "a2a-hub"), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn pending_request_blocks_protocol_switch() -> Result<()> {
    let hub = hub().await?;
    let text = json!({ "kind": "text", "text": "sh sleep 1; echo done" });
    let message = json!({ "messageId": "1", "role": "user", "parts": [text] });
    let params = json!({ "message": message, "metadata": { "targetAgent": "guest" } });
    let send = json!({ "jsonrpc": "2.0", "id": 7, "method": "message/send", "params": params });
    let told = spoken(&hub, &[send, speak(&json!({ "protocol": "mcp" }))], 2).await?;
    let why = told[0]["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("under way"), "{told:?}");
    assert_eq!(told[1]["id"], 7, "its answer comes in the language it was asked in: {told:?}");
    Ok(())
}

/// Script of an agent's program that uses a foreign session over HTTP, and prints the statuses.
const STOLEN: &str = r#"
import sys, urllib.error, urllib.request

url, session = sys.argv[1:]
head = {"content-type": "application/json", "accept": "application/json, text/event-stream", "mcp-session-id": session}
body = b'{"jsonrpc": "2.0", "id": 9, "method": "tools/list"}'
for data in [body, None]:
    try:
        print(urllib.request.urlopen(urllib.request.Request(url, data, head), timeout=10).status)
    except urllib.error.HTTPError as why:
        print(why.code)
"#;

#[tokio::test]
async fn session_is_bound_to_its_client() -> Result<()> {
    let config = GRANT.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let url = format!("http://{}/mcp", hub.http());
    let ask = |body: String, session: Option<String>| {
        let request = reqwest::Client::new()
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body);
        let session = session.map(|session| ("mcp-session-id", session));
        session.into_iter().fold(request, |request, (name, id)| request.header(name, id)).send()
    };
    let begun = ask(initialize().to_string(), None).await?;
    let session = begun.headers().get("mcp-session-id").context("no session")?.to_str()?.to_owned();
    std::fs::write(hub.workspace().join("stolen.py"), STOLEN)?;
    let script = format!("sh python3 stolen.py {url} {session}");
    let told = send(&Client::http(&hub), "guest", &script).await?;
    assert_eq!(artifact(&told), "404\n404\n", "{told}");
    let list = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    assert_eq!(ask(list.to_string(), Some(session)).await?.status(), 200, "its own client goes on");
    Ok(())
}

/// Script that prints the announced capabilities over HTTP, with and without a handshake.
const ANNOUNCED: &str = r#"
import json, sys, urllib.request

version = "2026-07-28"
prefix = "io.modelcontextprotocol/"
client = {"name": "test", "version": "0"}
meta = {prefix + "protocolVersion": version, prefix + "clientInfo": client, prefix + "clientCapabilities": {}}
handshake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
for method, params, head in [
    ("initialize", handshake, {}),
    ("server/discover", {"_meta": meta}, {"mcp-protocol-version": version, "mcp-method": "server/discover"}),
]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = {"content-type": "application/json", "accept": "application/json, text/event-stream", **head}
    told = urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, head), timeout=10).read().decode()
    told = [line.removeprefix("data:") for line in told.splitlines() if "capabilities" in line][-1]
    print(json.dumps(json.loads(told)["result"]["capabilities"], sort_keys=True))
"#;

#[expect(
    clippy::disallowed_methods,
    reason = "a client of the operator's is no program of the hub's"
)]
#[tokio::test]
async fn agent_program_sees_only_tools_capability() -> Result<()> {
    let config = GRANT.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let script = hub.workspace().join("announced.py");
    std::fs::write(&script, ANNOUNCED)?;
    let url = format!("http://{}/mcp", hub.http());
    let told =
        send(&Client::http(&hub), "guest", &format!("sh python3 announced.py {url}")).await?;
    assert_eq!(artifact(&told), "{\"tools\": {}}\n".repeat(2), "{told}");
    let operator = Command::new("python3").arg(&script).arg(&url).output().await?;
    let completes = "{\"completions\": {}, ";
    let listed = "\"prompts\": {\"listChanged\": true}, \"resources\": {\"subscribe\": true}, \"tools\": {\"listChanged\": true}}\n";
    let tasks = "\"extensions\": {\"io.modelcontextprotocol/tasks\": {}}, ";
    let everything = format!("{completes}{listed}{completes}{tasks}{listed}");
    assert_eq!(String::from_utf8(operator.stdout)?, everything);
    Ok(())
}

/// Client of MCP over HTTP that only posts.
struct Posts {
    url: String,
    session: Option<String>,
}

impl Posts {
    fn new(hub: &InProcessHub) -> Self {
        Self { url: format!("http://{}/mcp", hub.http()), session: None }
    }

    /// Starts a session with the messages of a version with a handshake.
    async fn begin(hub: &InProcessHub) -> Result<Self> {
        let mut posts = Self::new(hub);
        let begun = posts.post(&initialize().to_string()).await?.error_for_status()?;
        let session = begun.headers().get("mcp-session-id").context("no session")?;
        posts.session = Some(session.to_str()?.to_owned());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        posts.post(&ready.to_string()).await?.error_for_status()?;
        Ok(posts)
    }

    async fn post(&self, body: &str) -> Result<reqwest::Response> {
        let mut request = reqwest::Client::new()
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body.to_owned());
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        Ok(request.send().await?)
    }

    async fn call(&self, id: u32, tool: &str, message: &str) -> Result<reqwest::Response> {
        let params = json!({ "name": tool, "arguments": { "message": message } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.post(&call.to_string()).await
    }
}

/// Returns the only message of a response, which is an event stream.
async fn answered(response: reqwest::Response) -> Result<serde_json::Value> {
    let text = response.error_for_status()?.text().await?;
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    Ok(serde_json::from_str(data.context(text.clone())?)?)
}

#[tokio::test]
async fn duplicate_pending_id_is_rejected() -> Result<()> {
    let hub = hub().await?;
    let client = Posts::begin(&hub).await?;
    let first = client.call(7, "guest", "sh sleep 0.5; echo first").await?;
    let second = client.call(7, "guest", "sh echo second").await?;
    assert_eq!(second.status(), 400);
    let told: serde_json::Value = second.json().await?;
    assert_eq!(told["id"], 7);
    let why = told["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("`id` is that of another request"), "{why}");
    let told = answered(first).await?;
    assert!(told.to_string().contains("first"), "{told}");
    let told = answered(client.call(7, "guest", "sh echo third").await?).await?;
    assert!(told.to_string().contains("third"), "its answer was heard, so it is free: {told}");
    Ok(())
}

#[tokio::test]
async fn duplicate_socket_id_is_rejected() -> Result<()> {
    let hub = hub().await?;
    let call = |id: u32, message: &str| {
        let params = json!({ "name": "guest", "arguments": { "message": message } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let lines = [
        speak(&json!({ "protocol": "mcp" })),
        initialize(),
        call(7, "sh sleep 0.5; echo first"),
        call(7, "sh echo second"),
    ];
    let told = spoken(&hub, &lines, 4).await?;
    let of_seven: Vec<_> = told.iter().filter(|line| line["id"] == 7).collect();
    let [refused, first] = of_seven[..] else { panic!("two answers: {told:?}") };
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("`id` is that of another request"), "{why}");
    assert!(first.to_string().contains("first"), "{first}");
    Ok(())
}

#[tokio::test]
async fn unknown_tool_is_protocol_error() -> Result<()> {
    let hub = hub().await?;
    let client = Posts::begin(&hub).await?;
    for name in ["nobody", "no such tool"] {
        let told = answered(client.call(1, name, "hello").await?).await?;
        assert_eq!(told["error"]["code"], -32602, "{told}");
    }
    let bare = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "nobody" } });
    let told = answered(client.post(&bare.to_string()).await?).await?;
    assert_eq!(told["error"]["code"], -32602, "before its arguments are looked at: {told}");
    Ok(())
}

#[tokio::test]
async fn malformed_body_gets_json_rpc_error() -> Result<()> {
    let hub = hub().await?;
    for (body, code) in [("{", -32700), ("[]", -32600)] {
        let refused = Posts::new(&hub).post(body).await?;
        assert_eq!(refused.status(), 400, "{body}");
        assert_eq!(refused.json::<serde_json::Value>().await?["error"]["code"], code, "{body}");
    }
    Ok(())
}

/// A client that abandons sessions exhausts only its own.
#[tokio::test]
async fn abandoned_sessions_are_evicted() -> Result<()> {
    let hub = hub().await?;
    let first = Posts::begin(&hub).await?;
    let second = Posts::begin(&hub).await?;
    let _at_work = second.call(1, "guest", "sh sleep 30").await?;
    for _ in 0..70 {
        Posts::begin(&hub).await?;
    }
    let list = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" }).to_string();
    assert_eq!(first.post(&list).await?.status(), 404, "it was silent for longest");
    assert_eq!(second.post(&list).await?.status(), 200, "it waits for an answer");
    Ok(())
}

/// Over HTTP, MCP has the same guard as all other endpoints.
#[tokio::test]
async fn web_page_cannot_call_tools() -> Result<()> {
    let hub = hub().await?;
    let post = |headers: &[(&str, &str)]| {
        let mut request = reqwest::Client::new()
            .post(format!("http://{}/mcp", hub.http()))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(initialize().to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send()
    };
    assert_eq!(post(&[]).await?.status(), 200);
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("host", "evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(post(&[(name, value)]).await?.status(), 403, "{name}");
    }
    assert_eq!(post(&[("content-type", "text/plain")]).await?.status(), 415);
    Ok(())
}

/// Posts an `initialize` with this header, and returns the status.
async fn status_with(hub: &InProcessHub, headers: &[(&str, &str)], body: &str) -> Result<u16> {
    let request = reqwest::Client::new().post(format!("http://{}/mcp", hub.http()));
    let request = request.header("content-type", "application/json").body(body.to_owned());
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Ok(request.send().await?.status().as_u16())
}

#[tokio::test]
async fn any_accept_that_includes_both_is_served() -> Result<()> {
    let hub = hub().await?;
    let body = initialize().to_string();
    for (accept, status) in [
        (None, 200),
        (Some("*/*"), 200),
        (Some("application/json, text/event-stream"), 200),
        (Some("application/json"), 406),
    ] {
        let headers: Vec<_> = accept.map(|accept| ("accept", accept)).into_iter().collect();
        assert_eq!(status_with(&hub, &headers, &body).await?, status, "{accept:?}");
    }
    let with_mark = format!("\u{feff}{body}");
    assert_eq!(status_with(&hub, &[("accept", "*/*")], &with_mark).await?, 200, "a BOM is skipped");
    Ok(())
}
