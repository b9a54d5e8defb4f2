//! Tests of repeated requests: recognition by message id, across a restart, and concurrently.

use crate::stage::{hub_with_guest, state};
use a2a_hub_tests::{Client, message_to};
use anyhow::{Context as _, Result};
use serde_json::json;

async fn tasks(client: &Client) -> Result<usize> {
    let listed = client.call("hub/tasks/list", json!({})).await?;
    Ok(listed.as_array().context("no list")?.len())
}

#[tokio::test]
async fn repeated_request_is_recognised_after_kill() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let message = message_to("guest", "ask");
    let asked = Client::unix(&hub).call("message/send", message.clone()).await?;
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::unix(&hub);
    let again = client.call("message/send", message).await?;
    assert_eq!((&again["id"], &again["metadata"]["repeated"]), (&asked["id"], &json!(true)));
    assert_eq!((state(&again), tasks(&client).await?), ("input-required", 1));
    Ok(())
}
