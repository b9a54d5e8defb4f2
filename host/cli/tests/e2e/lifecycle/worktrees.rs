//! Tests of `kill -9` of the hub while it sets up a worktree.

use crate::stage::{GRANT, eventually_async, get, no_program_left, said, state};
use a2a_hub_tests::{Client, TestHub, make_repository, message_to, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// Time in which a hub removes what is left.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn killed_setup_leaves_no_worktree_and_process() -> Result<()> {
    let setup = "setup = [['sh', '-c', 'setsid sleep 98764 & echo half > made; sleep 98764']]";
    let config = format!("{GRANT}\n[worktrees]\n{setup}");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let repository = hub.workspace().join("repository");
    make_repository(&repository)?;
    let mut asks = message_to("guest", "sh echo ran");
    asks["message"]["metadata"]["workingDirectory"] = json!(repository);
    asks["message"]["metadata"]["worktree"] = json!(true);
    asks["configuration"] = json!({ "blocking": false });
    let task = Client::http(&hub).call("message/send", asks).await?;
    let tree = task["metadata"]["worktree"]["path"].as_str().context("no worktree")?;
    let tree = Path::new(tree);
    eventually_async(SOON, async || tree.join("made").exists()).await?;
    hub.kill9().await?;
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await?;
    ensure!(tree.exists(), "nobody has removed it");

    hub.restart().await?;
    let client = Client::http(&hub);
    eventually_async(SOON, async || !tree.exists()).await?;
    assert_eq!(client.call("hub/worktrees/list", json!({})).await?, json!([]));
    let over: Value = get(&client, task["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&over), "failed", "{over}");
    assert_eq!(over["metadata"]["reason"], "hub_restarted", "{}", said(&over));
    Ok(())
}
