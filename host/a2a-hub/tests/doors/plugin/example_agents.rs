//! Tests of the agents under `examples/agents/`, each in a real hub with an operator's
//! configuration.

use crate::{
    hub::InProcessHub,
    stage::{artifact, eventually_async, get, loopback, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, ModelServer, WebServer, example_agent, message_to};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{
    fs::{self, DirBuilder, Permissions},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    time::Duration,
};

/// Starts a hub with one of the agents, under the agent's own name.
async fn hub(agent: &str, config: impl Into<String>) -> Result<InProcessHub> {
    InProcessHub::builder().config(config).plugin(agent, example_agent(agent)?).start().await
}

#[tokio::test]
async fn reviewer_delegates_and_posts_summary() -> Result<()> {
    let server = WebServer::start().await?;
    let config = format!(
        "[agents.reviewer.settings]\nreviewer = 'echo'\npost_to = '{}'\n\
         [agents.reviewer.grant]\ndelegate = ['echo']\n{}",
        server.url("/hook/echo"),
        loopback("reviewer", server.port())
    );
    let hub = hub("reviewer", config).await?;
    let client = Client::http(&hub);
    let task = send(&client, "reviewer", "diff --git a/x.rs b/x.rs\n+let x = 1;").await?;
    assert_eq!(state(&task), "completed", "{task:#}");
    assert!(artifact(&task).contains("+let x = 1;"), "echo says all of it: {task:#}");
    let posted: Value = serde_json::from_slice(&server.asked()[0].body)?;
    assert!(posted["text"].as_str().is_some_and(|text| text.starts_with("Review the change")));
    assert_eq!(posted["taskId"], task["id"]);
    assert_eq!(task["metadata"]["progress"]["percent"], 90, "{task:#}");
    let children = client.call("hub/tasks/list", json!({ "workflow": task["id"] })).await?;
    assert_eq!(children.as_array().map(Vec::len), Some(2), "{children:#}");
    Ok(())
}

#[tokio::test]
async fn watcher_reports_workspace_change() -> Result<()> {
    let config = "[agents.folder-watcher.settings]\nevery = '1'\n[agents.folder-watcher.grant]\nworkspace = 'read'\n";
    let hub = hub("folder-watcher", config).await?;
    let client = Client::http(&hub);
    fs::write(hub.workspace().join("old.txt"), "old")?;
    let (task, mut updates) = stream(&client, "folder-watcher", "next").await?;
    until(&mut updates, |event| event.to_string().contains("watches 1 files")).await?;
    fs::create_dir(hub.workspace().join("src"))?;
    fs::write(hub.workspace().join("src/new.rs"), "new")?;
    fs::remove_file(hub.workspace().join("old.txt"))?;
    until(&mut updates, |event| event["final"] == true).await?;
    let task = get(&client, &task).await?;
    assert_eq!((state(&task), said(&task)), ("completed", "+ src/new.rs\n- old.txt"), "{task:#}");
    Ok(())
}

#[tokio::test]
async fn llm_agent_streams_without_seeing_key() -> Result<()> {
    let model = ModelServer::start()?;
    let port = model.url().rsplit(':').next().context("no port")?.parse()?;
    let config = format!(
        "[agents.chat.settings]\nurl = '{}/v1/chat/completions'\n{}\
         headers = {{ Authorization = 'Bearer secret:MODEL_KEY' }}\n",
        model.url(),
        loopback("chat", port)
    );
    let hub = hub("chat", config).await?;
    let secrets = hub.data_dir().join("secrets");
    DirBuilder::new().mode(0o700).create(&secrets)?;
    fs::write(secrets.join("MODEL_KEY"), "sk-example-123456")?;
    fs::set_permissions(secrets.join("MODEL_KEY"), Permissions::from_mode(0o600))?;
    let client = Client::http(&hub);
    let (task, mut updates) = stream(&client, "chat", "hello [[words:40]] [[slow:20]]").await?;
    let mut pieces = 0;
    while let Some(event) = updates.next().await {
        pieces += usize::from(event?["kind"] == "artifact-update");
    }
    assert!(pieces > 2, "it came in {pieces} pieces");
    let task = get(&client, &task).await?;
    assert_eq!(state(&task), "completed", "{task:#}");
    assert!(artifact(&task).ends_with("w39 w40"), "{task:#}");
    assert!(!task.to_string().contains("sk-example"), "{task:#}");
    // In the same conversation, the model receives the earlier messages.
    let mut again = message_to("chat", "and now?");
    again["message"]["contextId"] = task["contextId"].clone();
    client.call("message/send", again).await?;
    let heard = model.requests().pop().context("it asked nothing")?.body;
    assert_eq!(heard["messages"].as_array().map(Vec::len), Some(3), "{heard:#}");
    Ok(())
}

#[tokio::test]
async fn test_runner_reports_artifacts() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let program = dir.path().join("run-tests");
    let script = "#!/bin/sh\necho 'running 2 tests'\necho 'test opens ... ok'\necho 'test closes ... FAILED'\nexit 101\n";
    fs::write(&program, script)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let config = format!(
        "agents.test-runner.confine = false\n[agents.test-runner.grant.process.tests]\npath = '{}'\n",
        program.display()
    );
    let hub = hub("test-runner", config).await?;
    let client = Client::http(&hub);
    let task = send(&client, "test-runner", "all").await?;
    assert_eq!((state(&task), said(&task)), ("failed", "1 failed, 1 passed: closes"), "{task:#}");
    assert_eq!(task["metadata"]["reason"], "tests_failed");
    let artifacts = task["artifacts"].as_array().context("it made nothing")?;
    let names: Vec<_> = artifacts.iter().map(|made| &made["artifactId"]).collect();
    assert_eq!(names, ["log", "report"]);
    let data = json!({ "passed": 1, "ignored": 0, "failed": ["closes"] });
    assert_eq!(artifacts[1]["parts"][1]["data"], data, "{task:#}");
    Ok(())
}

#[tokio::test]
async fn approved_task_continues_after_restart() -> Result<()> {
    let config = "[agents.approval-gate.settings]\nthen = 'echo'\n[agents.approval-gate.grant]\ndelegate = ['echo']\n";
    let mut hub = hub("approval-gate", config).await?;
    let client = Client::http(&hub);
    let asks = send(&client, "approval-gate", "deploy to production").await?;
    assert_eq!(state(&asks), "input-required", "{asks:#}");
    assert_eq!(asks["metadata"]["question"]["kind"], "permission", "{asks:#}");
    let answer = |task: &Value, text: &str| {
        let mut message = message_to("approval-gate", text);
        message["message"]["taskId"] = task["id"].clone();
        message
    };
    let no = client.call("message/send", answer(&asks, "no")).await?;
    assert_eq!((state(&no), said(&no)), ("rejected", "It was not approved."), "{no:#}");

    let asks = send(&client, "approval-gate", "deploy to production").await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let id = asks["id"].as_str().context("no id")?;
    let asks_again =
        async || get(&client, id).await.is_ok_and(|task| state(&task) == "input-required");
    eventually_async(Duration::from_secs(30), asks_again).await?;
    let done = client.call("message/send", answer(&asks, "yes")).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "deploy to production"), "{done:#}");
    Ok(())
}
