//! Tests of MCP over HTTP: statuses, event streams and batches of each version.

use crate::{hub::InProcessHub, stage::GRANT};
use a2a_hub_tests::test_guests;
use anyhow::{Context as _, Result};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use std::collections::HashSet;

async fn hub() -> Result<InProcessHub> {
    InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}

/// A client with a session.
struct Session {
    url: String,
    id: Option<String>,
    /// Ids of all events so far.
    events: Vec<String>,
}

impl Session {
    fn none(hub: &InProcessHub) -> Self {
        Self { url: format!("http://{}/mcp", hub.http()), id: None, events: Vec::new() }
    }

    async fn begin(hub: &InProcessHub, version: &str) -> Result<Self> {
        let mut session = Self::none(hub);
        let client = json!({ "name": "t", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let begun = session.post(&hello.to_string()).await?.error_for_status()?;
        let id = begun.headers().get("mcp-session-id").context("no session")?;
        session.id = Some(id.to_str()?.to_owned());
        let told = session.messages(begun).await?;
        assert_eq!(told[0]["result"]["protocolVersion"], version);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post(&ready.to_string()).await?.status(), 202);
        Ok(session)
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let request = reqwest::Client::new().request(method, &self.url).header("accept", "*/*");
        match &self.id {
            Some(id) => request.header("mcp-session-id", id),
            None => request,
        }
    }

    async fn post(&self, body: &str) -> Result<Response> {
        let request = self.request(Method::POST).header("content-type", "application/json");
        Ok(request.body(body.to_owned()).send().await?)
    }

    /// Messages of a stream, in which every event is a message.
    async fn messages(&mut self, response: Response) -> Result<Vec<Value>> {
        let text = response.text().await?;
        self.note(&text);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|data| serde_json::from_str(data).with_context(|| text.clone())).collect()
    }

    /// Sends a request and returns its response, which is the last event but priming ones.
    async fn ask(&self, id: u8, method: &str, params: &Value) -> Result<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let text = self.post(&body.to_string()).await?.error_for_status()?.text().await?;
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let last = data.rfind(|data| !data.is_empty());
        Ok(serde_json::from_str(last.context(text.clone())?)?)
    }

    fn note(&mut self, text: &str) {
        let ids = text.lines().filter_map(|line| line.strip_prefix("id:"));
        self.events.extend(ids.map(|id| id.trim().to_owned()));
    }
}

fn request(id: u8, method: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string()
}

#[tokio::test]
async fn older_versions_get_messages_only() -> Result<()> {
    let hub = hub().await?;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut session = Session::begin(&hub, version).await?;
        for id in 1..4 {
            let told = session.post(&request(id, "tools/list")).await?;
            let told = session.messages(told).await?;
            assert_eq!((told.len(), &told[0]["id"]), (1, &json!(id)), "{version}");
        }
        let distinct: HashSet<_> = session.events.iter().collect();
        assert_eq!(distinct.len(), session.events.len(), "{version}: {:?}", session.events);
    }
    Ok(())
}

#[tokio::test]
async fn event_ids_are_unique_within_session() -> Result<()> {
    let hub = hub().await?;
    let mut session = Session::begin(&hub, "2025-11-25").await?;
    for id in 1..4 {
        let told = session.post(&request(id, "tools/list")).await?.text().await?;
        assert!(told.contains("\nretry:") || told.starts_with("retry:"), "it is primed: {told}");
        session.note(&told);
    }
    for _ in 0..2 {
        let mut stream = session.request(Method::GET).send().await?.error_for_status()?;
        let first = stream.chunk().await?.context("no event")?;
        session.note(std::str::from_utf8(&first)?);
    }
    let distinct: HashSet<_> = session.events.iter().collect();
    assert_eq!(distinct.len(), session.events.len(), "{:?}", session.events);
    assert!(session.events.len() >= 8, "{:?}", session.events);
    // A client that saw the priming event alone gets the answer when it resumes.
    let resumed = session.request(Method::GET).header("last-event-id", &session.events[0]);
    assert_eq!(resumed.send().await?.status(), 200);
    Ok(())
}

