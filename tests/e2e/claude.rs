//! The real Claude Code, in its sandbox, against a model server on loopback.

use crate::stage::{eventually, get, no_program_left, said, send, state, stream, until};
use a2a_hub_tests::{Client, ModelServer, TestHub, processes_of_task};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// A hub and a model server for its claude.
struct Stage {
    hub: TestHub,
    model: ModelServer,
}

/// Where the real CLI is; none, with a word on why, where it need not be installed.
fn claude() -> Result<Option<PathBuf>> {
    let pinned = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clis/node_modules/.bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = vec![pinned];
    places.extend(env::split_paths(&path));
    let found = places.into_iter().find(|place| place.join("claude").is_file());
    if found.is_none() {
        if env::var_os("A2A_HUB_CI").is_some() {
            bail!("the claude CLI is not installed; run `cargo xtask clis`");
        }
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped: the claude CLI is not installed; `cargo xtask clis` installs it");
        }
    }
    Ok(found)
}

impl Stage {
    async fn set(key: Option<&str>) -> Result<Option<Self>> {
        let Some(bin) = claude()? else { return Ok(None) };
        let model = ModelServer::start()?;
        let path = env::join_paths(
            std::iter::once(bin).chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
        )?;
        let mut hub = TestHub::builder().env("PATH", path).env("ANTHROPIC_BASE_URL", model.url());
        if let Some(key) = key {
            hub = hub.env("ANTHROPIC_API_KEY", key);
        }
        Ok(Some(Self { hub: hub.start().await?, model }))
    }

    fn client(&self) -> Client {
        Client::http(&self.hub)
    }
}

/// Skips the rest of a test where the CLI is not installed.
macro_rules! stage {
    ($key:expr) => {
        match Stage::set($key).await? {
            Some(stage) => stage,
            None => return Ok(()),
        }
    };
}

const KEY: Option<&str> = Some("sk-test");

#[tokio::test]
async fn a_plain_answer_is_streamed() -> Result<()> {
    let stage = stage!(KEY);
    let client = stage.client();
    let prompt = "-x --help @/etc/hostname [[slow:60]] [[words:12]]";
    let (id, updates) = stream(&client, "claude-code", prompt).await?;
    let events = updates.rest().await?;
    let chunks: Vec<_> = events.iter().filter(|event| event["kind"] == "artifact-update").collect();
    assert!(chunks.len() > 3, "deltas come as they are made: {chunks:?}");
    let last = chunks.last().context("no chunks")?;
    assert_eq!((&last["append"], &last["lastChunk"]), (&json!(false), &json!(true)));
    let task = get(&client, &id).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let text = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(text, "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12");
    assert!(task["metadata"]["usage"].is_object(), "{}", task["metadata"]);
    assert!(!stage.model.requests().is_empty());
    no_program_left(&stage.hub.data_dir(), Duration::from_secs(1)).await
}

#[tokio::test]
async fn a_prompt_is_text_and_nothing_else() -> Result<()> {
    let stage = stage!(KEY);
    let secret = stage.hub.workspace().join("secret.txt");
    fs::write(&secret, "open sesame")?;
    let prompt = format!("--dangerously-skip-permissions @{} /help", secret.display());
    let task = send(&stage.client(), "claude-code", &prompt).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let told = task["artifacts"].to_string();
    assert!(told.contains("--dangerously-skip-permissions"), "the model sees the prompt: {told}");
    assert!(!told.contains("open sesame"), "and no file that it names: {told}");
    Ok(())
}

#[tokio::test]
async fn a_tool_asks_before_it_writes() -> Result<()> {
    let stage = stage!(KEY);
    let client = stage.client();
    for (decision, written) in [("no", false), ("yes", true)] {
        let file = stage.hub.workspace().join(format!("{decision}.txt"));
        let prompt = format!("[[tool:shell:touch {}]]", file.display());
        let asked = send(&client, "claude-code", &prompt).await?;
        assert_eq!(state(&asked), "input-required", "{asked}");
        let data = &asked["status"]["message"]["parts"][1]["data"];
        assert_eq!(data["tool"], "Bash", "{asked}");
        assert!(!file.exists());
        let mut answer = a2a_hub_tests::message_to("claude-code", decision);
        answer["message"]["taskId"] = asked["id"].clone();
        let task = client.call("message/send", answer).await?;
        assert_eq!(state(&task), "completed", "{task}");
        assert_eq!(file.exists(), written, "{decision}");
    }
    Ok(())
}

