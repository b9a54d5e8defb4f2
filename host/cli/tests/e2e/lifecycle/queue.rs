//! Tests of the run queue: tasks beyond the limit of running ones wait in order, and beyond the
//! queue's limit are refused.

use crate::stage::{get, said, state};
use a2a_hub_tests::{
    Client, TestHub, message_to,
    queue::{narrow, occupy},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Starts a hub whose agent runs one task at a time and queues two.
async fn narrow_hub(more: &str) -> Result<TestHub> {
    TestHub::builder().config(narrow(more)).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn queued_task_starts_after_crash() -> Result<()> {
    let mut hub = narrow_hub("").await?;
    let client = Client::unix(&hub);
    let (first, _) = occupy(&client).await?;
    let mut terms = message_to("guest", "terms");
    terms["configuration"] = json!({ "acceptedOutputModes": ["image/*"] });
    let second =
        client.stream("message/stream", terms).await?.next().await.context("no task")??;
    let second = second["id"].as_str().context("no id")?.to_owned();
    let mut hurried = message_to("guest", "tick 1000 100");
    hurried["configuration"] = json!({ "timeoutMs": 1500 });
    let third =
        client.stream("message/stream", hurried).await?.next().await.context("no task")??;
    let third = third["id"].as_str().context("no id")?.to_owned();
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::unix(&hub);
    for (id, end) in [(&second, "completed"), (&third, "failed")] {
        let heard = client.stream("tasks/resubscribe", json!({ "id": id })).await?;
        heard.rest().await?;
        assert_eq!(state(&get(&client, id).await?), end);
    }
    assert_eq!(
        said(&get(&client, &second).await?),
        "; image/*",
        "its client takes no more than that"
    );
    let hurried = get(&client, &third).await?;
    assert_eq!(hurried["metadata"]["reason"], "timeout", "its client gave it that long");
    let cut_off = get(&client, &first).await?;
    assert_eq!(cut_off["metadata"]["reason"], "hub_restarted");
    Ok(())
}
