//! `kill -9` of the hub, at a bad moment: nothing that was told is lost, nothing is left running, nothing is pretended.

use crate::stage::{get, hub_with_guest, no_program_left, said, send, state, stream, until};
use a2a_hub_tests::Client;
use anyhow::{Context as _, Result};
use std::time::Duration;

#[tokio::test]
async fn a_running_task_ends_honestly_and_keeps_its_events() -> Result<()> {
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
    hub.kill9().await?;
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await?;

    hub.restart().await?;
    let client = Client::http(&hub);
    let task = get(&client, &id).await?;
    assert_eq!(state(&task), "failed");
    assert_eq!(task["metadata"]["reason"], "hub_restarted");
    let kept = task["artifacts"][0]["parts"][0]["text"].as_str().context("its artifact is lost")?;
    assert!(kept.starts_with(&heard), "heard {heard:?}, kept {kept:?}");
    let asked = get(&client, asked["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&asked), "failed");
    let still_done = get(&client, done["id"].as_str().context("no id")?).await?;
    assert_eq!(still_done, done, "a final task never changes");
    assert_eq!(said(&send(&client, "echo", "hello").await?), "hello");
    Ok(())
}

#[tokio::test]
async fn a_second_hub_keeps_its_hands_off() -> Result<()> {
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

#[tokio::test]
async fn stopping_cuts_tasks_off_and_says_so() -> Result<()> {
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
