//! Agent with one run permit, and two slots in its queue.

use crate::{
    Client, Updates,
    stage::{GRANT, stream, until},
};
use anyhow::Result;

/// Configuration of a hub whose agent runs one task at a time, and queues two.
pub fn narrow(more: &str) -> String {
    let narrow = format!("max_running = 1\nmax_queued = 2\n{more}");
    GRANT.replace("max_running = 100", &narrow)
}

/// Starts a task that works until it is cancelled.
pub async fn occupy(client: &Client) -> Result<(String, Updates)> {
    let (id, mut updates) = stream(client, "guest", "tick 1000 100").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    Ok((id, updates))
}
