//! Tests of traces: a task is a span of its client's trace over each binding, and remote work is a
//! child span.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, get, hub_with_guest, send, state, stream, until},
};
use a2a_hub_tests::{Client, Front, GrpcClient, Receiver, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

const ABOVE: &str = "b7ad6b7169203331";

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Headers of a client with a trace.
const HEADERS: [(&str, &str); 3] =
    [("traceparent", TRACEPARENT), ("tracestate", "rojo=1"), ("x-workflow-id", "release")];

/// Posts JSON with these headers and returns the response.
async fn post(url: String, headers: &[(&str, &str)], body: &Value) -> Result<Value> {
    let mut request = reqwest::Client::new().post(url).body(body.to_string());
    request = request.header("content-type", "application/json");
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let text = request.send().await?.text().await?;
    // MCP responds with one event.
    let text =
        text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(&text);
    Ok(serde_json::from_str(text)?)
}

fn message_v1() -> Value {
    json!({ "message": { "messageId": uuid(), "role": "ROLE_USER", "parts": [{ "text": "hi" }] } })
}

fn uuid() -> String {
    a2a_hub_protocol::id::MessageId::fresh().to_string()
}

fn call(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Latest task of the hub.
async fn latest(hub: &InProcessHub) -> Result<Value> {
    let mut tasks = Client::http(hub).call("hub/tasks/list", json!({ "limit": 1 })).await?;
    Ok(tasks[0].take())
}

#[tokio::test]
async fn task_joins_client_trace_over_bindings() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let at = |path: &str| format!("http://{}{path}", hub.http());
    let v1 = [&HEADERS[..], &[("a2a-version", "1.0")]].concat();
    let mut begun = Vec::new();
    post(at("/"), &HEADERS, &call("message/send", &message_to("echo", "hi"))).await?;
    begun.push(("the hub's own", latest(&hub).await?));
    post(at("/agents/echo"), &v1, &call("SendMessage", &message_v1())).await?;
    begun.push(("JSON-RPC", latest(&hub).await?));
    post(at("/agents/echo/rest/message:send"), &v1, &message_v1()).await?;
    begun.push(("REST", latest(&hub).await?));
    let mut grpc = GrpcClient::v1(&hub)?;
    for (name, value) in HEADERS {
        grpc = grpc.with(name, value)?;
    }
    let mut params = message_v1();
    params["tenant"] = json!("echo");
    grpc.call("SendMessage", params).await?;
    begun.push(("gRPC", latest(&hub).await?));
    let tool = json!({ "name": "echo", "arguments": { "message": "hi" }, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} } });
    let version = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let told =
        post(at("/mcp"), &[&HEADERS[..], &version].concat(), &call("tools/call", &tool)).await?;
    assert!(told["result"].is_object(), "{told}");
    begun.push(("MCP", latest(&hub).await?));
    let mut line = call("SendMessage", &message_v1());
    line["params"]["tenant"] = json!("echo");
    let said: Value = HEADERS.into_iter().chain([("A2A-Version", "1.0")]).collect();
    line["params"]["metadata"] = json!({ "a2a-service-parameters": said });
    Client::unix(&hub).call("SendMessage", line["params"].take()).await?;
    begun.push(("the socket", latest(&hub).await?));

    let mut ids = Vec::new();
    for (binding, task) in begun {
        let facts = &task["metadata"];
        assert_eq!(facts["x-workflow-id"], "release", "{binding}: {task}");
        assert_eq!(facts["x-parent-span-id"], ABOVE, "{binding}: {task}");
        assert_eq!(facts["tracestate"], "rojo=1", "{binding}: {task}");
        let span = facts["x-span-id"].as_str().context("no span")?;
        assert_eq!(facts["traceparent"], format!("00-{TRACE}-{span}-01"), "{binding}");
        assert!(!ids.contains(&task["id"]), "{binding} began a task of its own");
        ids.push(task["id"].clone());
    }
    Ok(())
}

