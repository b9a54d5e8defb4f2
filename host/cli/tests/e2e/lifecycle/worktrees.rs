//! Tests of `kill -9` of the hub while it sets up a worktree.

use crate::stage::{GRANT, eventually_async, get, no_program_left, said, state};
use a2a_hub_tests::{Client, TestHub, message_to, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command, time::Duration};

/// Time in which a hub removes what is left.
const SOON: Duration = Duration::from_secs(30);

#[expect(clippy::disallowed_methods, reason = "the user runs git")]
fn git(directory: &Path, args: &[&str]) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(directory).args(["-c", "user.name=Ann", "-c", "user.email=ann@a.b"]);
    let done = git.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").output()?;
    ensure!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

#[tokio::test]
async fn killed_setup_leaves_no_worktree_and_process() -> Result<()> {
    let setup = "setup = [['sh', '-c', 'setsid sleep 98764 & echo half > made; sleep 98764']]";
    let config = format!("{GRANT}\n[worktrees]\n{setup}");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let repository = hub.workspace().join("repository");
    fs::create_dir(&repository)?;
    git(&repository, &["init", "-q", "-b", "main"])?;
    fs::write(repository.join("a"), "a\n")?;
    git(&repository, &["add", "-A"])?;
    git(&repository, &["commit", "-q", "-m", "start"])?;
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
