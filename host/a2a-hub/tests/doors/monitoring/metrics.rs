//! Tests of the metrics, as Prometheus reads them.

use crate::{
    hub::InProcessHub,
    stage::{eventually_async, hub_with_guest, send, stream, until},
};
use a2a_hub_tests::Client;
use anyhow::Result;
use std::time::Duration;

async fn scrape(hub: &InProcessHub, accept: &str) -> Result<(String, String)> {
    let asked = reqwest::Client::new().get(format!("http://{}/metrics", hub.http()));
    let answer = asked.header("Accept", accept).send().await?;
    assert_eq!(answer.status(), 200);
    let media = answer.headers()["content-type"].to_str()?.to_owned();
    Ok((media, answer.text().await?))
}

#[tokio::test]
async fn metrics_count_hub_activity() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let secret = "a word that nobody else should read";
    send(&client, "echo", secret).await?;
    let (_, mut updates) = stream(&client, "guest", "ask").await?;
    until(&mut updates, |event| event["status"]["state"] == "input-required").await?;
    assert!(send(&client, "nobody", "hi").await.is_err());
    let (_, mut watching) = stream(&client, "guest", "sh sleep 600").await?;
    until(&mut watching, |event| event["status"]["state"] == "working").await?;
    // The guest of the running task starts, and that of an answered one is dropped, once a core is
    // free.
    let counted = async || {
        let told = scrape(&hub, "*/*").await;
        told.is_ok_and(|(_, told)| {
            told.contains("a2a_hub_guests 2\n") && told.contains("a2a_hub_streams 1\n")
        })
    };
    eventually_async(Duration::from_secs(10), counted).await?;
    let (media, told) = scrape(&hub, "application/openmetrics-text; version=1.0.0").await?;
    assert_eq!(media, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    for line in [
        "a2a_hub_tasks{agent=\"echo\",state=\"completed\"} 1",
        "a2a_hub_tasks{agent=\"guest\",state=\"input-required\"} 1",
        "a2a_hub_task_duration_seconds_count{agent=\"echo\",state=\"completed\"} 1",
        "a2a_hub_request_duration_seconds_count{operation=\"send_message\",outcome=\"done\"} 1",
        "a2a_hub_request_duration_seconds_count{operation=\"send_message\",outcome=\"refused\"} 1",
        "a2a_hub_agent_breaker_open{agent=\"guest\"} 0",
        "a2a_hub_guests 2",
        "a2a_hub_guests_max 2000",
        "a2a_hub_streams 1",
        "a2a_hub_store_up 1",
        "# EOF",
    ] {
        assert!(told.lines().any(|it| it == line), "{line} is not in:\n{told}");
    }
    assert!(!told.contains("nobody"), "no secrets, and nothing that a client can make up");
    let (media, _) = scrape(&hub, "*/*").await?;
    assert_eq!(media, "application/openmetrics-text; version=1.0.0; charset=utf-8");

    // The endpoint has the same access control as all others.
    let page = reqwest::Client::new().get(format!("http://{}/metrics", hub.http()));
    let page = page.header("Origin", "http://evil.example").send().await?;
    assert_eq!(page.status(), 403);
    Ok(())
}