#[tokio::test]
async fn message_trace_overrides_headers() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    let in_headers = client
        .clone()
        .header("traceparent", "00-11111111111111111111111111111111-2222222222222222-00");
    let mut params = message_to("echo", "hi");
    params["message"]["metadata"]["traceparent"] = json!(TRACEPARENT);
    let task = in_headers.call("message/send", params).await?;
    assert_eq!(task["metadata"]["x-parent-span-id"], ABOVE, "{task}");
    for nonsense in ["", "00-0-0-0", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"] {
        let odd = client.clone().header("traceparent", nonsense).header("tracestate", "a=1");
        let task = send(&odd, "echo", "hi").await?;
        assert_eq!((state(&task), &task["metadata"]["traceparent"]), ("completed", &Value::Null));
    }
    Ok(())
}

#[tokio::test]
async fn remote_task_is_child_span() -> Result<()> {
    let there = hub_with_guest().await?;
    let far = format!("[remote.far]\nurl = 'http://{}/agents/echo'\n", there.http());
    let config = GRANT.replace("    memory = true", "    memory = true\n    delegate = ['far']");
    let here = InProcessHub::builder().config(format!("{config}\n{far}"));
    let here = here.plugin("guest", test_guests()?).start().await?;
    // A task without a trace starts one, which continues in the remote hub.
    let root = send(&Client::http(&here), "guest", "call far hello").await?;
    assert_eq!(state(&root), "completed", "{root}");
    let child = latest(&here).await?;
    let distant = latest(&there).await?;
    assert_eq!(child["agentId"], "far");
    assert_eq!(child["metadata"]["x-workflow-id"], root["id"]);
    assert_eq!(distant["metadata"]["x-workflow-id"], root["id"]);
    assert_eq!(distant["metadata"]["x-parent-span-id"], child["metadata"]["x-span-id"]);
    // The same holds for a task that a client sends directly.
    let begun = send(&Client::http(&here), "far", "hello").await?;
    let distant = latest(&there).await?;
    assert_eq!(distant["metadata"]["x-workflow-id"], begun["id"], "{distant}");
    assert!(distant["metadata"].get("parentTaskId").is_none(), "that name is known here alone");
    Ok(())
}

#[tokio::test]
async fn remote_requests_carry_trace_headers() -> Result<()> {
    let there = hub_with_guest().await?;
    let front = Front::start(&there, 0, None).await?;
    let remote = format!("[remote.far]\nurl = '{}'\n", front.url);
    let here = InProcessHub::builder().config(remote).start().await?;
    let mut client = Client::http(&here);
    for (name, value) in HEADERS {
        client = client.header(name, value);
    }
    let task = send(&client, "far", "reply hi").await?;
    let id = task["taskId"].as_str().or(task["id"].as_str()).context("no task")?;
    let task = get(&client, id).await?;
    let headers = front.headers().pop().context("nothing came")?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("traceparent"), task["metadata"]["traceparent"].as_str());
    assert_eq!((header("tracestate"), header("x-workflow-id")), (Some("rojo=1"), Some("release")));
    assert_eq!(header("x-span-id"), task["metadata"]["x-span-id"].as_str());

    // Requests without a message carry the trace too.
    let (id, mut updates) = stream(&client, "far", "nap 30000").await?;
    until(&mut updates, |event| state(event) == "working").await?;
    let before = front.headers().len();
    client.call("tasks/cancel", json!({ "id": id })).await?;
    eventually(Duration::from_secs(15), || front.headers().len() > before).await?;
    let cancel = front.headers().into_iter().nth(before).context("nothing came")?;
    let workflow = cancel.get("x-workflow-id").and_then(|value| value.to_str().ok());
    assert_eq!(workflow, Some("release"), "{cancel:?}");
    Ok(())
}

#[tokio::test]
async fn notifications_carry_trace_header() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    let client = Client::http(&hub).header("traceparent", TRACEPARENT);
    let mut params = message_to("guest", "flood 1");
    params["configuration"] = json!({ "pushNotificationConfig": { "url": receiver.url("/news") } });
    let task = client.call("message/send", params).await?;
    eventually(Duration::from_secs(15), || !receiver.came().is_empty()).await?;
    for came in receiver.came() {
        let said = came.headers.get("traceparent").and_then(|value| value.to_str().ok());
        assert_eq!(said, task["metadata"]["traceparent"].as_str(), "{task}");
    }
    Ok(())
}
