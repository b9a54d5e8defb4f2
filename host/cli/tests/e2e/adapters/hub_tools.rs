//! Tests of the hub's MCP server in a vendor's program whose agent may call others.

use super::{
    KEY,
    vendors::{CLAUDE, GEMINI, Vendor},
};
use crate::stage::state;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn claude_calls_echo_through_mcp_tool() -> Result<()> {
    the_model_calls_echo(&CLAUDE, "mcp__a2a-hub__echo").await
}

/// The directory is trusted by its user: in any other, the program starts no MCP server.
#[tokio::test]
async fn gemini_calls_echo_through_mcp_tool() -> Result<()> {
    the_model_calls_echo(&GEMINI, "mcp_a2a-hub_echo").await
}

/// Makes the model call the agent `echo` through this tool, and checks that the model receives the
/// answer.
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
