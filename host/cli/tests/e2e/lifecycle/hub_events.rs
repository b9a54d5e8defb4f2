//! Test of the hub's event stream over `kill -9`: a client that resumes misses no change of a task,
//! and gets none twice.

use crate::stage::{get, hub_with_guest, listen, send, state, stream};
use a2a_hub_tests::{Client, Updates};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Changes of tasks up to the end of that task, or of the stream; each with its cursor.
async fn changes(events: &mut Updates, last: Option<&str>) -> Result<Vec<(String, String)>> {
    let mut changes = Vec::new();
    while let Some(Ok(event)) = events.next().await {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        if text("type") == "task-created" || text("type") == "task-state" {
            let change = format!("{} {} {}", text("taskId"), text("type"), text("state"));
            changes.push((event["cursor"].as_str().context("no cursor")?.to_owned(), change));
            if last == Some(text("taskId")) && text("state") == "completed" {
                break;
            }
        }
    }
    Ok(changes)
}

#[tokio::test]
async fn killed_hub_loses_no_change_for_resuming_client() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let mut events = listen(&client).await?;
    let start = events.last_event_id().context("no id")?.to_owned();
    let killed = async {
        let (working, _updates) = stream(&client, "guest", "count 1000").await?;
        let asked = send(&client, "guest", "ask").await?;
        // Tasks begin and end while the hub is killed.
        let busy = async { while send(&client, "echo", "busy").await.is_ok() {} };
        let kill = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            hub.kill9().await
        };
        let ((), killed) = tokio::join!(busy, kill);
        killed?;
        anyhow::Ok((working, asked))
    };
    let both = async { tokio::try_join!(changes(&mut events, None), killed) };
    let (seen, (working, asked)) = timeout(Duration::from_secs(60), both).await??;
    assert!(seen.len() > 9, "{seen:?}");

    hub.restart().await?;
    let client = Client::http(&hub);
    let marker = send(&client, "echo", "the last one").await?;
    let marker = marker["id"].as_str().context("no id")?;
    let after = async |cursor: &str| {
        let mut events = client.stream("hub/events", json!({ "after": cursor })).await?;
        timeout(Duration::from_secs(20), changes(&mut events, Some(marker))).await?
    };
    let whole = after(&start).await?;
    let again = whole.iter().zip(&seen).all(|((_, again), (_, before))| again == before);
    assert!(again && whole.len() > seen.len(), "as before the kill: {seen:?}, {whole:?}");
    // At the end, at the beginning, and between the events of one task.
    for index in [seen.len() - 1, seen.len() - 2, seen.len() - 3, 0, 1, 2] {
        assert_eq!(after(&seen[index].0).await?, whole[index + 1..], "after {:?}", seen[index]);
    }
    let of = |task: &Value| {
        let task = task.as_str().unwrap_or_default();
        whole.iter().rev().find(|(_, change)| change.starts_with(task)).map(|(_, change)| change)
    };
    let failed = format!("{working} task-state failed");
    assert_eq!(of(&json!(working)), Some(&failed), "by the restart");
    let waits = get(&client, asked["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&waits), "input-required");
    assert!(of(&asked["id"]).is_some_and(|change| change.ends_with("input-required")), "{whole:?}");
    Ok(())
}
