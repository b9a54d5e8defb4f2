//! Tests of official A2A on the wire, at an agent's endpoint and at the hub's: both versions, over
//! JSON-RPC and REST.

mod cards;
mod client;
mod follow_ups;
mod kit;
mod listening;
mod progress;
mod repeats;
mod rest;
mod socket;
mod terms;
mod ways;

use crate::{
    hub::InProcessHub,
    stage::{GRANT, hub_with_guest},
};
use a2a_hub_protocol::id::MessageId;
use a2a_hub_tests::test_guests;
use anyhow::{Context as _, Result, bail};
use reqwest::{Method, Response, header};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// An endpoint, with headers for each request.
struct Endpoint<'a> {
    hub: &'a InProcessHub,
    path: &'static str,
    headers: Vec<(&'static str, String)>,
}

impl<'a> Endpoint<'a> {
    fn of(hub: &'a InProcessHub, path: &'static str) -> Self {
        Self { hub, path, headers: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn ask(&self, method: Method, below: &str, body: Option<Value>) -> Result<Response> {
        let url = format!("http://{}{}{below}", self.hub.http(), self.path);
        let mut request = reqwest::Client::new().request(method, url);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        Ok(body.into_iter().fold(request, |request, body| request.json(&body)).send().await?)
    }

    /// Sends a JSON-RPC request and returns the whole response.
    async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = self.ask(Method::POST, "", Some(request)).await?;
        let answer: Value = serde_json::from_str(&answer.text().await?)?;
        assert_eq!(answer["id"], 7);
        Ok(answer)
    }

    /// Sends a JSON-RPC request and returns its result; an error fails the test.
    async fn result(&self, method: &str, params: Value) -> Result<Value> {
        let mut answer = self.call(method, params).await?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => bail!("{method}: {answer}"),
        }
    }

    /// Sends a JSON-RPC request and returns the code and reason of its error.
    async fn refusal(&self, method: &str, params: Value) -> Result<(i64, String)> {
        let answer = self.call(method, params).await?;
        let error = answer.get("error").with_context(|| format!("{method}: {answer}"))?;
        let reason = error["data"].get(0).unwrap_or(&error["data"])["reason"].as_str();
        Ok((error["code"].as_i64().unwrap_or_default(), reason.unwrap_or_default().to_owned()))
    }

    /// Sends a JSON-RPC request and returns the results of its stream.
    async fn stream(&self, method: &str, params: Value) -> Result<Vec<Value>> {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let told = events(self.ask(Method::POST, "", Some(request)).await?).await?;
        Ok(told.into_iter().map(|mut answer| answer["result"].take()).collect())
    }

    /// Sends a REST request and returns status and body.
    async fn rest(&self, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        let answer = self.ask(method, &format!("/rest/{path}"), body).await?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_str(&answer.text().await?)?))
    }
}

