//! Tests of configuration reloads while the hub works.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, get, hub_with_guest, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, message_to};
use anyhow::{Result, ensure};
use serde_json::json;
use std::fs;

/// Workspaces and limits of a new configuration count for new tasks. A running task keeps those
/// that it started with.
#[tokio::test]
async fn reloaded_limits_apply_to_new_tasks() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let other = hub.home().join("other");
    fs::create_dir(&other)?;
    let there = async || {
        let mut message = message_to("guest", "sh pwd");
        message["message"]["metadata"]["workingDirectory"] = json!(other);
        Ok::<_, anyhow::Error>(client.call("message/send", message).await?)
    };
    assert!(said(&there().await?).starts_with("denied: work in"), "it is no workspace yet");
    let (id, mut updates) = stream(&client, "guest", "tick 30 50").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;

    let limits = GRANT.replace("events = 5000", "events = 10");
    let workspaces = format!("[agents.guest]\nworkspaces = [{:?}]", other.display().to_string());
    hub.configure(&limits.replacen("[agents.guest]", &workspaces, 1))?;
    let told = client.call("hub/reload", json!({})).await?;
    let changed = json!(["agents.guest.limits.events", "agents.guest.workspaces"]);
    assert_eq!((&told["changed"], &told["needsRestart"]), (&changed, &json!([])), "{told}");
    let done = there().await?;
    assert_eq!(artifact(&done).trim_end(), other.canonicalize()?.to_string_lossy(), "{done}");
    let mut before = message_to("guest", "sh pwd");
    before["message"]["metadata"]["workingDirectory"] = json!(hub.workspace());
    let denied = client.call("message/send", before).await?;
    assert!(said(&denied).starts_with("denied: work in"), "it is none any more: {denied}");
    let limited = send(&client, "guest", "flood 11").await?;
    assert_eq!(
        (state(&limited), &limited["metadata"]["reason"]),
        ("failed", &json!("limit_exceeded"))
    );
    updates.rest().await?;
    assert_eq!(state(&get(&client, &id).await?), "completed", "thirty events, as it was allowed");
    Ok(())
}

#[tokio::test]
async fn excessive_max_tasks_is_warned() -> Result<()> {
    let hub = InProcessHub::builder().config("max_tasks = 20000\n").start().await?;
    let client = Client::http(&hub);
    let status = client.call("hub/status", json!({})).await?;
    let told = status["warnings"].to_string();
    ensure!(told.contains("`max_tasks` is 20000, and at most"), "{status}");
    assert_eq!(state(&send(&client, "echo", "hello").await?), "completed");
    Ok(())
}
