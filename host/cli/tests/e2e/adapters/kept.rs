//! Tests of programs that exist before their turn: reused from the previous one, or started ahead.

use super::{KEY, Stage, vendors::Vendor};
use crate::stage::{eventually, state};
use a2a_hub_tests::{message_to, processes_of_task, processes_with_marker};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, time::Duration};

/// First message of a conversation.
const PLUM: &str = "remember the word plum";

/// Time that an ended program has to disappear.
const SOON: Duration = Duration::from_secs(10);

/// Returns the processes that were started for that task.
fn started_for(task: &Value) -> BTreeSet<u32> {
    processes_of_task(task["id"].as_str().unwrap_or_default()).into_iter().collect()
}

fn is_minder(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("__mind"))
}

impl Stage {
    /// Sends the next message in the conversation of `first`, and expects an answer.
    async fn next(&self, first: &Value, text: &str, metadata: Value) -> Result<Value> {
        let mut message = message_to(self.vendor, text);
        message["message"]["contextId"] = first["contextId"].clone();
        for (name, value) in metadata.as_object().into_iter().flatten() {
            message["message"]["metadata"][name] = value.clone();
        }
        let task: Value = self.client().call("message/send", message).await?;
        assert_eq!(state(&task), "completed", "{task}");
        Ok(task)
    }

    async fn first(&self) -> Result<Value> {
        let first = self.send(PLUM).await?;
        assert_eq!(state(&first), "completed", "{first}");
        Ok(first)
    }

    /// Returns the processes of all programs of the hub.
    fn programs(&self) -> BTreeSet<u32> {
        processes_with_marker(&self.hub.data_dir()).into_iter().collect()
    }

    /// Returns the model's last request that contains these words.
    fn last_request(&self, words: &str) -> Result<String> {
        let all = self.model.requests().into_iter().rev().map(|seen| seen.body.to_string());
        { all }.find(|body| body.contains(words)).context("the model was not asked")
    }
}

pub(super) async fn next_turn_reuses_program(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let first = stage.first().await?;
    let kept = started_for(&first);
    assert!(!kept.is_empty(), "a program is kept");
    let used = |task: &Value| task["metadata"]["usage"]["input_tokens"].as_u64();
    let cost = |task: &Value| task["metadata"]["cost_usd"].as_f64();
    for turn in ["second", "third"] {
        let text = format!("the {turn} turn");
        let task = stage.next(&first, &text, Value::Null).await?;
        assert!(task["artifacts"].to_string().contains(&text), "{task}");
        assert_eq!(started_for(&task), BTreeSet::new(), "no program was started");
        assert!(started_for(&first).is_subset(&kept), "nor in the name of the first turn");
        let request = stage.last_request(&text)?;
        assert_eq!(request.matches(&format!("ECHO: {PLUM}")).count(), 1, "{request}");
        assert_eq!(request.matches(PLUM).count(), 2, "asked and answered once: {request}");
        let (before, now) = (used(&first).context("no usage")?, used(&task).context("no usage")?);
        assert!(now < before * 3 / 2, "what this turn used, not the sum: {before}, {now}");
        if let Some((before, now)) = cost(&first).zip(cost(&task)) {
            assert!(now < before * 1.5, "what this turn cost, not the sum: {before}, {now}");
        }
    }
    Ok(())
}

pub(super) async fn dead_idle_program_is_replaced(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let first = stage.first().await?;
    for signal in [Signal::KILL, Signal::STOP] {
        let kept: BTreeSet<_> = stage.programs();
        assert!(!kept.is_empty(), "a program is kept");
        // The minders of the programs are not killed.
        for pid in kept.iter().filter(|pid| !is_minder(**pid)) {
            let pid = Pid::from_raw(i32::try_from(*pid)?).context("no process")?;
            // A process may already have exited with another one.
            let _ = kill_process(pid, signal);
        }
        let task = stage.next(&first, "which word?", Value::Null).await?;
        assert!(!started_for(&task).is_empty(), "another program was started");
        assert!(!task.to_string().contains("beginning anew"), "nobody notices: {task}");
        assert!(stage.last_request("which word?")?.contains("plum"), "it knows what came before");
        eventually(SOON, || stage.programs().is_disjoint(&kept)).await?;
    }
    Ok(())
}

pub(super) async fn changed_settings_start_another_program(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let first = stage.first().await?;
    let elsewhere = stage.hub.workspace().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    let mut kept = started_for(&first);
    for other in [json!({ "permissions": "read-only" }), json!({ "workingDirectory": elsewhere })] {
        let task = stage.next(&first, "which word?", other.clone()).await?;
        let started = started_for(&task);
        assert!(!started.is_empty(), "another program was started for {other}");
        assert!(stage.last_request("which word?")?.contains("plum"), "it knows what came before");
        eventually(SOON, || stage.programs().is_disjoint(&kept)).await?;
        kept = started;
    }
    Ok(())
}

pub(super) async fn first_turn_uses_prestarted_program(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage_with(Some(KEY), "settings.warm = '1'").await?;
    let first = stage.first().await?;
    let (kept, ahead) = (started_for(&first), "there are two by now, and one is ahead");
    assert!(!kept.is_empty(), "{ahead}");
    let other = stage.send("another conversation").await?;
    assert_eq!(state(&other), "completed", "{other}");
    assert_ne!(first["contextId"], other["contextId"]);
    // The conversation uses the program that was started for the first task; the one started for
    // its own task is for the next.
    let task = stage.next(&other, "its second turn", Value::Null).await?;
    assert_eq!(started_for(&task), BTreeSet::new(), "it is kept as any is");
    let request = stage.last_request("its second turn")?;
    assert_eq!(request.matches("ECHO: another conversation").count(), 1, "{request}");
    let ours = stage.programs();
    assert!(kept.is_subset(&ours), "each answers its own conversation: {kept:?}, {ours:?}");
    Ok(())
}
