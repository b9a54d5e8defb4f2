//! Tests of messages whose agent runs a program.

use crate::stage::{GRANT, send};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::{Context as _, Result};

#[tokio::test]
async fn program_gets_clean_environment() -> Result<()> {
    let hub = TestHub::builder()
        .config(GRANT)
        .plugin("guest", test_guests()?)
        .env("SECRET_TOKEN", "sesame")
        .start()
        .await?;
    let task = send(&Client::http(&hub), "guest", "sh env").await?;
    let environment = task["artifacts"][0]["parts"][0]["text"].as_str().context("no output")?;
    assert!(environment.contains("LANG=C.UTF-8"), "{environment}");
    assert!(!environment.contains("sesame"), "{environment}");
    Ok(())
}