#[tokio::test]
async fn an_api_error_fails_the_task_in_the_vendors_words() -> Result<()> {
    let stage = stage!(KEY);
    let begun = Instant::now();
    for (prompt, reason) in [("[[error:400]]", "api_error"), ("[[error:500]]", "api_error")] {
        let task = send(&stage.client(), "claude-code", prompt).await?;
        assert_eq!(state(&task), "failed", "{task}");
        assert_eq!(task["metadata"]["reason"], reason, "{task}");
        assert!(said(&task).contains("mock error"), "{}", said(&task));
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "no minutes of hidden retries");
    Ok(())
}

#[tokio::test]
async fn a_missing_login_asks_for_one() -> Result<()> {
    let stage = stage!(None);
    let client = stage.client();
    let task = send(&client, "claude-code", "hello").await?;
    assert_eq!(state(&task), "auth-required", "{task}");
    assert!(said(&task).contains("/login"), "{}", said(&task));
    let agents = client.call("hub/agents/list", json!({ "includeHealth": true })).await?;
    let all = agents.as_array().context("no agents")?;
    let health = all.iter().find(|agent| agent["id"] == "claude-code").context("no claude")?;
    assert_eq!(health["health"]["status"], "degraded", "{health}");
    assert!(health["health"]["version"].as_str().is_some_and(|version| version.starts_with("2.")));
    client.call("tasks/cancel", json!({ "id": task["id"] })).await?;
    no_program_left(&stage.hub.data_dir(), Duration::from_secs(1)).await
}

#[tokio::test]
async fn cancel_in_the_middle_leaves_nothing_running() -> Result<()> {
    let stage = stage!(KEY);
    let client = stage.client();
    for prompt in ["[[slow:200]] [[words:300]]", "[[hang]]", "[[tool:shell:sleep 300]]"] {
        let (id, mut updates) = stream(&client, "claude-code", prompt).await?;
        if prompt.contains("words") {
            until(&mut updates, |event| event["kind"] == "artifact-update").await?;
        } else {
            eventually(Duration::from_secs(20), || processes_of_task(&id).len() > 1).await?;
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        let begun = Instant::now();
        let task = client.call("tasks/cancel", json!({ "id": id })).await?;
        assert_eq!(state(&task), "canceled");
        assert!(begun.elapsed() < Duration::from_secs(2), "{prompt}: {:?}", begun.elapsed());
        assert_eq!(processes_of_task(&id), [0_u32; 0], "{prompt}");
    }
    Ok(())
}

#[tokio::test]
async fn a_context_continues_the_vendors_own_session() -> Result<()> {
    let mut stage = stage!(KEY);
    let first = send(&stage.client(), "claude-code", "remember the word plum").await?;
    assert_eq!(state(&first), "completed", "{first}");
    stage.hub.restart().await?;
    let mut second = a2a_hub_tests::message_to("claude-code", "and the second turn");
    second["message"]["contextId"] = first["contextId"].clone();
    let second: Value = stage.client().call("message/send", second).await?;
    assert_eq!(state(&second), "completed", "{second}");
    assert!(!second.to_string().contains("session was lost"), "{second}");
    Ok(())
}

#[tokio::test]
async fn a_hub_killed_in_the_middle_leaves_nothing_running_and_the_task_goes_on() -> Result<()> {
    let mut stage = stage!(KEY);
    let (id, mut updates) =
        stream(&stage.client(), "claude-code", "[[slow:200]] [[words:300]]").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    stage.hub.kill9().await?;
    no_program_left(&stage.hub.data_dir(), Duration::from_secs(5)).await?;
    stage.hub.restart().await?;
    let task = get(&stage.client(), &id).await?;
    assert_eq!((state(&task), &task["metadata"]["reason"]), ("input-required", &json!("recovery")));
    let mut more = a2a_hub_tests::message_to("claude-code", "go on");
    more["message"]["taskId"] = json!(id);
    let task = stage.client().call("message/send", more).await?;
    assert_eq!(state(&task), "completed", "{task}");
    Ok(())
}
