//! Tests of `kill -9` of the hub at a bad moment: no reported event is lost, no process is left,
//! and the tasks' states are true.

use crate::stage::{
    get, hub_with_guest, no_program_left, resuming_guests, said, send, state, stream, until,
};
use a2a_hub_tests::{Client, TestHub, message_to};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn killed_task_fails_and_keeps_events() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let done = send(&client, "guest", "flood 5").await?;
    let asked = send(&client, "guest", "ask").await?;
    let (id, mut updates) = stream(&client, "guest", "count 1000").await?;
    let mut heard = String::new();
    while !heard.contains("5\n") {
        let event = until(&mut updates, |event| event["kind"] == "artifact-update").await?;
        heard.push_str(event["artifact"]["parts"][0]["text"].as_str().unwrap_or_default());
    }
    let mut more = message_to("guest", "nobody hears it");
    more["message"]["taskId"] = json!(id);
    more["configuration"] = json!({ "blocking": false });
    let kept = more["message"]["messageId"].clone();
    client.call("message/send", more).await?;
    hub.kill9().await?;
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await?;

    hub.restart().await?;
    let client = Client::http(&hub);
    let task = get(&client, &id).await?;
    assert_eq!(state(&task), "failed");
    assert_eq!(task["metadata"]["reason"], "hub_restarted");
    assert_eq!(task["metadata"]["unheard"], json!([kept]));
    let kept = task["artifacts"][0]["parts"][0]["text"].as_str().context("its artifact is lost")?;
    assert!(kept.starts_with(&heard), "heard {heard:?}, kept {kept:?}");
    let waits = get(&client, asked["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&waits), "input-required");
    assert!(said(&waits).contains(&format!("asked: “{}”", said(&asked))), "{waits}");
    assert_eq!(waits["metadata"]["reason"], "recovery");
    let still_done = get(&client, done["id"].as_str().context("no id")?).await?;
    assert_eq!(still_done, done, "a final task never changes");
    assert_eq!(said(&send(&client, "echo", "hello").await?), "hello");
    Ok(())
}

/// The client's next message starts a fresh run of the agent.
#[tokio::test]
async fn waiting_task_continues_after_restart() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let asked = send(&Client::http(&hub), "guest", "ask").await?;
    let to_cancel = send(&Client::http(&hub), "guest", "auth").await?;
    for graceful in [true, false] {
        if !graceful {
            hub.kill9().await?;
        }
        hub.restart().await?;
    }
    let client = Client::http(&hub);
    let mut answer = message_to("guest", "history");
    answer["message"]["taskId"] = asked["id"].clone();
    let task = client.call("message/send", answer).await?;
    assert_eq!(state(&task), "completed");
    assert!(said(&task).starts_with("ask\nwhat do you say?\nThe hub was restarted"), "{task}");
    assert!(task["metadata"].get("reason").is_none(), "{task}");
    let waits = get(&client, to_cancel["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&waits), "auth-required");
    let cancelled = client.call("tasks/cancel", json!({ "id": to_cancel["id"] })).await?;
    assert_eq!(state(&cancelled), "canceled");
    Ok(())
}

#[tokio::test]
async fn resuming_agent_asks_to_continue() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let guests = resuming_guests(dir.path())?;
    let mut hub = TestHub::builder().plugin("guest", guests).start().await?;
    for graceful in [true, false] {
        let (id, mut updates) = stream(&Client::http(&hub), "guest", "tick 1000 50").await?;
        until(&mut updates, |event| event["kind"] == "artifact-update").await?;
        if !graceful {
            hub.kill9().await?;
        }
        hub.restart().await?;
        let client = Client::http(&hub);
        let task = get(&client, &id).await?;
        assert_eq!(
            (state(&task), &task["metadata"]["reason"]),
            ("input-required", &json!("recovery"))
        );
        assert!(said(&task).contains("send any message to go on"), "{task}");
        let mut more = message_to("guest", "flood 2");
        more["message"]["taskId"] = json!(id);
        assert_eq!(state(&client.call("message/send", more).await?), "completed");
    }
    Ok(())
}

#[tokio::test]
async fn second_hub_refuses_same_data_directory() -> Result<()> {
    let hub = hub_with_guest().await?;
    let second = crate::command_line::run(
        &hub,
        &[
            "start",
            "--foreground",
            "--no-http",
            "--data-dir",
            &hub.data_dir().display().to_string(),
        ],
    )
    .await?;
    assert_eq!(second.code, Some(2));
    assert!(second.stderr.contains("another hub"), "{}", second.stderr);
    assert_eq!(said(&send(&Client::unix(&hub), "echo", "hello").await?), "hello");
    Ok(())
}

/// A disk may lose a page. One damaged task must not keep the hub from starting.
#[tokio::test]
async fn damaged_task_does_not_block_start() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let damaged = send(&client, "guest", "ask").await?;
    let whole = send(&client, "guest", "ask").await?;
    hub.kill9().await?;
    let db = rusqlite::Connection::open(hub.data_dir().join("hub.db"))?;
    let id = damaged["id"].as_str().context("no id")?;
    db.execute("UPDATE events SET event = '{' WHERE task = ?1 AND seq = 1", [id])?;
    drop(db);
    hub.restart().await?;
    let client = Client::http(&hub);
    assert!(hub.log().contains("cannot recover a task"), "{}", hub.log());
    let mut answer = message_to("guest", "history");
    answer["message"]["taskId"] = whole["id"].clone();
    assert_eq!(state(&client.call("message/send", answer).await?), "completed");
    Ok(())
}

#[tokio::test]
async fn stop_fails_running_tasks_with_reason() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let (id, mut updates) = stream(&Client::http(&hub), "guest", "sh sleep 600").await?;
    until(&mut updates, |event| event["status"]["state"] == "working").await?;
    let status = hub.stop().await?;
    assert!(status.success(), "{status}");
    no_program_left(&hub.data_dir(), Duration::from_secs(1)).await?;
    hub.restart().await?;
    let task = get(&Client::http(&hub), &id).await?;
    assert_eq!((state(&task), &task["metadata"]["reason"]), ("failed", &"hub_stopped".into()));
    Ok(())
}
