//! Tests of receivers that are overloaded, gone or faulty: the fate of the notifications, and the
//! number of requests.

use crate::{
    command_line::run,
    stage::{GRANT, eventually, eventually_async, hub_with_guest, send},
};
use a2a_hub_tests::{
    Client, Receiver, TestHub,
    pushes::{MORE_THAN_A_PAUSE, SOON, answer, at, deliveries, pushed, set, told},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Starts a hub that pauses deliveries to a receiver for three seconds after three consecutive
/// failures.
async fn hub_that_loses_patience() -> Result<TestHub> {
    let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?);
    let hub = hub.env("A2A_HUB_BREAKER_FAILURES", "3").env("A2A_HUB_BREAKER_PAUSE_MS", "3000");
    hub.start().await
}

/// The retry time outlives the hub, and does not delay its shutdown.
#[tokio::test]
async fn retry_after_survives_restart() -> Result<()> {
    let (mut hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    receiver.always(Some(503));
    receiver.rests(Some("3000"));
    let client = Client::http(&hub);
    let done = client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    eventually(SOON, || !receiver.came().is_empty()).await?;
    let resting = async |client: &Client| {
        let retry_at = deliveries(client).await.ok()?.first()?["retryAt"].as_str()?.to_owned();
        let ahead = retry_at.parse::<jiff::Timestamp>().ok()? - jiff::Timestamp::now();
        Some(ahead.total(jiff::Unit::Second).ok()? > 2900.0)
    };
    eventually_async(SOON, async || resting(&client).await == Some(true)).await?;

    let stopping = Instant::now();
    hub.stop().await?;
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());
    hub.restart().await?;
    sleep(MORE_THAN_A_PAUSE).await;
    assert_eq!(receiver.came().len(), 1, "the next hub leaves it in peace, too");
    let client = Client::http(&hub);
    assert_eq!(resting(&client).await, Some(true));

    receiver.always(None);
    let task = done["id"].as_str().context("no id")?;
    assert_eq!(run(&hub, &["deliveries", "--retry", task]).await?.code, Some(0));
    told(&receiver, "completed").await
}

/// Sixteen notification configurations of a task at one receiver that is down: not each of them
/// retries by itself.
#[tokio::test]
async fn failing_receiver_holds_further_deliveries() -> Result<()> {
    let (hub, receiver) = (hub_that_loses_patience().await?, Receiver::start()?);
    receiver.always(Some(500));
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    for n in 0..16 {
        set(&client, &asked, &format!("c{n}"), &receiver.url(&format!("/{n}"))).await?;
    }
    answer(&client, &asked, "hi").await?;
    let held = async || {
        let all = deliveries(&client).await.unwrap_or_default();
        all.into_iter().filter(|it| it["state"] == "held").collect::<Vec<_>>()
    };
    eventually_async(SOON, async || held().await.len() >= 10).await?;
    // Three requests opened the breaker, and up to three more were in progress.
    assert!(receiver.came().len() <= 6, "{}", receiver.came().len());
    let one = held().await.remove(0);
    assert_eq!(
        (&one["attempts"], &one["error"]),
        (&json!(0), &json!("it answered with HTTP status 500"))
    );
    assert!(one["retryAt"].is_string(), "{one}");
    let shown = run(&hub, &["deliveries"]).await?.stdout;
    assert!(
        shown.contains("paused, because others to this receiver failed in a row: it answered"),
        "{shown}"
    );

    receiver.always(None);
    let done =
        || (0..16).filter(|n| at(&receiver, &format!("/{n}")).contains(&"completed".to_owned()));
    eventually(Duration::from_secs(20), || done().count() == 16).await?;
    Ok(())
}
