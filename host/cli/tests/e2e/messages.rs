//! What comes of a message with the programs of its agent.

use crate::stage::{GRANT, eventually, hub_with_guest, said, send, state, stream, until};
use a2a_hub_tests::{Client, TestHub, message_to, processes_of_task, test_guests};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn cancel_ends_the_task_and_its_programs() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let (id, mut updates) = stream(&client, "guest", "sh setsid sleep 600 & sleep 600").await?;
    // The minder, the shell and two that sleep.
    eventually(Duration::from_secs(30), || processes_of_task(&id).len() >= 4).await?;

    let cancelled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled");
    assert_eq!(processes_of_task(&id), [0_u32; 0], "no program outlives its task");
    until(&mut updates, |event| event["status"]["state"] == "canceled").await?;
    let again = client.call("tasks/cancel", json!({ "id": id })).await.expect_err("it is over");
    assert_eq!(again.code(), Some(-32002));
    Ok(())
}

#[tokio::test]
async fn a_program_works_only_where_it_may() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let at = |directory: &str| {
        let mut message = message_to("guest", "sh pwd");
        message["message"]["metadata"]["workingDirectory"] = json!(directory);
        client.call("message/send", message)
    };
    let inside = at(&hub.workspace().display().to_string()).await?;
    assert_eq!(said(&inside), "exit 0");
    for outside in ["/", "/etc", "relative", "/no/such/directory"] {
        let refused = at(outside).await?;
        assert!(said(&refused).starts_with("denied: work in"), "{outside}: {}", said(&refused));
    }
    let dots = format!("{}/..", hub.workspace().display());
    assert!(said(&at(&dots).await?).contains("outside the granted workspaces"));
    Ok(())
}

#[tokio::test]
async fn a_program_gets_a_clean_environment() -> Result<()> {
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
