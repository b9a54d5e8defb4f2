//! Tests of MCP with the official SDKs and conformance suite as clients of the real hub: on
//! standard input and output through `a2a-hub mcp`, and over HTTP at `/mcp`. The drivers are in
//! `tests/sdks`, and every step must pass. One test checks that MCP grants no additional access.

use crate::{
    drivers::{drive, script, sdk},
    stage::{GRANT, artifact, bearer, send},
};
use a2a_hub_tests::{
    Client, TestHub, hub_binary,
    mcp::{initialize, speak, spoken},
    tenants::new_key,
    test_guests,
};
use anyhow::Result;
use serde_json::{Value, json};
use tokio::process::Command;

/// Steps of the Python driver, in each version of MCP.
const PYTHON: &[&str] = &[
    "initialize",
    "tools",
    "call",
    "conversation",
    "directory",
    "progress",
    "elicitation",
    "permission",
    "question",
    "long",
    "cancellation",
    "cancel_task",
    "list_agents",
    "resources",
    "errors",
    "list_changed",
];

/// Steps of the JavaScript driver.
const JAVASCRIPT: &[&str] = &[
    "initialize",
    "tools",
    "progress",
    "elicitation",
    "cancellation",
    "resources",
    "errors",
    "tasks",
    "list_changed",
];

async fn hub() -> Result<TestHub> {
    TestHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}

/// Arguments for a driver: the URL of the hub's MCP endpoint, or a command.
fn place(hub: &TestHub, is_http: bool) -> Result<Vec<String>> {
    if is_http {
        return Ok(vec![format!("http://{}/mcp", hub.http())]);
    }
    let binary = hub_binary()?.display().to_string();
    let socket = hub.socket().display().to_string();
    let workspace = hub.workspace().display().to_string();
    Ok([&binary, "--socket", &socket, "mcp", "--cwd", &workspace].map(str::to_owned).to_vec())
}

async fn python(mode: &str, is_http: bool) -> Result<()> {
    python_as(mode, is_http, None).await
}

/// Runs the Python driver; `person` sends a key.
#[expect(clippy::disallowed_methods, reason = "what an SDK does, it does in its own program")]
async fn python_as(mode: &str, is_http: bool, person: Option<&str>) -> Result<()> {
    let hub = hub().await?;
    let mut python = Command::new(sdk("mcp-py")?.join("bin/python"));
    python.arg("-B").arg(script("mcp_py.py")).arg(mode).arg(format!("http://{}/", hub.http()));
    python.args(place(&hub, is_http)?);
    if let Some(person) = person {
        python.env("A2A_KEY", new_key(&hub, person).await?).env("HUB_AUTHORIZATION", bearer(&hub)?);
    }
    drive(python, &hub, PYTHON).await
}

#[expect(clippy::disallowed_methods, reason = "what an SDK does, it does in its own program")]
async fn javascript(is_http: bool) -> Result<()> {
    let hub = hub().await?;
    let mut node = Command::new("node");
    node.arg(script("mcp_js.mjs")).arg(format!("http://{}/", hub.http())).arg("2025-11-25");
    node.arg(sdk("mcp-js")?).args(place(&hub, is_http)?);
    drive(node, &hub, JAVASCRIPT).await
}

#[tokio::test]
async fn python_on_stdio() -> Result<()> {
    python("legacy", false).await
}

#[tokio::test]
async fn python_over_http() -> Result<()> {
    python("legacy", true).await
}

#[tokio::test]
async fn python_with_key_over_http() -> Result<()> {
    python_as("legacy", true, Some("ada")).await
}

#[tokio::test]
async fn python_without_a_handshake_on_stdio() -> Result<()> {
    python("auto", false).await
}

#[tokio::test]
async fn python_without_a_handshake_over_http() -> Result<()> {
    python("auto", true).await
}

#[tokio::test]
async fn javascript_on_stdio() -> Result<()> {
    javascript(false).await
}

#[tokio::test]
async fn javascript_over_http() -> Result<()> {
    javascript(true).await
}

/// The official conformance suite, with an agent that has its fixtures. It fails for a scenario
/// that the baseline does not name, and for one of the baseline that passes.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "what an SDK does, it does in its own program")]
async fn conformance_suite_fails_only_as_expected() -> Result<()> {
    let hub = hub().await?;
    let made = send(&Client::http(&hub), "guest", "test_resources").await?;
    let suite = sdk("mcp-conformance")?;
    let mut node = Command::new(suite.join("node_modules/.bin/node"));
    node.arg(script("mcp_conformance.mjs")).arg(format!("http://{}/", hub.http()));
    node.arg(script("mcp_conformance.yml")).arg(suite);
    node.arg(made["id"].as_str().unwrap_or_default()).arg(bearer(&hub)?);
    drive(node, &hub, &["suite"]).await
}

/// A program that an agent started has the same permissions through MCP as through other
/// transports.
#[tokio::test]
async fn mcp_grants_program_no_extra_access() -> Result<()> {
    let config = GRANT
        .replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n")
        .replace("    memory = true", "    memory = true\n    delegate = ['echo']");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let listed = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    let call = |id: u64, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let other = send(&Client::http(&hub), "echo", "not for the guest").await?;
    let asked = [
        initialize(),
        listed,
        call(4, "echo", json!({ "message": "by its tool" })),
        call(5, "check_task", json!({ "task_id": other["id"] })),
    ];
    let asked: String = asked.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(hub.workspace().join("asked"), asked)?;
    let (binary, socket) =
        (hub_binary()?.display().to_string(), hub.socket().display().to_string());
    let script = format!("sh (cat asked; sleep 2) | {binary} --socket {socket} mcp");
    let told = send(&Client::http(&hub), "guest", &script).await?;
    let text = artifact(&told);
    assert!(text.contains("\"capabilities\":{\"tools\":{}}"), "tools and nothing else: {told}");
    assert!(text.contains("\"name\":\"echo\"") && !text.contains("\"name\":\"codex\""), "{text}");
    assert!(text.contains("by its tool") && !text.contains("not for the guest"), "{text}");
    let task = json!({ "name": "check_task", "arguments": { "task_id": told["id"] } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": task });
    let told = spoken(&hub, &[speak(&json!({ "protocol": "mcp" })), initialize(), call], 3).await?;
    assert_eq!(
        told[2]["result"]["_meta"]["a2a-hub/state"], "completed",
        "the operator may: {told:?}"
    );
    Ok(())
}
