//! The official ACP SDK, as an editor that starts `a2a-hub acp`: its driver is in `tests/sdks`, and every step must pass.

use crate::{
    drivers::{drive, script, sdk},
    stage::{GRANT, eventually_async},
};
use a2a_hub_tests::{Client, TestHub, hub_binary, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

/// What the driver does.
const STEPS: &[&str] = &[
    "initialize",
    "new_session",
    "prompted",
    "blocks",
    "permission",
    "question",
    "cancel",
    "load",
    "errors",
];

async fn hub() -> Result<TestHub> {
    let config = format!("default_agent = 'guest'\n{GRANT}");
    TestHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

#[expect(clippy::disallowed_methods, reason = "an editor starts it")]
async fn javascript(agent: &[&str]) -> Result<()> {
    let hub = hub().await?;
    let mut node = Command::new("node");
    node.arg(script("acp_js.mjs")).arg(format!("http://{}/", hub.http())).arg("1");
    node.arg(sdk("acp-js")?).arg(hub_binary()?).arg("--socket").arg(hub.socket());
    node.arg("acp").args(agent);
    drive(node, &hub, STEPS).await
}

#[tokio::test]
async fn javascript_with_an_agent() -> Result<()> {
    javascript(&["guest"]).await
}

#[tokio::test]
async fn javascript_with_the_default_agent() -> Result<()> {
    javascript(&[]).await
}

/// An editor that is killed in the middle of a turn leaves no task at work.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "an editor starts it")]
async fn an_editor_that_goes_away_takes_its_turn_along() -> Result<()> {
    let hub = hub().await?;
    let mut acp = Command::new(hub_binary()?);
    acp.arg("--socket").arg(hub.socket()).args(["acp", "guest"]);
    let mut acp = acp.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut say = acp.stdin.take().context("no input")?;
    let mut told = BufReader::new(acp.stdout.take().context("no output")?).lines();
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new",
        "params": { "cwd": hub.workspace(), "mcpServers": [] } });
    say.write_all(format!("{begin}\n").as_bytes()).await?;
    let begun: Value = serde_json::from_str(&told.next_line().await?.context("it ended")?)?;
    let prompt = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {
        "sessionId": begun["result"]["sessionId"],
        "prompt": [{ "type": "text", "text": "tick 300 100" }] } });
    say.write_all(format!("{prompt}\n").as_bytes()).await?;
    told.next_line().await?.context("it ended")?;
    acp.kill().await?;
    let client = Client::http(&hub);
    eventually_async(Duration::from_secs(20), async || {
        let tasks = client.call("hub/tasks/list", json!({ "limit": 1 })).await;
        tasks.is_ok_and(|tasks| tasks[0]["status"]["state"] == "canceled")
    })
    .await
}
