//! Tests of Python and JavaScript projects that `a2a-hub plugin new` creates, by the commands of
//! their READMEs: each is tested and built outside of the repository, granted what it asks for,
//! exercised, and changed while it runs. The module `authoring` tests Rust.

use crate::{
    plugin::authoring::{Desk, Developing, typed, typed_at},
    stage::{artifact, eventually_async, get, said, send, state, stream, tell, until},
};
use a2a_hub_tests::{Client, TestHub, message_to};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, time::Duration};
use tokio::time::Instant;

/// Timeout of loading a component: Python has 19 MB of code, for an unoptimised compiler, next to
/// other tests.
const JOINS_WITHIN: Duration = Duration::from_secs(300);

#[tokio::test]
async fn python_project_is_created_and_developed() -> Result<()> {
    story("python", "agent.py").await
}

#[tokio::test]
async fn javascript_project_is_created_and_developed() -> Result<()> {
    story("js", "agent.js").await
}

/// Splits a command into words, of which one may be quoted.
fn words(line: &str) -> Vec<String> {
    let pieces = line.split('"').enumerate().flat_map(|(at, piece)| {
        let is_quoted = at % 2 == 1;
        let words = if is_quoted { vec![piece] } else { piece.split_whitespace().collect() };
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    });
    pieces.collect()
}

async fn story(language: &str, source: &str) -> Result<()> {
    let hub = TestHub::start().await?;
    let (client, desk) = (Client::http(&hub), Desk::of(&hub)?);
    desk.done(&desk.path(), &["plugin", "new", "my-notes", "--lang", language]).await?;
    let project = desk.path().join("my-notes");
    let lines = typed(language, "my-notes");
    ensure!(lines.len() >= 5, "where are the commands? {lines:?}");
    if language == "js" {
        let tested = typed_at(&desk, &project, "npm", &["test"]).await;
        let why = tested.err().context("its packages are installed already")?.to_string();
        assert!(why.contains("not installed yet\nhelp: npm install\n"), "{why}");
        assert!(!why.contains("ERR_MODULE_NOT_FOUND"), "{why}");
    }
    let mut typed_for = Duration::ZERO;
    for line in lines {
        let (words, begun) = (words(&line), Instant::now());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["a2a-hub", "plugin", "add", ..] => {
                desk.done(&project, &words[1..]).await?;
                let joined = async || send(&client, "my-notes", "dance").await.is_ok();
                eventually_async(JOINS_WITHIN, joined).await?;
                let denied = send(&client, "my-notes", "note buy milk").await?;
                assert_eq!(denied["metadata"]["reason"], "denied", "{denied}");
                let remedy = "a2a-hub plugin grant my-notes --memory";
                assert!(said(&denied).contains(remedy), "{}", said(&denied));
            }
            ["a2a-hub", args @ ..] => drop(desk.done(&project, args).await?),
            [program, args @ ..] => typed_at(&desk, &project, program, args).await?,
            [] => anyhow::bail!("nobody can type `{line}`"),
        }
        // The remaining time is that of compilers, of the language or of the hub.
        if !(line == "python3 build.py"
            || ["run build", "install", "plugin add"].iter().any(|slow| line.contains(slow)))
        {
            typed_for += begun.elapsed();
        }
    }
    tell(&format!("{language}: what compiles nothing took {typed_for:.1?}"));

    let (task, mut updates) = stream(&client, "my-notes", "list").await?;
    let piece = until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    assert!(piece.to_string().contains("1. buy milk"), "{piece}");
    until(&mut updates, |event| event["final"] == true).await?;
    let listed = get(&client, &task).await?;
    assert_eq!((said(&listed), artifact(&listed).as_str()), ("1 notes", "1. buy milk\n"));

    let asks = |event: &Value| event["status"]["state"] == "input-required";
    let (task, mut updates) = stream(&client, "my-notes", "forget").await?;
    until(&mut updates, asks).await?;
    client.call("tasks/cancel", json!({ "id": task })).await?;
    assert_eq!(state(&get(&client, &task).await?), "canceled");
    let (task, mut updates) = stream(&client, "my-notes", "forget").await?;
    until(&mut updates, asks).await?;
    let mut answer = message_to("my-notes", "yes");
    answer["message"]["taskId"] = json!(task);
    assert_eq!(said(&client.call("message/send", answer).await?), "forgotten");

    // The changed version keeps the grant and the memory.
    let file = project.join(source);
    let text = fs::read_to_string(&file)?;
    fs::write(&file, text.replace("kept; that makes", "noted; that makes"))?;
    desk.done(&project, &["plugin", "grant", "my-notes", "--dev"]).await?;
    let mut dev = Developing::start(&desk, &project)?;
    dev.built().await?;
    let is_new = async || {
        let answer = send(&client, "my-notes", "note call mum").await;
        answer.is_ok_and(|answer| said(&answer).starts_with("noted; that makes"))
    };
    eventually_async(JOINS_WITHIN, is_new).await?;
    assert_eq!(dev.interrupt().await?, Some(0));
    Ok(())
}
