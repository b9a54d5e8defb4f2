//! Tests of the plugins folder: a component in it becomes an agent, and an invalid one is rejected.

mod flow_trust;
mod flows;
mod streams;

use crate::{
    hub::InProcessHub,
    stage::{echo, said, send},
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Polls the hub's status until it matches.
async fn status_when(client: &Client, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    for _ in 0..500 {
        let status = client.call("hub/status", json!({})).await?;
        if wanted(&status) {
            return Ok(status);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("it does not come to that")
}

fn has(status: &Value, agent: &str) -> bool {
    status["agents"].as_array().is_some_and(|all| all.iter().any(|one| one["id"] == agent))
}

#[tokio::test]
async fn copied_component_is_another_agent() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::unix(&hub);
    let status = client.call("hub/status", json!({})).await?;
    for built_in in ["claude-code", "codex", "echo", "gemini", "git-historian", "vibe"] {
        assert!(has(&status, built_in), "{built_in}: {status}");
    }
    hub.plug("parrot", &echo()?)?;
    status_when(&client, |status| has(status, "parrot")).await?;
    assert_eq!(said(&send(&client, "parrot", "hello").await?), "hello");
    hub.unplug("parrot")?;
    status_when(&client, |status| !has(status, "parrot")).await?;
    Ok(())
}

#[tokio::test]
async fn invalid_plugin_is_rejected_and_replaces_nothing() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::unix(&hub);
    let folder = hub.data_dir().join("plugins");
    hub.plug("parrot", &echo()?)?;
    status_when(&client, |status| has(status, "parrot")).await?;

    fs::write(folder.join("noise.wasm"), "not WebAssembly")?;
    fs::write(folder.join("Bad_Name.wasm"), fs::read(echo()?)?)?;
    hub.plug("echo", &test_guests()?)?;
    let half = fs::read(echo()?)?;
    fs::write(folder.join("parrot.wasm"), &half[..half.len() / 2])?;
    let four =
        |status: &Value| status["rejectedPlugins"].as_array().is_some_and(|all| all.len() == 4);
    let status = status_when(&client, four).await?;
    let why = |file: &str| -> Result<String> {
        let all = status["rejectedPlugins"].as_array().context("none")?;
        let one = all.iter().find(|one| one["file"] == file).context(file.to_owned())?;
        Ok(one["error"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(why("noise.wasm")?, "it is not WebAssembly");
    assert!(why("Bad_Name.wasm")?.contains("cannot name an agent"));
    assert!(why("echo.wasm")?.contains("an agent called `echo` exists already, from built-in"));
    assert!(why("parrot.wasm")?.starts_with("it is not a valid component"));

    assert_eq!(said(&send(&client, "parrot", "still here").await?), "still here");
    assert_eq!(said(&send(&client, "echo", "me too").await?), "me too");
    hub.plug("parrot", &test_guests()?)?;
    status_when(&client, |status| {
        status["rejectedPlugins"].as_array().is_some_and(|all| all.len() == 3)
    })
    .await?;
    // The file is off the list while it is loaded; until the end of that, the old agent answers.
    while !said(&send(&client, "parrot", "fail").await?).contains("as told") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// A task ends on the version of its agent that it started with, even if the agent is replaced or
/// removed meanwhile.
#[tokio::test]
async fn replaced_plugin_keeps_running_tasks() -> Result<()> {
    let hub = InProcessHub::builder().plugin("parrot", test_guests()?).start().await?;
    let client = Client::unix(&hub);
    let (replaced, removed) =
        (send(&client, "parrot", "ask").await?, send(&client, "parrot", "ask").await?);
    let answer = async |task: &Value| {
        let mut answer = message_to("parrot", "the left one");
        answer["message"]["taskId"] = task["id"].clone();
        client.call("message/send", answer).await
    };
    hub.plug("parrot", &echo()?)?;
    let new = async || Ok::<_, anyhow::Error>(said(&send(&client, "parrot", "hi").await?) == "hi");
    while !new().await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(said(&answer(&replaced).await?), "the left one");
    hub.unplug("parrot")?;
    status_when(&client, |status| !has(status, "parrot")).await?;
    assert_eq!(said(&answer(&removed).await?), "the left one");
    Ok(())
}

#[tokio::test]
async fn plugin_has_no_grant_by_default() -> Result<()> {
    let hub = InProcessHub::builder().plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let process = send(&client, "guest", "sleep 0").await?;
    assert!(said(&process).contains("[agents.guest.grant.process.sleep]"), "{}", said(&process));
    let memory = send(&client, "guest", "remember k v").await?;
    assert!(said(&memory).starts_with("denied: remember values"), "{}", said(&memory));
    Ok(())
}

#[tokio::test]
async fn agent_memory_persists_within_limit() -> Result<()> {
    let mut hub = crate::stage::hub_with_guest().await?;
    let client = Client::http(&hub);
    assert_eq!(said(&send(&client, "guest", "remember colour blue").await?), "colour is 4 bytes");
    let full = send(&client, "guest", &format!("remember long {}", "x".repeat(5000))).await?;
    assert!(said(&full).starts_with("exhausted: remember more"), "{}", said(&full));
    hub.restart().await?;
    assert_eq!(said(&send(&Client::http(&hub), "guest", "recall colour").await?), "blue");
    Ok(())
}

/// An agent sees only the agents that its grant lists.
#[tokio::test]
async fn agent_lists_only_callable_agents() -> Result<()> {
    let config = "
        agents.one.grant.delegate = ['echo', 'two', 'one', 'nobody']
        agents.two.grant.delegate = ['*']
        agents.claude-code.enabled = false
        agents.codex.enabled = false
        agents.gemini.enabled = false
        agents.vibe.enabled = false";
    let builder = InProcessHub::builder().config(config).plugin("one", test_guests()?);
    let hub = builder.plugin("two", test_guests()?).plugin("three", test_guests()?).start().await?;
    let client = Client::http(&hub);
    assert_eq!(said(&send(&client, "one", "agents").await?), "echo two");
    // `three` was added to the folder, and no configuration names it.
    assert_eq!(said(&send(&client, "two", "agents").await?), "echo flow git-historian one");
    assert!(said(&send(&client, "three", "agents").await?).contains("[agents.three.grant]"));
    Ok(())
}

#[tokio::test]
async fn pinned_digest_mismatch_rejects_plugin() -> Result<()> {
    let pinned = format!("[agents.parrot]\nsha256 = \"{}\"", "0".repeat(64));
    let hub = InProcessHub::builder().config(pinned).plugin("parrot", echo()?).start().await?;
    let status = Client::unix(&hub).call("hub/status", json!({})).await?;
    assert!(!has(&status, "parrot"));
    let why = status["rejectedPlugins"][0]["error"].as_str().context("not told")?;
    assert!(why.contains("pins 0000"), "{why}");
    Ok(())
}
