//! Tests of tasks that wait for their client: they do not block others, and a stop does not report
//! them as cancelled.

use crate::{
    command_line::run,
    stage::{GRANT, hub_with_guest, said, send, stream, until},
};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn waiting_tasks_are_limited_and_cancellable() -> Result<()> {
    let config = GRANT.replace("max_running = 100", "max_running = 100\n    max_waiting = 2");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let first = send(&client, "guest", "ask").await?;
    // Timestamps have a resolution of a millisecond.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let last = send(&client, "guest", "ask").await?;
    let refused = send(&client, "guest", "ask").await.unwrap_err();
    let refused = format!("{refused:#}");
    assert!(refused.contains("2 of its tasks wait for an answer"), "{refused}");
    assert_eq!(said(&send(&client, "echo", "hello").await?), "hello");
    let status = run(&hub, &["status"]).await?.stdout;
    assert!(status.contains("2 of them wait for an answer"), "{status}");

    let stop = ["task", "cancel", "--state", "input-required"];
    let none = run(&hub, &[&stop[..], &["--older", "1d"]].concat()).await?;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "there is no such task\n"));
    let since = last["status"]["timestamp"].as_str().unwrap_or_default();
    let older = run(&hub, &[&stop[..], &["--older", since]].concat()).await?;
    let cancelled = format!("task {} is cancelled\n", first["id"].as_str().unwrap_or_default());
    assert_eq!((older.code, older.stdout), (Some(0), cancelled), "the other is not older");
    let all = run(&hub, &stop).await?;
    assert_eq!((all.code, all.stdout.matches(" is cancelled\n").count()), (Some(0), 1));
    assert_eq!(send(&client, "guest", "reply hi").await?["parts"][0]["text"], "hi");
    let both = run(&hub, &["task", "cancel", "some", "--state", "working"]).await?;
    assert_eq!(both.code, Some(2));
    Ok(())
}

#[tokio::test]
async fn stop_reports_only_cancelled_tasks() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let waits = send(&client, "guest", "ask").await?;
    let (cut, mut updates) = stream(&client, "guest", "sh sleep 600").await?;
    until(&mut updates, |event| event["status"]["state"] == "working").await?;
    let data = hub.data_dir().display().to_string();
    let stop = ["--data-dir", &data, "--format", "json", "stop", "--timeout", "0"];
    let stopped = run(&hub, &stop).await?;
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let told: Value = serde_json::from_str(&stopped.stdout)?;
    assert_eq!(told["cut"], json!([cut]), "and not {waits}");
    Ok(())
}
