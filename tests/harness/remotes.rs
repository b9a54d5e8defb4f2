//! Agents of another hub.

use crate::{
    Client, Endpoints, Updates,
    stage::{stream, until},
};
use anyhow::Result;
use serde_json::{Value, json};

/// The tasks of the hub's guest, the newest first.
pub async fn tasks(hub: &Endpoints) -> Result<Vec<Value>> {
    let tasks = Client::http(hub).call("hub/tasks/list", json!({})).await?;
    Ok(tasks.as_array().cloned().unwrap_or_default())
}

/// A task of the agent elsewhere that is at work, and would be for a hundred seconds; with who listens to it.
pub async fn long_task(here: &Endpoints) -> Result<(String, Updates)> {
    let (id, mut updates) = stream(&Client::http(here), "far", "tick 1000 100").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    Ok((id, updates))
}

/// How the agent `far` is.
pub async fn health(client: &Client) -> Result<Value> {
    Ok(client.call("hub/agents/health", json!({ "agentId": "far" })).await?)
}