#[tokio::test]
async fn deleted_session_is_gone() -> Result<()> {
    let hub = hub().await?;
    let session = Session::begin(&hub, "2025-06-18").await?;
    assert_eq!(session.request(Method::DELETE).send().await?.status(), 204);
    assert_eq!(session.post(&request(1, "tools/list")).await?.status(), 404);
    assert_eq!(session.request(Method::DELETE).send().await?.status(), 404);
    Ok(())
}

#[tokio::test]
async fn malformed_json_rpc_is_bad_request() -> Result<()> {
    let hub = hub().await?;
    let session = Session::begin(&hub, "2025-06-18").await?;
    for client in [&Session::none(&hub), &session] {
        for (body, code, id) in [
            ("{", -32700, json!(null)),
            ("", -32700, json!(null)),
            ("7", -32600, json!(null)),
            ("{}", -32600, json!(null)),
            (r#"{"id":1}"#, -32600, json!(1)),
            (r#"{"id":1,"method":7}"#, -32600, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, json!(null)),
            (r#"[{"id":1,"method":"ping"}]"#, -32600, json!(null)),
        ] {
            let answer = client.post(body).await?;
            assert_eq!(answer.status(), 400, "{body}");
            let told: Value = answer.json().await?;
            assert_eq!((&told["error"]["code"], &told["id"]), (&json!(code), &id), "{body}");
        }
    }
    let wrong = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#;
    let answer = session.post(wrong).await?;
    assert_eq!(answer.status(), 200);
    let told: Value = answer.json().await?;
    assert_eq!((&told["error"]["code"], &told["id"]), (&json!(-32602), &json!(1)), "{told}");
    Ok(())
}

#[tokio::test]
async fn batch_over_http_is_served() -> Result<()> {
    let hub = hub().await?;
    let mut session = Session::begin(&hub, "2025-03-26").await?;
    let call = json!({ "name": "guest", "arguments": { "message": "sh sleep 0.3; echo done" } });
    let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call });
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let batch = json!([call, ping, notice, ping, 7]).to_string();
    let told = session.post(&batch).await?.error_for_status()?;
    let told = session.messages(told).await?;
    let of = |id: Value| told.iter().filter(|it| it["id"] == id).collect::<Vec<_>>();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(of(json!("c"))[0].to_string().contains("done"), "{told:?}");
    assert_eq!(of(json!(null))[0]["error"]["code"], -32600, "{told:?}");
    assert_eq!(of(json!(1)).len(), 2, "{told:?}");
    let notices = json!([notice, notice]).to_string();
    assert_eq!(session.post(&notices).await?.status(), 202);
    Ok(())
}

/// A task of one session is found by the next one, and its result is that of the call.
#[tokio::test]
async fn task_outlives_its_session() -> Result<()> {
    let hub = hub().await?;
    let first = Session::begin(&hub, "2025-11-25").await?;
    let call = json!({ "name": "guest", "arguments": { "message": "tick 3 100" }, "task": {} });
    let created = first.ask(1, "tools/call", &call).await?;
    let of = json!({ "taskId": created["result"]["task"]["taskId"] });
    assert_eq!(created["result"]["task"]["status"], "working", "{created}");
    first.request(Method::DELETE).send().await?.error_for_status()?;

    let second = Session::begin(&hub, "2025-11-25").await?;
    let told = second.ask(1, "tasks/result", &of).await?;
    assert_eq!(told["result"]["content"][0]["text"], "1\n2\n3\n", "{told}");
    let listed = second.ask(2, "tasks/list", &json!({})).await?;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], of["taskId"], "{listed}");
    let earlier = Session::begin(&hub, "2025-06-18").await?;
    assert_eq!(earlier.ask(1, "tasks/get", &of).await?["error"]["code"], -32601);
    Ok(())
}
