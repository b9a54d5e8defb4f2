//! Support for agents that call each other.

use crate::{Client, stage::GRANT};
use anyhow::Result;
use serde_json::{Value, json};

/// Configuration of test guests that may call these agents.
pub fn granted(agents: &str) -> String {
    GRANT.replace("    memory = true", &format!("    memory = true\n    delegate = [{agents}]"))
}

/// Tasks of a workflow including its root, oldest first.
pub async fn tree(client: &Client, root: &Value) -> Result<Vec<Value>> {
    let listed = client.call("hub/tasks/list", json!({ "workflow": root, "limit": 100 })).await?;
    let mut tasks = listed.as_array().cloned().unwrap_or_default();
    tasks.reverse();
    Ok(tasks)
}
