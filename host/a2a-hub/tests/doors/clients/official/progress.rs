//! Tests of progress, and of questions without a text, for official clients.

use super::{Endpoint, v1};
use crate::stage::{artifact, eventually_async, get, hub_with_guest, said, send, state};
use a2a_hub_tests::{Client, message_to};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::time::Duration;

#[tokio::test]
async fn progress_is_in_status_metadata() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let told = guest.stream("SendStreamingMessage", v1("progress")).await?;
    let percent = |event: &Value| event["statusUpdate"]["metadata"]["progress"]["percent"].as_u64();
    assert_eq!(told.iter().filter_map(percent).collect::<Vec<_>>(), [40, 80], "{told:#?}");
    Ok(())
}

#[tokio::test]
async fn question_without_text_can_be_answered() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let asks = send(&client, "guest", "ask-silently").await?;
    assert_eq!((state(&asks), said(&asks)), ("input-required", ""));
    let mut answer = message_to("guest", "blue");
    answer["message"]["taskId"] = asks["id"].clone();
    let done = client.call("message/send", answer).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "blue"));
    Ok(())
}

#[tokio::test]
async fn timer_runs_during_open_question() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let asks = send(&client, "guest", "ring 50").await?;
    let id = asks["id"].as_str().context("no id")?;
    let rang = async || get(&client, id).await.is_ok_and(|task| artifact(&task).contains("rang 3"));
    eventually_async(Duration::from_secs(20), rang).await?;
    let mut answer = message_to("guest", "stop");
    answer["message"]["taskId"] = asks["id"].clone();
    let done = client.call("message/send", answer).await?;
    assert_eq!(state(&done), "completed", "{done:#}");
    let rang = said(&done).strip_prefix("stop after ").context("it stopped")?;
    assert!(rang.parse::<u32>()? >= 3, "{done:#}");
    Ok(())
}
