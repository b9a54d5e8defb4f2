//! Projects that `a2a-hub plugin new` makes in Python and in JavaScript: each is built and tested outside of the repository, is granted
//! what it asks for, does all that an agent does, and is changed while it serves. (The one in Rust is the guide's: `authoring`.)

use crate::{
    authoring::{Desk, Developing, typed_at},
    stage::{artifact, eventually_async, get, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, TestHub, message_to};
use anyhow::Result;
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Python is 19 MB of code, for a compiler that is not optimised, beside other tests.
const JOINS_WITHIN: Duration = Duration::from_secs(150);

#[tokio::test]
async fn one_in_python_is_made_built_granted_and_changed() -> Result<()> {
    story("python", "agent.py", &["python3", "build.py", "test"]).await
}

#[tokio::test]
async fn one_in_javascript_is_made_built_granted_and_changed() -> Result<()> {
    story("js", "agent.js", &["npm", "test"]).await
}

async fn story(language: &str, source: &str, test: &[&str]) -> Result<()> {
    let hub = TestHub::start().await?;
    let (client, desk) = (Client::http(&hub), Desk::of(&hub)?);
    desk.done(&desk.path(), &["plugin", "new", "my-notes", "--lang", language]).await?;
    let project = desk.path().join("my-notes");
    desk.done(&project, &["plugin", "build"]).await?;
    typed_at(&desk, &project, test[0], &test[1..]).await?;

    let mut dev = Developing::start(&desk, &project)?;
    dev.until(|told| told["said"] == "it joined").await?;
    let denied = send(&client, "my-notes", "note buy milk").await?;
    assert_eq!(denied["metadata"]["reason"], "denied", "{denied}");
    assert!(said(&denied).contains("a2a-hub plugin grant my-notes --memory"), "{}", said(&denied));
    desk.done(&project, &["plugin", "grant", "my-notes", "--all", "--dev"]).await?;

    assert_eq!(said(&send(&client, "my-notes", "note buy milk").await?), "kept; that makes 1");
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

    // What is saved serves, with the grant.
    let file = project.join(source);
    let text = fs::read_to_string(&file)?;
    fs::write(&file, text.replace("kept; that makes", "noted; that makes"))?;
    dev.built().await?;
    let is_new = async || {
        let answer = send(&client, "my-notes", "note call mum").await;
        answer.is_ok_and(|answer| said(&answer).starts_with("noted; that makes"))
    };
    eventually_async(JOINS_WITHIN, is_new).await?;
    assert_eq!(dev.interrupt().await?, Some(0));
    Ok(())
}
