//! Tests of push notifications: each arrives at least once and in order, whatever happens to the
//! receiver or the hub, and none reaches a forbidden address.

mod receivers;

use crate::{
    command_line::run,
    stage::{GRANT, hub_with_guest},
};
use a2a_hub_tests::{
    Client, Receiver, TestHub,
    pushes::{pushed, told},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;

/// Starts a hub with the guest and one changed setting of `push`.
async fn hub_with(setting: &str, value: &str) -> Result<TestHub> {
    let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?);
    hub.env(format!("A2A_HUB_PUSH_{setting}"), value).start().await
}

#[tokio::test]
async fn dead_delivery_is_listed_and_retried() -> Result<()> {
    let (hub, receiver) = (hub_with("GIVE_UP_MS", "800").await?, Receiver::start()?);
    receiver.always(Some(500));
    let client = Client::http(&hub);
    let done = client.call("message/send", pushed("flood 1", &receiver.url("/secret"))).await?;
    let dead = async || client.call("hub/deliveries/list", json!({ "dead": true })).await;
    let mut given_up = dead().await?;
    for _ in 0..100 {
        if given_up != json!([]) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        given_up = dead().await?;
    }
    assert_eq!(given_up[0]["taskId"], done["id"]);
    assert_eq!(given_up[0]["receiver"], json!(receiver.url("")), "the path may be secret");
    assert_eq!(given_up[0]["error"], "it answered with HTTP status 500");

    let task = done["id"].as_str().context("no id")?;
    let shown = run(&hub, &["deliveries", "--dead"]).await?.stdout;
    assert!(shown.contains(&format!("a2a-hub deliveries --retry {task}")), "{shown}");
    receiver.always(None);
    assert_eq!(run(&hub, &["deliveries", "--retry", task]).await?.code, Some(0));
    told(&receiver, "completed").await?;
    let over = async || run(&hub, &["deliveries"]).await.map(|ran| ran.stdout);
    // The receiver has the notification a moment before the hub records it.
    for _ in 0..50 {
        if over().await? == "no notifications are pending\n" {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("it is not over: {}", over().await?)
}

/// The hub is killed after the event, before its delivery.
#[tokio::test]
async fn unsent_notification_survives_kill() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let receiver = Receiver::start()?;
    let address = receiver.address();
    drop(receiver);
    let client = Client::http(&hub);
    let params = pushed("flood 1", &format!("http://{address}/news"));
    let done = client.call("message/send", params).await?;
    hub.kill9().await?;

    let receiver = Receiver::at(address)?;
    hub.restart().await?;
    told(&receiver, "completed").await?;
    assert_eq!(receiver.taken().last().context("nothing came")?["id"], done["id"]);
    Ok(())
}