/// Returns the data of all events.
async fn events(response: Response) -> Result<Vec<Value>> {
    let kind = response.headers().get(header::CONTENT_TYPE).cloned();
    let text = response.text().await?;
    if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/event-stream")) {
        bail!("no stream: {text}");
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    Ok(data.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn v1(text: &str) -> Value {
    json!({"message": {"messageId": MessageId::fresh(), "role": "ROLE_USER", "parts": [{"text": text}]}, "configuration": {}})
}

fn v03(text: &str) -> Value {
    json!({"message": {"kind": "message", "messageId": MessageId::fresh(), "role": "user", "parts": [{"kind": "text", "text": text}]}})
}

/// Builds a message to an existing task, in 1.0.
fn more(task: &Value, text: &str) -> Value {
    let mut params = v1(text);
    params["message"]["taskId"] = task.clone();
    params
}

#[tokio::test]
async fn each_version_gets_its_own_format() -> Result<()> {
    let hub = hub_with_guest().await?;
    for path in ["/agents/guest", "/agents/guest/"] {
        let guest = Endpoint::of(&hub, path);
        let new = guest.result("SendMessage", v1("flood 2")).await?;
        assert_eq!(new["task"]["status"]["state"], "TASK_STATE_COMPLETED");
        assert_eq!(new["task"]["artifacts"][0]["parts"], json!([{"text": "1\n2\n"}]));
        assert_eq!(new["task"]["history"][0]["role"], "ROLE_USER");
        let old = guest.result("message/send", v03("flood 2")).await?;
        assert_eq!((&old["kind"], &old["status"]["state"]), (&json!("task"), &json!("completed")));

        // Each version reads the other's tasks.
        let got = guest.result("tasks/get", json!({"id": new["task"]["id"]})).await?;
        assert_eq!((&got["kind"], &got["id"]), (&json!("task"), &new["task"]["id"]));
        let got = guest.result("GetTask", json!({"id": old["id"], "historyLength": 0})).await?;
        assert_eq!((&got["id"], got.get("history")), (&old["id"], None));

        let new = guest.result("SendMessage", v1("reply hi")).await?;
        assert_eq!(new["message"]["parts"], json!([{"text": "hi"}]));
        let old = guest.result("message/send", v03("reply hi")).await?;
        assert_eq!((&old["kind"], &old["parts"][0]["text"]), (&json!("message"), &json!("hi")));
    }
    Ok(())
}

#[tokio::test]
async fn stream_is_one_message_or_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let kinds = |told: &[Value]| -> Vec<String> {
        let kind = |item: &Value| match item["kind"].as_str() {
            Some(kind) => kind.to_owned(),
            None => item.as_object().and_then(|it| it.keys().next().cloned()).unwrap_or_default(),
        };
        told.iter().map(kind).collect()
    };
    let told = guest.stream("SendStreamingMessage", v1("flood 1")).await?;
    assert_eq!(kinds(&told), ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    let last = &told[3]["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!((last.get("final"), &last["taskId"]), (None, &told[0]["task"]["id"]));
    let told = guest.stream("message/stream", v03("flood 1")).await?;
    assert_eq!(kinds(&told), ["task", "status-update", "artifact-update", "status-update"]);
    assert_eq!(told[3]["final"], true);

    // The manifest declares no direct messages: the stream begins with the task, and the message
    // completes it. The scenario `tck-stream-002` has an agent that declares them.
    let told = guest.stream("SendStreamingMessage", v1("reply hi")).await?;
    assert_eq!(kinds(&told), ["task", "statusUpdate", "statusUpdate"]);
    let status = &told[2]["statusUpdate"]["status"];
    assert_eq!(status["state"], "TASK_STATE_COMPLETED");
    assert_eq!(status["message"]["parts"][0]["text"], "hi");
    Ok(())
}

/// Python's clients of 0.3 fail on an event without data.
#[tokio::test]
async fn stream_has_no_empty_events() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": v03("tick 2 3500")});
    let text = guest.ask(Method::POST, "", Some(request)).await?.text().await?;
    assert!(text.starts_with("retry: ") && text.contains("\n: ping\n"), "{text}");
    let blocks: Vec<_> = text.split_terminator("\n\n").collect();
    assert_eq!(blocks.len(), 5, "{text}");
    assert!(blocks.iter().all(|block| block.contains("\ndata: {")), "{text}");
    Ok(())
}

#[tokio::test]
async fn follow_up_messages_continue_conversation() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let asked = guest.result("SendMessage", v1("ask")).await?;
    let (id, context) = (&asked["task"]["id"], &asked["task"]["contextId"]);
    assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");

    let mut elsewhere = more(id, "x");
    elsewhere["message"]["contextId"] = json!("another");
    let mismatch = guest.refusal("SendMessage", elsewhere).await?;
    assert_eq!(mismatch, (-32602, "INVALID_PARAMS".to_owned()));
    let unknown = guest.refusal("SendMessage", more(&json!("mine"), "x")).await?;
    assert_eq!(unknown, (-32001, "TASK_NOT_FOUND".to_owned()));

    let told = guest.stream("SendStreamingMessage", more(id, "the left one")).await?;
    assert_eq!((&told[0]["task"]["id"], &told[0]["task"]["contextId"]), (id, context));
    let last = told.last().context("nothing was told")?;
    assert_eq!(last["statusUpdate"]["status"]["message"]["parts"][0]["text"], "the left one");
    let done = guest.result("GetTask", json!({ "id": id })).await?;
    let said: Vec<_> = done["history"]
        .as_array()
        .context("no history")?
        .iter()
        .map(|it| &it["parts"][0]["text"])
        .collect();
    assert_eq!(said, ["ask", "what do you say?", "the left one"]);

    for method in ["SendMessage", "SendStreamingMessage"] {
        let over = guest.refusal(method, more(id, "x")).await?;
        assert_eq!(over, (-32004, "UNSUPPORTED_OPERATION".to_owned()), "{method}");
    }
    assert_eq!(guest.refusal("CancelTask", json!({ "id": id })).await?.0, -32002);
    assert_eq!(guest.refusal("SubscribeToTask", json!({ "id": id })).await?.0, -32004);
    let login = guest.result("SendMessage", v1("auth")).await?;
    assert_eq!(login["task"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    // Two different messages may have the same id.
    let mut again = v1("history");
    again["message"]["contextId"] = context.clone();
    let again = guest.result("SendMessage", again).await?;
    let heard = again["task"]["status"]["message"]["parts"][0]["text"].as_str();
    assert!(heard.is_some_and(|heard| heard.contains("the left one")), "{again}");
    Ok(())
}

#[tokio::test]
async fn client_chooses_blocking_or_returning() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let mut at_once = v1("tick 100 100");
    at_once["configuration"]["returnImmediately"] = json!(true);
    let begun = Instant::now();
    let task = guest.result("SendMessage", at_once).await?["task"].take();
    let now = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"];
    assert!(now.contains(&task["status"]["state"].as_str().unwrap_or_default()), "{task}");
    let mut not_blocking = v03("tick 100 100");
    not_blocking["configuration"] = json!({"blocking": false});
    let old = guest.result("message/send", not_blocking).await?;
    let now = ["submitted", "working"];
    assert!(now.contains(&old["status"]["state"].as_str().unwrap_or_default()), "{old}");
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    let unsaid = guest.result("message/send", v03("tick 100 100")).await?;
    assert_eq!(unsaid["status"]["state"], "working");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());

    // Several listeners come and go, and receive the same events.
    let listen = |method: &'static str| guest.stream(method, json!({"id": task["id"]}));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        guest.result("CancelTask", json!({"id": task["id"]})).await
    };
    let (one, two, old, canceled) = tokio::join!(
        listen("SubscribeToTask"),
        listen("SubscribeToTask"),
        listen("tasks/resubscribe"),
        cancel
    );
    let (one, two) = (one?, two?);
    assert_eq!(one[0]["task"]["id"], task["id"]);
    let last =
        |told: &[Value]| told.last().map(|last| last["statusUpdate"]["status"]["state"].clone());
    assert_eq!((last(&one), last(&one)), (Some(json!("TASK_STATE_CANCELED")), last(&two)));
    assert_eq!(old?[0]["kind"], "task");
    assert_eq!(canceled?["status"]["state"], "TASK_STATE_CANCELED");
    Ok(())
}

