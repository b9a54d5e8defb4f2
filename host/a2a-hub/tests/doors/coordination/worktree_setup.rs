//! Preparation and retention of worktrees: only the operator's configuration decides about them.

use super::worktrees::{path_of, repository, script};
use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, eventually_async, get, said, state},
};
use a2a_hub_tests::{Client, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Time in which a task gets to its next state.
const SOON: Duration = Duration::from_secs(30);

async fn hub_with(worktrees: &str) -> Result<InProcessHub> {
    let config = format!("{GRANT}\n[worktrees]\n{worktrees}");
    InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

async fn worktrees(client: &Client) -> Result<Vec<Value>> {
    let listed = client.call("hub/worktrees/list", json!({})).await?;
    listed.as_array().cloned().context("no list")
}

#[tokio::test]
async fn agent_begins_in_prepared_worktree() -> Result<()> {
    let prepared = "copy = ['.env']\nsetup = [['sh', '-c', 'echo $A2A_HUB_PORT_BASE | tee made > other']]\nports = 4";
    let hub = hub_with(prepared).await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    fs::write(repository.join(".env"), "KEY=1\n")?;
    fs::write(repository.join(".git/info/exclude"), "other\n")?;
    let look = "cat .env made; echo $A2A_HUB_PORT_BASE";
    let task = client.call("message/send", script(&repository, &json!(true), look)).await?;
    assert_eq!((state(&task), said(&task)), ("completed", "exit 0"), "{task}");
    let lines: Vec<_> = artifact(&task).lines().map(str::to_owned).collect();
    ensure!(lines.len() == 3 && lines[0] == "KEY=1", "{lines:?}");
    ensure!(lines[1] == lines[2] && lines[1].parse::<u16>()? >= 20_000, "{lines:?}");
    let diff = client.call("hub/tasks/diff", json!({ "taskId": task["id"] })).await?;
    assert_eq!(diff["files"], 1, "`made` alone: {diff}");

    // The conversation goes on without another setup.
    let mut next = script(&path_of(&task)?, &Value::Null, "echo x > made");
    next["message"]["contextId"] = task["contextId"].clone();
    let next = client.call("message/send", next).await?;
    assert_eq!(state(&next), "completed", "{next}");
    ensure!(!next.to_string().contains("Setting up"), "{next}");
    Ok(())
}

#[tokio::test]
async fn repository_cannot_choose_its_setup() -> Result<()> {
    let hub = hub_with("").await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    fs::create_dir(repository.join(".a2a-hub"))?;
    let own = "copy = ['.env']\nsetup = [['sh', '-c', 'touch made']]\n[worktrees]\nsetup = [['sh', '-c', 'touch made']]";
    fs::write(repository.join(".a2a-hub/worktree.toml"), own)?;
    fs::write(repository.join(".env"), "KEY=1\n")?;
    let mut asks = script(&repository, &json!(true), "ls -a");
    asks["message"]["metadata"]["worktrees"] = json!({ "setup": [["touch", "made"]] });
    let task = client.call("message/send", asks).await?;
    assert_eq!(state(&task), "completed", "{task}");
    ensure!(!artifact(&task).contains("made") && !artifact(&task).contains(".env"), "{task}");
    let wrong = json!({ "base": "HEAD", "setup": [["touch", "made"]] });
    let refused = client.call("message/send", script(&repository, &wrong, "ls -a")).await;
    ensure!(refused.is_err(), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn trusted_file_of_repository_counts() -> Result<()> {
    let hub = hub_with("").await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    fs::create_dir(repository.join(".a2a-hub"))?;
    let text = "setup = [['sh', '-c', 'touch made']]\nports = 2\n";
    fs::write(repository.join(".a2a-hub/worktree.toml"), text)?;
    a2a_hub_tests::git(&repository, &["add", "-A"])?;
    a2a_hub_tests::git(&repository, &["commit", "-q", "-m", "setup"])?;
    let begin = async || {
        let asks = script(&repository, &json!(true), "ls; echo $A2A_HUB_PORT_BASE");
        let events = client.stream("message/stream", asks).await?.rest().await?;
        anyhow::Ok(json!(events).to_string())
    };
    let untrusted = begin().await?;
    ensure!(untrusted.contains("a2a-hub worktrees trust`"), "{untrusted}");
    ensure!(!untrusted.contains("made") && !untrusted.contains("Setting up"), "{untrusted}");
    let git_dir = repository.join(".git").canonicalize()?;
    let trusted = a2a_hub_config::TrustedWorktrees::new(&hub.data_dir());
    trusted.trust(&git_dir, text)?;
    let prepared = begin().await?;
    ensure!(prepared.contains("Setting up") && prepared.contains("made"), "{prepared}");
    ensure!(!prepared.contains("worktrees trust"), "{prepared}");
    trusted.revoke(&git_dir)?;
    ensure!(begin().await?.contains("a2a-hub worktrees trust`"));
    Ok(())
}

#[tokio::test]
async fn failed_setup_fails_task_without_agent() -> Result<()> {
    let hub = hub_with("setup = [['sh', '-c', 'echo the reason; exit 3']]").await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let task = client.call("message/send", script(&repository, &json!(true), "echo ran")).await?;
    assert_eq!(state(&task), "failed", "{task}");
    assert_eq!(task["metadata"]["reason"], "worktree_setup", "{task}");
    let why = said(&task);
    ensure!(why.contains("exited with 3; its last lines:\nthe reason"), "{why}");
    ensure!(task["artifacts"].as_array().is_none_or(Vec::is_empty), "{task}");
    assert_eq!(worktrees(&client).await?, Vec::<Value>::new());
    ensure!(!path_of(&task)?.exists());
    Ok(())
}

#[tokio::test]
async fn cancelled_setup_removes_worktree() -> Result<()> {
    let hub = hub_with("setup = [['sleep', '98763']]").await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let mut asks = script(&repository, &json!(true), "echo ran");
    asks["configuration"] = json!({ "blocking": false });
    let task = client.call("message/send", asks).await?;
    let id = task["id"].as_str().context("no id")?;
    let is_set_up = async || {
        get(&client, id)
            .await
            .is_ok_and(|task| said(&task) == "Setting up the worktree: `sleep 98763`")
    };
    eventually_async(SOON, is_set_up).await?;
    let cancelled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled", "{cancelled}");
    assert_eq!(worktrees(&client).await?, Vec::<Value>::new());
    ensure!(!path_of(&task)?.exists());
    Ok(())
}

#[tokio::test]
async fn large_worktrees_are_removed_at_start() -> Result<()> {
    let mut hub = hub_with("keep_mb = 8").await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let make = |text: &str| script(&repository, &json!(true), text);
    let large = "head -c 6000000 /dev/zero > large; echo x > a";
    let first = client.call("message/send", make(large)).await?;
    let second = client.call("message/send", make(large)).await?;
    assert_eq!(worktrees(&client).await?.len(), 2);
    hub.restart().await?;
    let client = Client::http(&hub);
    let only_second_is_left = async || {
        worktrees(&client).await.is_ok_and(|all| all.len() == 1 && all[0]["taskId"] == second["id"])
    };
    eventually_async(SOON, only_second_is_left).await?;
    let kept = format!("refs/a2a-hub/{}/result:a", first["id"].as_str().context("no id")?);
    assert_eq!(a2a_hub_tests::git(&repository, &["show", &kept])?, "x");
    Ok(())
}

#[tokio::test]
async fn resting_worktree_is_removed_at_start() -> Result<()> {
    let mut hub = hub_with("keep = '0s'").await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let make = |text: &str| script(&repository, &json!(true), text);
    let rests = client.call("message/send", make("echo 1 > one")).await?;
    let goes_on = client.call("message/send", make("echo 2 > two")).await?;
    // A task of the conversation waits for its client, and may work there.
    let mut asks = a2a_hub_tests::message_to("guest", "ask");
    asks["message"]["contextId"] = goes_on["contextId"].clone();
    let asks = client.call("message/send", asks).await?;
    assert_eq!(state(&asks), "input-required", "{asks}");
    for one in worktrees(&client).await? {
        assert_eq!(one["keptUntil"].is_null(), one["taskId"] == goes_on["id"], "{one}");
    }
    let pruned = client.call("hub/worktrees/prune", json!({ "olderThanMs": 0 })).await;
    assert_eq!(pruned?[0]["taskId"], rests["id"], "that of the conversation stays");
    let again = client.call("message/send", make("echo 3 > three")).await?;

    hub.restart().await?;
    let client = Client::http(&hub);
    let only_one_is_left = async || {
        worktrees(&client)
            .await
            .is_ok_and(|all| all.len() == 1 && all[0]["taskId"] == goes_on["id"])
    };
    eventually_async(SOON, only_one_is_left).await?;
    let kept = format!("refs/a2a-hub/{}/result:three", again["id"].as_str().context("no id")?);
    assert_eq!(a2a_hub_tests::git(&repository, &["show", &kept])?, "3");
    Ok(())
}
