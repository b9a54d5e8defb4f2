//! Support for tests of context memory.

use crate::{Client, stage::GRANT};
use anyhow::Result;
use serde_json::{Value, json};

/// Configuration of two agents of one component; `guest` may call the other and any agent.
pub fn config() -> String {
    let guest = GRANT.replace("    memory = true", "    memory = true\n    delegate = ['*']");
    let guest = guest.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    format!("{guest}\n[agents.other.grant]\nmemory = true\n")
}

/// Latest child task of the guest.
pub async fn child_of(client: &Client, task: &Value) -> Result<Value> {
    let its = json!({ "workflow": task["id"], "limit": 2 });
    let listed = client.call("hub/tasks/list", its).await?;
    Ok(client.call("tasks/get", json!({ "id": listed[0]["id"] })).await?)
}
