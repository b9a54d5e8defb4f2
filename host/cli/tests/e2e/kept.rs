//! Tests of processes that outlive a task of their agent: reuse, lifetime, and cleanup.

use crate::stage::{eventually_async, no_program_left, said, state, stream, until};
use a2a_hub_tests::{
    Client, TestHub,
    kept::{self, COUNT, SOON, kept, says},
    test_guests,
};
use anyhow::Result;
use serde_json::json;
use std::time::Duration;

/// Starts a hub whose guest reuses processes, with these settings and limits.
async fn keeping(agent: &str, limits: &str) -> Result<TestHub> {
    let hub = TestHub::builder().config(kept::config(agent, limits));
    hub.plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn idle_programs_end_with_agent_and_hub() -> Result<()> {
    let mut hub = keeping("confine = false", "").await?;
    let client = Client::http(&hub);
    assert_eq!(says(&client, COUNT).await?, "new 1");
    let (task, mut updates) = stream(&client, "guest", "keep-and-hold k").await?;
    until(&mut updates, |event| said(event).starts_with("kept")).await?;
    let cancelled = client.call("tasks/cancel", json!({ "id": task })).await?;
    assert_eq!((state(&cancelled), kept(&client).await?), ("canceled", 0));
    no_program_left(&hub.data_dir(), SOON).await?;

    assert_eq!(says(&client, COUNT).await?, "new 1");
    hub.unplug("guest")?;
    no_program_left(&hub.data_dir(), Duration::from_secs(20)).await?;
    hub.plug("guest", &test_guests()?)?;
    let joined = async || says(&client, COUNT).await.is_ok_and(|told| told == "new 1");
    eventually_async(Duration::from_secs(30), joined).await?;
    hub.kill9().await?;
    no_program_left(&hub.data_dir(), SOON).await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    assert_eq!(says(&client, COUNT).await?, "new 1");
    assert!(hub.stop().await?.success());
    no_program_left(&hub.data_dir(), Duration::ZERO).await
}