#[tokio::test]
async fn tasks_are_listed_in_pages() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let mut ids = Vec::new();
    for _ in 0..5 {
        let mut send = v1("flood 1");
        send["message"]["contextId"] = json!("ours");
        ids.push(guest.result("SendMessage", send).await?["task"]["id"].take());
    }
    guest.result("SendMessage", v1("fail")).await?;
    Endpoint::of(&hub, "/agents/echo").result("SendMessage", v1("hi")).await?;
    let mut found = Vec::new();
    let mut token = json!("");
    loop {
        let params = json!({"contextId": "ours", "pageSize": 2, "pageToken": token});
        let mut page = guest.result("ListTasks", params).await?;
        assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(5), &json!(2)));
        let tasks = page["tasks"].as_array().context("no tasks")?;
        assert!(tasks.iter().all(|task| task.get("artifacts").is_none()));
        found.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].take();
        if token == "" {
            break;
        }
    }
    ids.reverse();
    assert_eq!(found, ids, "the latest first");

    let whole =
        json!({"status": "TASK_STATE_COMPLETED", "includeArtifacts": true, "historyLength": 0});
    let whole = guest.result("ListTasks", whole).await?;
    assert_eq!((&whole["totalSize"], &whole["pageSize"]), (&json!(5), &json!(50)));
    assert!(
        whole["tasks"][0]["artifacts"].is_array() && whole["tasks"][0].get("history").is_none()
    );
    let future = json!({"statusTimestampAfter": "2999-01-01T00:00:00+01:00"});
    assert_eq!(guest.result("ListTasks", future).await?["totalSize"], 0);
    // The hub's own endpoint lists all of them.
    let all = Endpoint::of(&hub, "/a2a").result("ListTasks", json!({})).await?;
    assert_eq!(all["totalSize"], 7);
    for bad in
        [json!({"pageSize": 0}), json!({"pageToken": "x"}), json!({"statusTimestampAfter": "now"})]
    {
        assert_eq!(guest.refusal("ListTasks", bad).await?.0, -32602);
    }
    Ok(())
}

