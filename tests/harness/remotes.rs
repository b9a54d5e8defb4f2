//! Support for agents of another hub.

use crate::{
    Client, Endpoints, Updates,
    stage::{stream, until},
};
use anyhow::Result;
use serde_json::{Value, json};

/// Tasks of the hub's guest, newest first.
pub async fn tasks(hub: &Endpoints) -> Result<Vec<Value>> {
    let tasks = Client::http(hub).call("hub/tasks/list", json!({})).await?;
    Ok(tasks.as_array().cloned().unwrap_or_default())
}

/// Starts a task of the remote agent that would work for a hundred seconds; returns its id and
/// updates.
pub async fn long_task(here: &Endpoints) -> Result<(String, Updates)> {
    let (id, mut updates) = stream(&Client::http(here), "far", "tick 1000 100").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    Ok((id, updates))
}

/// Health of the agent `far`.
pub async fn health(client: &Client) -> Result<Value> {
    Ok(client.call("hub/agents/health", json!({ "agentId": "far" })).await?)
}
