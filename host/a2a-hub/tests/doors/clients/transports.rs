//! One table of cases over each transport and in process: the responses are the same.

use crate::{hub::InProcessHub, stage::GRANT};
use a2a_hub::{BuiltIn, Hub, Reply, ReplyStream};
use a2a_hub_config::Settings;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{error::ErrorKind, hub::methods, operation::Answer, v03};
use a2a_hub_tests::{Client, RpcError, message_to, test_guests};
use anyhow::{Context as _, Result};
use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use std::{fs, sync::Arc};
use tempfile::TempDir;

/// Members that differ in each run.
const CHANGING: [&str; 6] = ["id", "taskId", "contextId", "messageId", "timestamp", "registeredAt"];

/// Transport for requests: returns one or several results, or an error's code and reason.
type Way = Box<dyn Fn(&'static str, Value, bool) -> BoxFuture<'static, Result<Vec<Value>>>>;

#[tokio::test]
async fn responses_are_same_over_transports() -> Result<()> {
    let hub = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let (inside, _dir) = hub_in_process().await?;
    let ways: [(&str, Way); 5] = [
        ("http", over(Client::http(&hub))),
        ("sse", over_sse(Client::http(&hub))),
        ("unix", over(Client::unix(&hub))),
        ("rest", over_rest(&hub)),
        ("in process", in_process(inside)),
    ];
    let mut told = Vec::new();
    for (name, way) in &ways {
        let mut lines = String::new();
        for (method, params, streams) in cases() {
            let case = format!("{method} {}", params["message"]["parts"][0]["text"]);
            let answers = way(method, params, streams).await.context(case.clone())?;
            lines.push_str(&format!("{case}\n"));
            for mut answer in answers {
                mask(&mut answer);
                lines.push_str(&format!("    {answer}\n"));
            }
        }
        told.push((name, lines));
    }
    for (name, lines) in &told[1..] {
        assert_eq!(*lines, told[0].1, "{name} answers otherwise");
    }
    insta::assert_snapshot!(told[0].1, @r#"
    message/send "reply hi"
        {"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"hi"}],"role":"agent","taskId":"…"}
    message/send "reject"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"reject"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","status":{"message":{"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"not today"}],"role":"agent","taskId":"…"},"state":"rejected","timestamp":"…"}}
    message/send "fail"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"fail"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","metadata":{"reason":"told-to"},"status":{"message":{"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"failed, as told"}],"role":"agent","taskId":"…"},"state":"failed","timestamp":"…"}}
    message/send "no-outcome-message"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"no-outcome-message"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","status":{"state":"completed","timestamp":"…"}}
    message/send "flood 2"
        {"artifacts":[{"artifactId":"flood","name":"flood","parts":[{"kind":"text","text":"1\n2\n"}]}],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"flood 2"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","status":{"message":{"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"2 pieces"}],"role":"agent","taskId":"…"},"state":"completed","timestamp":"…"}}
    message/send "ask"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"ask"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","metadata":{"question":{"id":"…","kind":"input"}},"status":{"message":{"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"what do you say?"}],"role":"agent","taskId":"…"},"state":"input-required","timestamp":"…"}}
    message/stream "flood 2"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"flood 2"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","status":{"state":"submitted","timestamp":"…"}}
        {"contextId":"…","final":false,"kind":"status-update","status":{"state":"working","timestamp":"…"},"taskId":"…"}
        {"append":false,"artifact":{"artifactId":"flood","name":"flood","parts":[{"kind":"text","text":"1\n"}]},"contextId":"…","kind":"artifact-update","lastChunk":false,"taskId":"…"}
        {"append":true,"artifact":{"artifactId":"flood","name":"flood","parts":[{"kind":"text","text":"2\n"}]},"contextId":"…","kind":"artifact-update","lastChunk":true,"taskId":"…"}
        {"contextId":"…","final":true,"kind":"status-update","status":{"message":{"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"2 pieces"}],"role":"agent","taskId":"…"},"state":"completed","timestamp":"…"},"taskId":"…"}
    message/stream "ask"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"ask"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","status":{"state":"submitted","timestamp":"…"}}
        {"contextId":"…","final":false,"kind":"status-update","status":{"state":"working","timestamp":"…"},"taskId":"…"}
        {"contextId":"…","final":true,"kind":"status-update","metadata":{"question":{"id":"…","kind":"input"}},"status":{"message":{"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"what do you say?"}],"role":"agent","taskId":"…"},"state":"input-required","timestamp":"…"},"taskId":"…"}
    message/stream "reply hi"
        {"artifacts":[],"contextId":"…","history":[{"contextId":"…","kind":"message","messageId":"…","metadata":{"targetAgent":"guest"},"parts":[{"kind":"text","text":"reply hi"}],"role":"user","taskId":"…"}],"id":"…","kind":"task","status":{"state":"submitted","timestamp":"…"}}
        {"contextId":"…","final":false,"kind":"status-update","status":{"state":"working","timestamp":"…"},"taskId":"…"}
        {"contextId":"…","kind":"message","messageId":"…","parts":[{"kind":"text","text":"hi"}],"role":"agent","taskId":"…"}
    message/send "hi"
        {"code":-32003,"reason":"AGENT_NOT_FOUND"}
    message/send null
        {"code":-32602,"reason":"INVALID_PARAMS"}
    message/send "x"
        {"code":-32602,"reason":"INVALID_PARAMS"}
    message/stream "hi"
        {"code":-32003,"reason":"AGENT_NOT_FOUND"}
    tasks/get null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    tasks/cancel null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    tasks/pushNotificationConfig/set null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    tasks/pushNotificationConfig/get null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    tasks/pushNotificationConfig/list null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    tasks/pushNotificationConfig/delete null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    message/send "flood 2"
        {"code":-32602,"reason":"INVALID_PARAMS"}
    hub/deliveries/list null
        []
    hub/deliveries/retry null
        {"code":-32001,"reason":"TASK_NOT_FOUND"}
    hub/questions/list null
        {"questions":[],"total":0}
    hub/questions/answer null
        [{"answered":false,"error":"no task asks the question `none` now; `hub/questions/list` shows the open ones, and `hub/questions/history` the others","id":"…"}]
    hub/questions/later null
        {"code":-32005,"reason":"UNSUPPORTED_OPERATION"}
    hub/questions/answer null
        {"code":-32602,"reason":"INVALID_PARAMS"}
    hub/no/such/method null
        {"code":-32601,"reason":"METHOD_NOT_FOUND"}
    no/such/method null
        {"code":-32601,"reason":"METHOD_NOT_FOUND"}
    "#);
    Ok(())
}

/// Method, parameters, and true for a streamed response.
fn cases() -> Vec<(&'static str, Value, bool)> {
    let send = |text: &str| ("message/send", message_to("guest", text), false);
    let stream = |text: &str| ("message/stream", message_to("guest", text), true);
    let ask = |method, params| (method, params, false);
    vec![
        send("reply hi"),
        send("reject"),
        send("fail"),
        send("no-outcome-message"),
        send("flood 2"),
        send("ask"),
        stream("flood 2"),
        stream("ask"),
        stream("reply hi"),
        ask("message/send", message_to("nobody", "hi")),
        ask("message/send", json!({})),
        ask(
            "message/send",
            json!({"message": {"messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "x"}]}}),
        ),
        ("message/stream", message_to("nobody", "hi"), true),
        ask("tasks/get", json!({"id": "no-such-task"})),
        ask("tasks/cancel", json!({"id": "no-such-task"})),
        ask(
            "tasks/pushNotificationConfig/set",
            json!({"taskId": "no-such-task", "pushNotificationConfig": {"url": "https://example.com/"}}),
        ),
        ask("tasks/pushNotificationConfig/get", json!({"id": "no-such-task"})),
        ask("tasks/pushNotificationConfig/list", json!({"id": "no-such-task"})),
        ask(
            "tasks/pushNotificationConfig/delete",
            json!({"id": "no-such-task", "pushNotificationConfigId": "c"}),
        ),
        ask("message/send", pushed("https://169.254.169.254/")),
        ask("hub/deliveries/list", json!({})),
        ask("hub/deliveries/retry", json!({"taskId": "no-such-task"})),
        ask("hub/questions/list", json!({"kind": "permission"})),
        ask("hub/questions/answer", json!({"ids": ["none"], "answer": "allow"})),
        ask("hub/questions/later", json!({"id": "none", "forMs": 1})),
        ask("hub/questions/answer", json!({"ids": [], "answer": "allow"})),
        ask("hub/no/such/method", json!({})),
        ask("no/such/method", json!({})),
    ]
}

/// Message with a push configuration.
fn pushed(url: &str) -> Value {
    let mut params = message_to("guest", "flood 2");
    params["configuration"] = json!({ "pushNotificationConfig": { "url": url } });
    params
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if CHANGING.contains(&name.as_str()) && member.is_string() {
                    *member = json!("…");
                } else {
                    mask(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn refused(code: i64, reason: &Value) -> Vec<Value> {
    vec![json!({ "code": code, "reason": reason })]
}

fn told(answer: Result<Vec<Value>, RpcError>) -> Result<Vec<Value>> {
    match answer {
        Ok(answers) => Ok(answers),
        Err(RpcError::Refused { code, data, .. }) => Ok(refused(code, &data["reason"])),
        Err(lost @ RpcError::Lost(_)) => Err(lost.into()),
    }
}

fn over(client: Client) -> Way {
    Box::new(move |method, params, streams| {
        let client = client.clone();
        async move {
            if !streams {
                return told(client.call(method, params).await.map(|answer| vec![answer]));
            }
            match client.stream(method, params).await {
                Ok(updates) => told(updates.rest().await),
                Err(why) => told(Err(why)),
            }
        }
        .boxed()
    })
}

/// Sends each request as a stream; over SSE, a single response is an event too.
fn over_sse(client: Client) -> Way {
    let way = over(client);
    Box::new(move |method, params, _| way(method, params, true))
}

/// Calls the hub's own methods by their paths, and all others as JSON-RPC.
fn over_rest(hub: &InProcessHub) -> Way {
    let (base, others) = (format!("http://{}", hub.http()), over(Client::http(hub)));
    Box::new(move |method, params, streams| {
        if !method.starts_with("hub/") {
            return others(method, params, streams);
        }
        let url = format!("{base}/{method}");
        async move {
            let response = reqwest::Client::new().post(url).json(&params).send().await?;
            let status = response.status().as_u16();
            let answer: Value = response.json().await?;
            if status == 200 {
                return Ok(vec![answer]);
            }
            let reason = &answer["error"]["details"][0]["reason"];
            let kind = ErrorKind::ALL.into_iter().find(|kind| reason == kind.reason());
            let kind = kind.with_context(|| format!("no reason in {answer}"))?;
            anyhow::ensure!(status == kind.official().http, "{status} {answer}");
            Ok(refused(kind.hub_code().into(), reason))
        }
        .boxed()
    })
}

fn in_process(hub: Arc<Hub>) -> Way {
    Box::new(move |method, params, _| {
        let hub = hub.clone();
        async move {
            let reply = match methods::operation(method, params) {
                Ok(operation) => hub.handle(&Principal::Operator, operation).await,
                Err(why) => Err(why),
            };
            Ok(match reply {
                Ok(Reply::One(Answer::Task(task))) => vec![v03::json::write_task(&task)],
                Ok(Reply::One(Answer::Message(message))) => {
                    vec![v03::json::write_message(&message)]
                }
                Ok(Reply::One(Answer::Deliveries(deliveries))) => vec![json!(deliveries)],
                Ok(Reply::One(Answer::Question(answer))) => vec![json!(answer)],
                Ok(Reply::One(other)) => anyhow::bail!("no case is answered by {other:?}"),
                Ok(Reply::Stream(ReplyStream::Hub(_))) => {
                    anyhow::bail!("no case listens to the whole hub")
                }
                Ok(Reply::Stream(ReplyStream::Task(mut heard))) => {
                    let mut events = Vec::new();
                    while let Some(event) = heard.next().await {
                        events.extend(v03::json::write_event(&*event?));
                    }
                    events
                }
                Err(why) => refused(why.kind.hub_code().into(), &json!(why.kind.reason())),
            })
        }
        .boxed()
    })
}

/// Starts a hub with the same agents and without transports; also returns its directory.
async fn hub_in_process() -> Result<(Arc<Hub>, TempDir)> {
    let dir = tempfile::tempdir()?;
    let plugins = dir.path().join("plugins");
    fs::create_dir(&plugins)?;
    fs::copy(test_guests()?, plugins.join("guest.wasm"))?;
    let config = dir.path().join("config.toml");
    fs::write(&config, format!("http.enabled = false\nsocket.enabled = false\n{GRANT}"))?;
    let config = Settings::load(Some(config), &[])?.config;
    let hub = Hub::builder(dir.path()).config(config).built_in(BuiltIn::default());
    Ok((Arc::new(hub.start().await?), dir))
}
