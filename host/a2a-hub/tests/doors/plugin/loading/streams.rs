//! Flows whose steps are read while they are written.

use super::flows::put;
use crate::{
    hub::InProcessHub,
    stage::{eventually_async, get, said, state},
};
use a2a_hub_tests::{Client, delegation::tree, durable_guest, message_to};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// The agent does what each line of its message says, and answers with what it has read.
const FLOW: &str = r#"
description = "Writes, and reviews meanwhile"
[[step]]
id = "write"
agent = "writer"
prompt = """
piece Roses
sleep 4000
piece  are red
sleep 4000"""
stream = true
[[step]]
id = "review"
needs = ["write"]
agent = "reviewer"
prompt = """
piece I have begun
read 60000
read 60000
{{ steps.write.text | data }}"""
"#;

async fn hub(flow: &str) -> Result<InProcessHub> {
    let durable = durable_guest()?;
    // Flows call only plug-ins to which the operator has granted something.
    let hub = InProcessHub::builder()
        .config("agents.writer.grant.memory = true\nagents.reviewer.grant.memory = true");
    let hub = hub.plugin("writer", &durable).plugin("reviewer", &durable).start().await?;
    put(&hub, "streams", flow)?;
    hub.joined("streams").await?;
    Ok(hub)
}

async fn begin(client: &Client) -> Result<Value> {
    let mut message = message_to("streams", "");
    message["configuration"] = json!({ "blocking": false });
    Ok(client.call("message/send", message).await?["id"].clone())
}

/// The flow's only task of this agent, if it has begun.
async fn task_of(client: &Client, root: &Value, agent: &str) -> Result<Option<Value>> {
    let all = tree(client, root).await?;
    match all.iter().find(|task| task["agentId"] == agent) {
        Some(task) => Ok(Some(get(client, task["id"].as_str().context("no id")?).await?)),
        None => Ok(None),
    }
}

async fn ended(client: &Client, root: &Value) -> Result<Value> {
    let id = root.as_str().context("no id")?;
    let is_over = async || {
        get(client, id).await.is_ok_and(|task| ["completed", "failed"].contains(&state(&task)))
    };
    eventually_async(PATIENCE, is_over).await?;
    get(client, id).await
}

/// Waits until the reviewer has written; returns the writer's state at that time.
async fn first_words(client: &Client, root: &Value) -> Result<String> {
    let has_words = async || {
        let review = task_of(client, root, "reviewer").await;
        matches!(review, Ok(Some(review)) if review["artifacts"].to_string().contains("I have begun"))
    };
    eventually_async(PATIENCE, has_words).await?;
    let writer = task_of(client, root, "writer").await?.context("no writer")?;
    Ok(state(&writer).to_owned())
}

fn count(task: &Value, text: &str) -> usize {
    let history = task["history"].as_array().cloned().unwrap_or_default();
    history.iter().filter(|message| message.to_string().contains(text)).count()
}

#[tokio::test]
async fn reader_begins_before_writer_ends() -> Result<()> {
    let hub = hub(FLOW).await?;
    let client = Client::http(&hub);
    let root = begin(&client).await?;
    assert_eq!(first_words(&client, &root).await?, "working");
    let task = ended(&client, &root).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let review = task_of(&client, &root, "reviewer").await?.context("no reviewer")?;
    // It is called with the first words, and reads the others.
    assert!(
        said(&review).contains("has written more") && said(&review).contains("are red"),
        "{review}"
    );
    assert!(said(&review).contains("This is the last message"), "{review}");
    assert_eq!(count(&review, "is still at work"), 1);
    assert_eq!(tree(&client, &root).await?.len(), 3);
    Ok(())
}

/// The hub restarts while the reviewer waits for more.
#[tokio::test]
async fn restart_hands_each_piece_over_once() -> Result<()> {
    let mut hub = hub(FLOW).await?;
    let root = begin(&Client::http(&hub)).await?;
    first_words(&Client::http(&hub), &root).await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let has_more = async || {
        let review = task_of(&client, &root, "reviewer").await;
        matches!(review, Ok(Some(review)) if count(&review, "has written more") == 1)
    };
    eventually_async(PATIENCE, has_more).await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let task = ended(&client, &root).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let review = task_of(&client, &root, "reviewer").await?.context("no reviewer")?;
    assert_eq!(
        ["is still at work", "has written more", "the last message"].map(|it| count(&review, it)),
        [1, 1, 1],
        "{review}"
    );
    assert!(
        said(&review).contains("are red") && said(&review).contains("last message"),
        "{review}"
    );
    assert_eq!(tree(&client, &root).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn failed_writer_ends_its_reader() -> Result<()> {
    let hub = hub(&FLOW.replace("sleep 4000\"\"\"", "fail no ink left\"\"\"")).await?;
    let client = Client::http(&hub);
    let root = begin(&client).await?;
    let task = ended(&client, &root).await?;
    assert_eq!(state(&task), "failed", "{task}");
    assert!(
        said(&task).contains("write: writer: ") && said(&task).contains("no ink left"),
        "{task}"
    );
    let review = task_of(&client, &root, "reviewer").await?.context("no reviewer")?;
    assert_eq!(state(&review), "canceled");
    assert_eq!(count(&review, "has failed (agent_error)"), 1, "{review}");
    Ok(())
}

/// An agent that reads no messages ends before the writer, and gets the whole text.
#[tokio::test]
async fn agent_without_reading_gets_whole_text() -> Result<()> {
    let hub = hub(&FLOW.replace("agent = \"reviewer\"", "agent = \"echo\"")).await?;
    let client = Client::http(&hub);
    let root = begin(&client).await?;
    let task = ended(&client, &root).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert!(
        said(&task).contains("| Roses are red\n") && !said(&task).contains("at work"),
        "{task}"
    );
    let echoes = tree(&client, &root).await?;
    assert_eq!(echoes.iter().filter(|task| task["agentId"] == "echo").count(), 2);
    Ok(())
}
