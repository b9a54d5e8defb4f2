//! The hub's own server of the Model Context Protocol, as a vendor's program finds it where its agent may call others.

use super::{
    KEY,
    vendors::{CLAUDE, GEMINI, Vendor},
};
use crate::stage::state;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn claude_calls_echo_by_its_tool() -> Result<()> {
    the_model_calls_echo(&CLAUDE, "mcp__a2a-hub__echo").await
}

/// In a directory that its user trusts: in any other, the program starts no server.
#[tokio::test]
async fn gemini_calls_echo_by_its_tool() -> Result<()> {
    the_model_calls_echo(&GEMINI, "mcp_a2a-hub_echo").await
}

/// The model calls the agent `echo` by a tool of this name, and receives the answer.
async fn the_model_calls_echo(vendor: &Vendor, tool: &str) -> Result<()> {
    let (agent, program) = (vendor.agent, vendor.program);
    let settings = format!(
        "{}\n[agents.{agent}.grant]\nmemory = true\nfiles = true\ndelegate = ['echo']\n\
         [agents.{agent}.grant.process.{program}]",
        vendor.trusts.0
    );
    let stage = vendor.stage_with(Some(KEY), &settings).await?;
    let arguments = json!({ "message": "across the hub", "wait_seconds": 300 });
    let mut task = stage.send(&format!("[[tool:raw:{tool}:{arguments}]]")).await?;
    if state(&task) == "input-required" {
        task = stage.answer(&task, "yes").await?;
    }
    assert_eq!(state(&task), "completed", "{task}");
    let tree = json!({ "workflow": task["id"], "limit": 100 });
    let tree = stage.client().call("hub/tasks/list", tree).await?;
    let children = tree.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut children = children.iter().filter(|child| child["agentId"] == "echo");
    let child = children.next().unwrap_or_else(|| panic!("echo was not called: {task}"));
    let answer = format!("task `{}` is completed", child["id"].as_str().unwrap_or_default());
    assert!(stage.asked_of_the_model().contains(&answer), "{answer}: {task}");
    Ok(())
}
