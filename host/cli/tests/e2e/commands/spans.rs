//! Tests of the command line's report about an OTLP receiver that is down.

use crate::{
    command_line::run,
    stage::{GRANT, eventually_async, send, state},
};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::Result;
use serde_json::json;
use std::time::Duration;

/// Timeout that exceeds the time for a batch and its retries.
const SOON: Duration = Duration::from_secs(40);

#[tokio::test]
async fn doctor_reports_unreachable_otlp_receiver() -> Result<()> {
    let config = format!("[telemetry.otlp]\nendpoint = 'http://127.0.0.1:1'\n{GRANT}");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    assert_eq!(state(&send(&client, "guest", "flood 1").await?), "completed");
    eventually_async(SOON, async || {
        let status = client.call("hub/status", json!({})).await.unwrap_or_default();
        status["warnings"].to_string().contains("spans of tasks cannot be sent")
    })
    .await?;
    let doctor = run(&hub, &["doctor"]).await?;
    assert!(doctor.stdout.contains("telemetry.otlp.endpoint"), "{}", doctor.stdout);
    Ok(())
}