/// Clients of both versions receive every kind of part.
#[tokio::test]
async fn part_kinds_reach_both_versions() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let mut new = guest.result("SendMessage", v1("parts")).await?["task"].take();
    let old = guest.result("tasks/get", json!({"id": new["id"]})).await?;
    let (_, rest) = guest
        .rest(Method::GET, &format!("v1/tasks/{}", new["id"].as_str().context("no id")?), None)
        .await?;
    let mut told = String::new();
    for mut task in [new.take(), old, rest] {
        task["status"]["message"]["messageId"] = json!("…");
        told += &format!("{}\n{}\n", task["artifacts"], task["status"]["message"]["metadata"]);
    }
    insta::assert_snapshot!(told, @r#"
    [{"artifactId":"parts","description":"one of each","extensions":["urn:a2a-hub:test"],"metadata":{"kind":"fact"},"name":"Parts","parts":[{"text":"a text"},{"filename":"a.bin","mediaType":"application/octet-stream","raw":"AP8="},{"filename":"a.png","mediaType":"image/png","url":"https://example.com/a.png"},{"data":{"n":[1,null]},"metadata":{"kind":"fact"}}]}]
    {"kind":"fact"}
    [{"artifactId":"parts","description":"one of each","extensions":["urn:a2a-hub:test"],"metadata":{"kind":"fact"},"name":"Parts","parts":[{"kind":"text","text":"a text"},{"file":{"bytes":"AP8=","mimeType":"application/octet-stream","name":"a.bin"},"kind":"file"},{"file":{"mimeType":"image/png","name":"a.png","uri":"https://example.com/a.png"},"kind":"file"},{"data":{"n":[1,null]},"kind":"data","metadata":{"kind":"fact"}}]}]
    {"kind":"fact"}
    [{"artifactId":"parts","description":"one of each","extensions":["urn:a2a-hub:test"],"metadata":{"kind":"fact"},"name":"Parts","parts":[{"text":"a text"},{"file":{"fileWithBytes":"AP8=","mimeType":"application/octet-stream","name":"a.bin"}},{"file":{"fileWithUri":"https://example.com/a.png","mimeType":"image/png","name":"a.png"}},{"data":{"data":{"n":[1,null]}},"metadata":{"kind":"fact"}}]}]
    {"kind":"fact"}
    "#);

    let replaced = guest.stream("SendStreamingMessage", v1("replace")).await?;
    let pieces: Vec<_> = replaced.iter().filter_map(|item| item.get("artifactUpdate")).collect();
    let appends: Vec<_> = pieces.iter().map(|piece| piece.get("append")).collect();
    assert_eq!(appends, [None, Some(&json!(true)), None], "the first piece begins it");
    assert_eq!(pieces[2]["artifact"]["parts"], json!([{"text": "the text"}]));
    for (text, state) in [("reject", "TASK_STATE_REJECTED"), ("fail", "TASK_STATE_FAILED")] {
        let ended = guest.result("SendMessage", v1(text)).await?;
        assert_eq!(ended["task"]["status"]["state"], state);
    }
    Ok(())
}

#[tokio::test]
async fn agent_endpoint_hides_other_tasks() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (guest, echo) = (Endpoint::of(&hub, "/agents/guest"), Endpoint::of(&hub, "/agents/echo"));
    let task = guest.result("SendMessage", v1("ask")).await?["task"]["id"].take();
    let none = (-32001, "TASK_NOT_FOUND".to_owned());
    for (method, params) in [
        ("GetTask", json!({ "id": task })),
        ("tasks/get", json!({ "id": task })),
        ("CancelTask", json!({ "id": task })),
        ("SubscribeToTask", json!({ "id": task })),
        ("SendMessage", more(&task, "x")),
        ("ListTaskPushNotificationConfigs", json!({ "taskId": task })),
    ] {
        assert_eq!(echo.refusal(method, params).await?, none, "{method}");
    }
    assert!(guest.result("GetTask", json!({ "id": task })).await.is_ok());
    Ok(())
}

