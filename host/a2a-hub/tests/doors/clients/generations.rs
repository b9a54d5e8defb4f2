//! Tests of the extension for generations of tasks, over JSON-RPC, REST and gRPC.

use crate::{hub::InProcessHub, stage::GRANT};
use a2a_hub_protocol::id::MessageId;
use a2a_hub_tests::{GrpcClient, RpcError, test_guests};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const URI: &str = "urn:a2a-hub:generation:v1";

async fn hub(config: &str) -> Result<InProcessHub> {
    let config = format!("{config}\n{GRANT}");
    InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

async fn hub_with_generations() -> Result<InProcessHub> {
    hub("[extensions]\ngeneration = true").await
}

/// A client of one binding that names the extension.
#[derive(Clone, Copy, Debug)]
enum Spoken {
    JsonRpc,
    Rest,
    Grpc,
}

const ALL: [Spoken; 3] = [Spoken::JsonRpc, Spoken::Rest, Spoken::Grpc];

/// Answer, or code and facts of an error: the JSON-RPC code, the HTTP status or the gRPC code.
type Told = Result<Value, (i64, Value)>;

impl Spoken {
    async fn call(
        self,
        hub: &InProcessHub,
        method: &str,
        params: Value,
        seen: Option<u64>,
    ) -> Result<Told> {
        let client = reqwest::Client::new();
        let with = |request: reqwest::RequestBuilder| {
            let request = request.header("a2a-version", "1.0").header("a2a-extensions", URI);
            seen.iter().fold(request, |request, seen| request.header("last-event-id", *seen))
        };
        Ok(match self {
            Self::JsonRpc => {
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
                let url = format!("http://{}/agents/guest", hub.http());
                let answer = with(client.post(url)).json(&body).send().await?;
                let mut told: Value = serde_json::from_str(&answer.text().await?)?;
                match told.get("error") {
                    Some(error) => {
                        Err((error["code"].as_i64().unwrap_or_default(), error["data"].clone()))
                    }
                    None => Ok(told["result"].take()),
                }
            }
            Self::Rest => {
                let root = format!("http://{}/agents/guest/rest", hub.http());
                let request = match method {
                    "SendMessage" => client.post(format!("{root}/message:send")).json(&params),
                    "GetTask" => {
                        let id = params["id"].as_str().unwrap_or_default();
                        client.get(format!("{root}/tasks/{id}"))
                    }
                    other => bail!("no path for {other}"),
                };
                let answer = with(request).send().await?;
                let status = i64::from(answer.status().as_u16());
                let told: Value = serde_json::from_str(&answer.text().await?)?;
                if status == 200 {
                    Ok(told)
                } else {
                    Err((status, told["error"]["details"].clone()))
                }
            }
            Self::Grpc => {
                let mut guest = GrpcClient::v1(hub)?.with("a2a-extensions", URI)?;
                if let Some(seen) = seen {
                    guest = guest.with("last-event-id", &seen.to_string())?;
                }
                let mut params = params;
                params["tenant"] = json!("guest");
                match guest.call(method, params).await {
                    Ok((told, _)) => Ok(told),
                    Err(RpcError::Refused { code, data, .. }) => Err((code, data)),
                    Err(other) => bail!("{other}"),
                }
            }
        })
    }

    async fn say(
        self,
        hub: &InProcessHub,
        text: &str,
        task: Option<&str>,
        own: Value,
    ) -> Result<Told> {
        let mut message = json!({ "messageId": MessageId::fresh(), "role": "ROLE_USER",
            "parts": [{ "text": text }], "metadata": { URI: own } });
        if let Some(task) = task {
            message["taskId"] = json!(task);
        }
        self.call(hub, "SendMessage", json!({ "message": message }), None).await
    }

    async fn get(self, hub: &InProcessHub, task: &str, seen: Option<u64>) -> Result<Value> {
        let told = self.call(hub, "GetTask", json!({ "id": task }), seen).await?;
        told.map_err(|why| anyhow::anyhow!("{self:?}: {why:?}"))
    }
}

/// Number that gRPC has as a double.
fn generation(task: &Value) -> Option<u64> {
    let number = task["metadata"][URI]["generation"].as_f64()?;
    format!("{number:.0}").parse().ok()
}

#[tokio::test]
async fn message_for_old_generation_is_refused() -> Result<()> {
    let hub = hub_with_generations().await?;
    for (spoken, code) in ALL.into_iter().zip([-32010, 409, 10]) {
        let asked = spoken
            .say(&hub, "ask", None, json!({}))
            .await?
            .map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let id = asked["task"]["id"].as_str().context("no id")?.to_owned();
        let now = generation(&asked["task"]).context("no generation")?;
        assert!(now >= 3, "created, working, asked: {asked}");

        let old = json!({ "ifGenerationMatch": now - 1 });
        let Err((refused, facts)) = spoken.say(&hub, "late", Some(&id), old).await? else {
            bail!("{spoken:?} took the message")
        };
        assert_eq!(refused, code, "{spoken:?}: {facts}");
        assert!(facts.to_string().contains("TASK_GENERATION_MISMATCH"), "{facts}");
        let still = spoken.get(&hub, &id, None).await?;
        assert_eq!(generation(&still), Some(now), "the refusal changed nothing: {still}");

        let own = json!({ "ifGenerationMatch": now });
        let done = spoken.say(&hub, "blue", Some(&id), own.clone()).await?;
        let done = done.map_err(|why| anyhow::anyhow!("{why:?}"))?;
        assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
        assert!(generation(&done["task"]) > Some(now), "{done}");
        let without_task = spoken.say(&hub, "ask", None, own).await?;
        assert!(without_task.is_err(), "{spoken:?}: {without_task:?}");
    }
    Ok(())
}

#[tokio::test]
async fn timeline_orders_both_roles() -> Result<()> {
    let hub = hub_with_generations().await?;
    for spoken in ALL {
        let asked = spoken
            .say(&hub, "ask", None, json!({}))
            .await?
            .map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let id = asked["task"]["id"].as_str().context("no id")?.to_owned();
        spoken
            .say(&hub, "blue", Some(&id), json!({}))
            .await?
            .map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let task = spoken.get(&hub, &id, None).await?;
        let timeline = task["metadata"][URI]["timeline"].as_array().context("no timeline")?;
        let numbers: Vec<_> = timeline.iter().filter_map(|it| it["generation"].as_f64()).collect();
        assert!(numbers.is_sorted() && numbers.len() == timeline.len(), "{timeline:?}");
        let said: Vec<_> = timeline.iter().filter(|it| it["role"] == "ROLE_USER").collect();
        let said: Vec<_> = said.iter().map(|it| &it["message"]["parts"][0]["text"]).collect();
        assert_eq!(said, ["ask", "blue"], "{spoken:?}: {timeline:?}");
        assert!(timeline.iter().any(|it| it["status"]["state"] == "TASK_STATE_COMPLETED"));
    }
    Ok(())
}

/// A read with the known generation waits until something happens, also while the task waits for
/// its client.
#[tokio::test]
async fn long_poll_waits_for_next_generation() -> Result<()> {
    let hub = hub_with_generations().await?;
    for spoken in ALL {
        let asked = spoken
            .say(&hub, "ask", None, json!({}))
            .await?
            .map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let id = asked["task"]["id"].as_str().context("no id")?.to_owned();
        let now = generation(&asked["task"]).context("no generation")?;
        let answer = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            spoken.say(&hub, "blue", Some(&id), json!({})).await
        };
        let begun = Instant::now();
        let poll = async { (spoken.get(&hub, &id, Some(now)).await, begun.elapsed()) };
        let ((polled, waited), answered) = tokio::join!(poll, answer);
        let polled = polled?;
        assert!(answered?.is_ok() && waited >= Duration::from_millis(250), "{waited:?}");
        assert!(generation(&polled) > Some(now) && waited < Duration::from_secs(20), "{polled}");
        for seen in [0, now] {
            let begun = Instant::now();
            let last = spoken.get(&hub, &id, Some(seen)).await?;
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "an old number does not wait: {last}"
            );
        }
        let last = generation(&spoken.get(&hub, &id, None).await?);
        let begun = Instant::now();
        spoken.get(&hub, &id, last).await?;
        assert!(begun.elapsed() < Duration::from_secs(5), "an ended task does not change");
    }
    Ok(())
}

