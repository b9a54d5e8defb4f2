//! A used-up quota delays a session, and repeats no work of it.

use super::{KEY, vendors::CLAUDE};
use crate::stage::{eventually_async, get, no_program_left, state};
use a2a_hub_tests::message_to;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// The quota is used up after the first command, and the hub is killed during the wait: the prompt
/// is sent once, and the command runs once.
#[tokio::test]
async fn session_continues_after_quota_reset() -> Result<()> {
    let vendor = &CLAUDE;
    let settings = "permissions = 'full'\non_quota = 'wait'";
    let mut stage = vendor.stage_with(Some(KEY), settings).await?;
    let count = stage.hub.workspace().join("count.txt");
    let work = (vendor.run)(&format!("echo once >> {}", count.display()));
    let mut message = message_to(vendor.agent, &format!("count plums {work} [[usedup:25]]"));
    message["configuration"] = json!({ "blocking": false });
    let task: Value = stage.client().call("message/send", message).await?;
    let id = task["id"].as_str().context("no id")?.to_owned();
    let waits = async || {
        let task = get(&stage.client(), &id).await;
        task.is_ok_and(|task| task["metadata"]["waitsUntil"].is_string())
    };
    eventually_async(Duration::from_secs(60), waits).await?;
    let waiting = get(&stage.client(), &id).await?;
    assert_eq!(state(&waiting), "working", "{waiting}");
    assert_eq!(waiting["metadata"]["reason"], "rate_limited", "{waiting}");
    no_program_left(&stage.hub.data_dir(), Duration::from_secs(10)).await?;
    let before = stage.model.requests().len();

    stage.hub.kill9().await?;
    stage.hub.restart().await?;
    let again = get(&stage.client(), &id).await?;
    assert_eq!(again["metadata"]["waitsUntil"], waiting["metadata"]["waitsUntil"], "{again}");
    let over = async || get(&stage.client(), &id).await.is_ok_and(|it| state(&it) != "working");
    eventually_async(Duration::from_secs(100), over).await?;
    let task = get(&stage.client(), &id).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert_eq!(task["metadata"]["waitsUntil"], Value::Null, "{task}");
    assert_eq!(fs::read_to_string(&count)?, "once\n", "the work is not repeated");

    let after = stage.model.requests();
    let mut bodies = after[before..].iter().map(|seen| seen.body.to_string());
    let last = bodies.rfind(|body| body.contains("Continue where you stopped"));
    let last = last.context("the program was not told to continue")?;
    assert_eq!(last.matches("count plums").count(), 1, "one original prompt: {last}");
    assert_eq!(last.matches("Continue where you stopped").count(), 1, "{last}");
    Ok(())
}