#[tokio::test]
async fn hub_endpoint_routes_messages() -> Result<()> {
    let hub = InProcessHub::builder()
        .config(format!("default_agent = \"echo\"\n{GRANT}"))
        .plugin("guest", test_guests()?)
        .start()
        .await?;
    let whole = Endpoint::of(&hub, "/a2a");
    let default = whole.result("SendMessage", v1("hello")).await?;
    assert_eq!(default["task"]["status"]["message"]["parts"][0]["text"], "hello");
    let mut named = v1("reply hi");
    named["metadata"] = json!({"targetAgent": "guest"});
    assert_eq!(
        whole.result("SendMessage", named.clone()).await?["message"]["parts"][0]["text"],
        "hi"
    );
    named["metadata"] = json!({"targetAgent": "nobody"});
    assert_eq!(whole.refusal("SendMessage", named).await?, (-32602, "AGENT_NOT_FOUND".to_owned()));
    // The Local Hub's own endpoint supports 1.0 as well.
    let root = Endpoint::of(&hub, "/");
    assert_eq!(
        root.result("SendMessage", v1("hello")).await?["task"]["contextId"].as_str().map(str::len),
        Some(36)
    );

    let plain = InProcessHub::start().await?;
    let nobody = Endpoint::of(&plain, "/a2a").call("SendMessage", v1("hello")).await?;
    let message = nobody["error"]["data"][0]["metadata"]["agents"].as_str().unwrap_or_default();
    assert!(message.contains("echo") && message.contains("git-historian"), "{nobody}");
    Ok(())
}

