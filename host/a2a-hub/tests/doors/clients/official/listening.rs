//! Tests of the end of a stream of 1.0: the task's final state, also if the task waits for its
//! client meanwhile.

use super::{
    Endpoint, events, more,
    ways::{Binding, Saying, Version, lines, say},
};
use crate::{hub::InProcessHub, stage::hub_with_guest};
use a2a_hub_protocol::event::StreamResponse;
use a2a_hub_tests::GrpcClient;
use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Methods to subscribe to a task in 1.0; REST has two.
const WAYS: [&str; 5] = ["JSON-RPC", "GET", "POST", "gRPC", "socket"];

/// Timeout of each stream.
const WITHIN: Duration = Duration::from_secs(30);

/// Subscribes to a task and returns all items up to the end, in the form of 1.0.
async fn subscribe(hub: &InProcessHub, way: &str, task: &str) -> Result<Vec<Value>> {
    let guest = Endpoint::of(hub, "/agents/guest");
    let path = format!("/rest/tasks/{task}:subscribe");
    match way {
        "JSON-RPC" => guest.stream("SubscribeToTask", json!({ "id": task })).await,
        "GET" => events(guest.ask(Method::GET, &path, None).await?).await,
        "POST" => events(guest.ask(Method::POST, &path, None).await?).await,
        "gRPC" => Ok(GrpcClient::v1(hub)?.stream("SubscribeToTask", json!({ "id": task })).await?),
        _ => {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask",
                "params": {"tenant": "guest", "id": task}});
            let told = lines(hub, &request).await?.into_iter();
            Ok(told.map(|mut line| line["result"].take()).collect())
        }
    }
}

/// States that a stream reports, without repetitions.
fn states(told: &[Value]) -> Vec<&str> {
    let mut states: Vec<_> = told
        .iter()
        .filter_map(|item| {
            let of = item.get("task").or_else(|| item.get("statusUpdate"))?;
            of["status"]["state"].as_str()?.strip_prefix("TASK_STATE_")
        })
        .collect();
    states.dedup();
    states
}

/// STREAM-SUB-002 of the official kit, for a task in each interrupted state.
#[tokio::test]
async fn subscription_lasts_until_final_state() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    for (text, state) in [("ask", "INPUT_REQUIRED"), ("auth", "AUTH_REQUIRED")] {
        for way in WAYS {
            let mut params = super::v1(text);
            params["configuration"]["returnImmediately"] = json!(false);
            let task = guest.result("SendMessage", params).await?["task"]["id"].take();
            let id = task.as_str().context("no id")?;
            let answer = async {
                // Time in which a stream would end by mistake.
                sleep(Duration::from_millis(400)).await;
                guest.result("SendMessage", more(&task, "blue")).await
            };
            let heard = timeout(WITHIN, subscribe(&hub, way, id));
            let (heard, answered) = tokio::join!(heard, answer);
            answered?;
            let heard = heard.with_context(|| format!("{way} {text}"))??;
            assert_eq!(heard[0]["task"]["id"], task, "{way}");
            let wanted = [state, "WORKING", "COMPLETED"];
            assert_eq!(states(&heard), wanted, "{way} {text}: {heard:?}");
        }
    }
    Ok(())
}

/// The stream of a message stays open while its task waits for a login, because the login may
/// happen elsewhere. A question is for the client itself, so the stream ends there in 0.3.
#[tokio::test]
async fn message_stream_survives_auth_required() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    for binding in [Binding::JsonRpc, Binding::Rest, Binding::Grpc, Binding::Socket] {
        let saying = Saying { agent: "guest", text: "auth", live: true, ..Saying::default() };
        let log_in = async {
            let waiting = json!({ "status": "TASK_STATE_AUTH_REQUIRED" });
            loop {
                let mut page = guest.result("ListTasks", waiting.clone()).await?;
                if page["totalSize"] == 1 {
                    sleep(Duration::from_millis(400)).await;
                    let id = page["tasks"][0]["id"].take();
                    return guest.result("SendMessage", more(&id, "it is me")).await;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let heard = timeout(WITHIN, say(&hub, (binding, Version::V1), &saying));
        let (heard, answered) = tokio::join!(heard, log_in);
        answered?;
        let heard = heard.with_context(|| format!("{binding:?}"))??;
        let heard = heard.map_err(|why| anyhow::anyhow!("{binding:?}: {why:?}"))?;
        let last = heard.told.last().context("it told nothing")?;
        let StreamResponse::Status { update, .. } = last else {
            anyhow::bail!("{binding:?} ends with {last:?}")
        };
        assert!(update.status.state.is_final(), "{binding:?}: {last:?}");

        // In 0.3 an update that is `final` ends the stream.
        let heard = timeout(WITHIN, say(&hub, (binding, Version::V03), &saying)).await??;
        let heard = heard.map_err(|why| anyhow::anyhow!("{binding:?}: {why:?}"))?;
        let Some(StreamResponse::Status { task, update, .. }) = heard.told.last() else {
            anyhow::bail!("{binding:?} ends with {:?}", heard.told.last())
        };
        assert!(update.status.state.is_interrupted(), "{binding:?}");
        guest.result("CancelTask", json!({ "id": task })).await?;
    }
    Ok(())
}