#[tokio::test]
async fn events_of_stream_have_generations() -> Result<()> {
    let hub = hub_with_generations().await?;
    let guest = GrpcClient::v1(&hub)?.with("a2a-extensions", URI)?;
    let message = json!({ "messageId": MessageId::fresh(), "role": "ROLE_USER", "parts": [{ "text": "flood 2" }] });
    let told = guest
        .stream("SendStreamingMessage", json!({ "tenant": "guest", "message": message }))
        .await?;
    let number = |told: &Value| {
        let of = [
            &told["task"]["metadata"],
            &told["statusUpdate"]["metadata"],
            &told["artifactUpdate"]["artifact"]["metadata"],
        ];
        of.into_iter().find_map(|facts| facts[URI]["generation"].as_f64())
    };
    let numbers: Vec<_> = told.iter().map(number).collect();
    assert!(numbers.iter().all(Option::is_some) && numbers.is_sorted(), "{told:?}");
    assert_eq!(numbers.first(), Some(&Some(1.0)), "{told:?}");
    Ok(())
}

/// The extension is off by default, and without its URI nothing of it is served.
#[tokio::test]
async fn generations_need_setting_and_activation() -> Result<()> {
    let (with, without) = (hub_with_generations().await?, hub("").await?);
    let card = async |hub: &InProcessHub| {
        let url = format!("http://{}/agents/guest/.well-known/agent-card.json", hub.http());
        anyhow::Ok(reqwest::get(url).await?.text().await?.contains(URI))
    };
    assert!(card(&with).await? && !card(&without).await?);
    let own = json!({ "ifGenerationMatch": 99 });
    for spoken in ALL {
        let task = spoken
            .say(&without, "ask", None, own.clone())
            .await?
            .map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let id = task["task"]["id"].as_str().context("no id")?.to_owned();
        let shown = spoken.get(&without, &id, None).await?;
        assert_eq!(generation(&shown), None, "{shown}");
        let done = spoken.say(&without, "blue", Some(&id), own.clone()).await?;
        assert!(done.is_ok(), "{spoken:?}: {done:?}");
    }
    let quiet = GrpcClient::v1(&with)?;
    let message = json!({ "messageId": MessageId::fresh(), "role": "ROLE_USER", "parts": [{ "text": "ask" }], "metadata": { URI: own } });
    let (task, headers) =
        quiet.call("SendMessage", json!({ "tenant": "guest", "message": message })).await?;
    assert_eq!(headers.get("a2a-extensions"), None);
    assert_eq!(generation(&task["task"]), None, "{task}");
    Ok(())
}
