//! Agents elsewhere as this hub's own: one hub's guest is another's.

use crate::stage::{GRANT, get, hub_with_guest, said, send, state, stream, until};
use a2a_hub_tests::{Client, TestHub, message_to};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// A hub whose agent `far` is the guest of another.
async fn hub_before(there: &TestHub) -> Result<TestHub> {
    let remote = format!("[remote.far]\nurl = 'http://{}/agents/guest'\n", there.http());
    TestHub::builder().config(format!("{GRANT}\n{remote}")).start().await
}

#[tokio::test]
async fn a_remote_agent_works_as_one_of_our_own() -> Result<()> {
    let there = hub_with_guest().await?;
    let here = hub_before(&there).await?;
    let client = Client::http(&here);
    let shown = client.call("hub/agents/get", json!({ "agentId": "far" })).await?;
    assert_eq!(shown["source"], json!(format!("http://{}/agents/guest", there.http())));
    assert_eq!(shown["name"], "test-guests");
    let health = client.call("hub/agents/health", json!({ "agentId": "far" })).await?;
    assert_eq!(health["status"], "healthy", "{health}");

    let done = send(&client, "far", "flood 3").await?;
    assert_eq!((state(&done), said(&done)), ("completed", "3 pieces"));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "1\n2\n3\n");
    let failed = send(&client, "far", "fail").await?;
    assert_eq!((state(&failed), &failed["metadata"]["reason"]), ("failed", &json!("told-to")));
    assert_eq!(send(&client, "far", "reply hi").await?["parts"][0]["text"], "hi");
    Ok(())
}

#[tokio::test]
async fn its_questions_are_our_clients_and_its_conversations_ours() -> Result<()> {
    let there = hub_with_guest().await?;
    let here = hub_before(&there).await?;
    let client = Client::http(&here);
    let asked = send(&client, "far", "ask").await?;
    assert_eq!((state(&asked), said(&asked)), ("input-required", "what do you say?"));
    let mut answer = message_to("far", "both");
    answer["message"]["taskId"] = asked["id"].clone();
    let done = client.call("message/send", answer).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "both"));

    let mut more = message_to("far", "history");
    more["message"]["contextId"] = asked["contextId"].clone();
    let told = client.call("message/send", more).await?;
    assert_eq!(said(&told), "ask\nwhat do you say?\nboth\nboth", "it knows what was said before");
    Ok(())
}

#[tokio::test]
async fn cancel_is_passed_on() -> Result<()> {
    let there = hub_with_guest().await?;
    let here = hub_before(&there).await?;
    let client = Client::http(&here);
    let (id, mut updates) = stream(&client, "far", "tick 1000 100").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    let cancelled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled");
    let far = Client::http(&there);
    for _ in 0..50 {
        let tasks = far.call("hub/tasks/list", json!({})).await?;
        let theirs = tasks.get(0).context("it had a task")?;
        if state(theirs) == "canceled" {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("it goes on there")
}

/// A card that changed may be somebody else's.
#[tokio::test]
async fn another_card_than_the_pinned_is_told() -> Result<()> {
    let there = hub_with_guest().await?;
    let remote = format!(
        "[remote.far]\nurl = 'http://{}/agents/guest'\nsha256 = '{}'\n",
        there.http(),
        "0".repeat(64)
    );
    let here = TestHub::builder().config(remote).start().await?;
    let client = Client::http(&here);
    let health = client.call("hub/agents/health", json!({ "agentId": "far" })).await?;
    assert_eq!(health["status"], "degraded");
    let fix = health["fix"].as_str().unwrap_or_default();
    assert!(fix.contains("remote.far.sha256"), "{health}");
    Ok(())
}

/// One that waits for its client waits there too, and is answered by the hub that comes after.
#[tokio::test]
async fn a_question_outlives_the_hub_that_passed_it_on() -> Result<()> {
    let there = hub_with_guest().await?;
    let mut here = hub_before(&there).await?;
    let asked = send(&Client::http(&here), "far", "ask").await?;
    here.kill9().await?;
    here.restart().await?;
    let client = Client::http(&here);
    let id = asked["id"].as_str().context("no id")?;
    assert_eq!(state(&get(&client, id).await?), "input-required");
    let mut answer = message_to("far", "late");
    answer["message"]["taskId"] = asked["id"].clone();
    let done: Value = client.call("message/send", answer).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "late"));
    Ok(())
}
