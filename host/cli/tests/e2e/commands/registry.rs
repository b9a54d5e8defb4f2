//! Tests of an agent whose program is missing: the error is reported, and the agent recovers once
//! the program exists.

use crate::stage::{eventually_async, hear, listen, send, write_program};
use a2a_hub_tests::{Client, TestHub};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// The error names the installation command, and the next health check finds an installed program.
#[tokio::test]
async fn agent_recovers_when_program_appears() -> Result<()> {
    let bin = tempfile::tempdir()?;
    let config = "[health]\ninterval_ms = 200\n[breaker]\nfailures = 2";
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let hub = TestHub::builder().config(config).env("PATH", path).start().await?;
    let client = Client::unix(&hub);
    let mut events = listen(&client).await?;
    let brief = |status: &Value| {
        let all = status["agents"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|agent| agent["id"] == "claude-code").unwrap_or_default()
    };
    if brief(&client.call("hub/status", json!({})).await?)["breaker"]["state"] != "open" {
        hear(&mut events, "agent-breaker", "claude-code").await?;
    }
    let refused = send(&client, "claude-code", "hello").await.expect_err("it is not installed");
    let why = refused.root_cause().to_string();
    assert!(why.contains("-32004") && why.contains("fix: npm install -g"), "{why}");

    let claude = bin.path().join("claude");
    write_program(&claude, "#!/bin/sh\necho '9.9.9 (Claude Code)'\n")?;
    let better = hear(&mut events, "agent-health", "claude-code").await?;
    assert_ne!(better["health"]["status"], "unhealthy", "{better}");
    let closed = hear(&mut events, "agent-breaker", "claude-code").await?;
    assert_eq!(closed["breaker"], json!({ "state": "closed" }));
    Ok(())
}

/// The error comes before a task is created, with the fix; afterwards, the next message is
/// accepted.
#[tokio::test]
async fn unhealthy_agent_refuses_before_task() -> Result<()> {
    let bin = tempfile::tempdir()?;
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let config = "[breaker]\nfailures = 1000";
    let hub = TestHub::builder().config(config).env("PATH", path).start().await?;
    let client = Client::unix(&hub);
    let health = client.call("hub/agents/health", json!({ "agentId": "claude-code" })).await?;
    assert_eq!(health["status"], "unhealthy", "{health}");
    let refused = send(&client, "claude-code", "hello").await.expect_err("it is not installed");
    let why = refused.root_cause().to_string();
    assert!(why.contains("-32004") && why.contains("fix: npm install -g"), "{why}");
    assert_eq!(client.call("hub/tasks/list", json!({})).await?, json!([]), "there is no task");

    let claude = bin.path().join("claude");
    write_program(&claude, "#!/bin/sh\necho '9.9.9 (Claude Code)'\n")?;
    eventually_async(Duration::from_secs(20), async || {
        send(&client, "claude-code", "hello").await.is_ok()
    })
    .await?;
    assert_ne!(client.call("hub/tasks/list", json!({})).await?, json!([]));
    Ok(())
}
