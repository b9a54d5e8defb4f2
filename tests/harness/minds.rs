//! What agents have in mind.

use crate::{Client, stage::GRANT};
use anyhow::Result;
use serde_json::{Value, json};

/// Two agents of one component, of which `guest` may call the other, and others.
pub fn config() -> String {
    let guest = GRANT.replace("    memory = true", "    memory = true\n    delegate = ['*']");
    let guest = guest.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    format!("{guest}\n[agents.other.grant]\nmemory = true\n")
}

/// The task that the guest gave last.
pub async fn child_of(client: &Client, task: &Value) -> Result<Value> {
    let its = json!({ "workflow": task["id"], "limit": 2 });
    let listed = client.call("hub/tasks/list", its).await?;
    Ok(client.call("tasks/get", json!({ "id": listed[0]["id"] })).await?)
}