/// Checks the errors of each method on each binding.
#[tokio::test]
async fn each_binding_has_its_error_format() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let mut told = String::new();
    for (method, params) in [
        ("GetTask", json!({"id": "none"})),
        ("tasks/get", json!({"id": "none"})),
        ("SendMessage", json!({"message": {"role": 1, "parts": [{"text": "x"}]}})),
        (
            "message/send",
            json!({"message": {"messageId": "m", "role": "user", "parts": [{"text": "x"}]}}),
        ),
        ("SendMessages", json!({})),
        ("message/sends", json!({})),
        ("hub/status", json!({})),
        ("GetTaskPushNotificationConfig", json!({"taskId": "none", "id": "c"})),
    ] {
        told += &format!("{method}: {}\n", guest.call(method, params).await?["error"]);
    }
    for (method, path, body) in [
        (Method::GET, "tasks/none", None),
        (Method::GET, "v1/tasks/none", None),
        (Method::POST, "message:send", Some(json!({}))),
        (Method::POST, "tasks/none:cancel", Some(json!({}))),
        (Method::GET, "nothing", None),
    ] {
        let (status, body) = guest.rest(method.clone(), path, body).await?;
        told += &format!("{method} {path}: {status} {body}\n");
    }
    insta::assert_snapshot!(told, @r#"
    GetTask: {"code":-32001,"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `none`"}
    tasks/get: {"code":-32001,"data":{"reason":"TASK_NOT_FOUND"},"message":"no task is called `none`"}
    SendMessage: {"code":-32602,"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{"field":"message.messageId"},"reason":"INVALID_PARAMS"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"`message.messageId`: is missing, or empty","field":"message.messageId"}]}],"message":"`message.messageId`: is missing, or empty"}
    message/send: {"code":-32602,"data":{"field":"message.parts[0]","reason":"INVALID_PARAMS"},"message":"`message.parts[0]`: missing field `kind`"}
    SendMessages: {"code":-32601,"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{"methods":"[\"SendMessage\",\"SendStreamingMessage\",\"GetTask\",\"ListTasks\",\"CancelTask\",\"SubscribeToTask\",\"CreateTaskPushNotificationConfig\",\"GetTaskPushNotificationConfig\",\"ListTaskPushNotificationConfigs\",\"DeleteTaskPushNotificationConfig\",\"GetExtendedAgentCard\"]"},"reason":"METHOD_NOT_FOUND"}],"message":"no method is called `SendMessages`; there are SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask, SubscribeToTask, CreateTaskPushNotificationConfig, GetTaskPushNotificationConfig, ListTaskPushNotificationConfigs, DeleteTaskPushNotificationConfig, GetExtendedAgentCard"}
    message/sends: {"code":-32601,"data":{"methods":["message/send","message/stream","tasks/get","tasks/cancel","tasks/resubscribe","tasks/pushNotificationConfig/set","tasks/pushNotificationConfig/get","tasks/pushNotificationConfig/list","tasks/pushNotificationConfig/delete","agent/getAuthenticatedExtendedCard"],"reason":"METHOD_NOT_FOUND"},"message":"no method is called `message/sends`; there are message/send, message/stream, tasks/get, tasks/cancel, tasks/resubscribe, tasks/pushNotificationConfig/set, tasks/pushNotificationConfig/get, tasks/pushNotificationConfig/list, tasks/pushNotificationConfig/delete, agent/getAuthenticatedExtendedCard"}
    hub/status: {"code":-32601,"data":{"methods":["message/send","message/stream","tasks/get","tasks/cancel","tasks/resubscribe","tasks/pushNotificationConfig/set","tasks/pushNotificationConfig/get","tasks/pushNotificationConfig/list","tasks/pushNotificationConfig/delete","agent/getAuthenticatedExtendedCard"],"reason":"METHOD_NOT_FOUND"},"message":"no method is called `hub/status`; there are message/send, message/stream, tasks/get, tasks/cancel, tasks/resubscribe, tasks/pushNotificationConfig/set, tasks/pushNotificationConfig/get, tasks/pushNotificationConfig/list, tasks/pushNotificationConfig/delete, agent/getAuthenticatedExtendedCard"}
    GetTaskPushNotificationConfig: {"code":-32001,"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `none`"}
    GET tasks/none: 404 {"error":{"code":404,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `none`","status":"NOT_FOUND"}}
    GET v1/tasks/none: 404 {"code":-32001,"data":{"reason":"TASK_NOT_FOUND"},"error":{"code":404,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `none`","status":"NOT_FOUND"},"message":"no task is called `none`"}
    POST message:send: 400 {"error":{"code":400,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{"field":"message"},"reason":"INVALID_PARAMS"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"`message`: is missing","field":"message"}]}],"message":"`message`: is missing","status":"INVALID_ARGUMENT"}}
    POST tasks/none:cancel: 404 {"error":{"code":404,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `none`","status":"NOT_FOUND"}}
    GET nothing: 404 {"error":{"code":404,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"METHOD_NOT_FOUND"}],"message":"there is nothing to GET at `/nothing`","status":"UNIMPLEMENTED"}}
    "#);

    let future = Endpoint::of(&hub, "/agents/guest").with("A2A-Version", "99.0");
    assert_eq!(future.refusal("GetTask", json!({"id": "x"})).await?.0, -32009);
    assert_eq!(future.rest(Method::GET, "tasks/x", None).await?.0, 400);
    let (_, query) = guest.rest(Method::GET, "tasks/x?A2A-Version=99.0", None).await?;
    assert_eq!(query["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED");
    for nobody in ["/agents/nobody", "/agents/..%2Fguest", "/agents/nobody/rest/tasks"] {
        let answer = Endpoint::of(&hub, nobody).ask(Method::POST, "", Some(json!({}))).await?;
        assert_eq!(answer.status(), 404, "{nobody}");
    }
    assert_eq!(guest.ask(Method::GET, "", None).await?.status(), 405);
    for (below, at) in [("", "/error/code"), ("/rest/message:send", "/error/details/0/reason")] {
        let url = format!("http://{}/agents/guest{below}", hub.http());
        let answer = reqwest::Client::new().post(url).body("text").send().await?;
        assert_eq!(answer.status(), if below.is_empty() { 415 } else { 400 });
        let answer: Value = serde_json::from_str(&answer.text().await?)?;
        let told = answer.pointer(at).cloned();
        let wanted =
            if below.is_empty() { json!(-32005) } else { json!("CONTENT_TYPE_NOT_SUPPORTED") };
        assert_eq!(told, Some(wanted), "{answer}");
    }
    Ok(())
}
