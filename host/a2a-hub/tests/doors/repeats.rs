//! Requests that are made again: by whom, for how long, over a restart, at once; and what else is told from them.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, hub_with_guest, send, state},
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use serde_json::{Value, json};

async fn tasks(client: &Client) -> Result<usize> {
    let listed = client.call("hub/tasks/list", json!({})).await?;
    Ok(listed.as_array().context("no list")?.len())
}

#[tokio::test]
async fn the_same_request_at_once_begins_one_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (client, message) = (Client::http(&hub), message_to("guest", "tick 2 100"));
    let all = (0..8).map(|_| client.call("message/send", message.clone()));
    let answers = try_join_all(all).await?;
    let repeated = answers.iter().filter(|task| task["metadata"]["repeated"] == true).count();
    assert_eq!((tasks(&client).await?, repeated), (1, 7), "{answers:?}");
    assert!(
        answers.iter().all(|task| task["id"] == answers[0]["id"] && state(task) == "completed")
    );
    Ok(())
}

#[tokio::test]
async fn without_a_window_each_message_is_a_task_of_its_own() -> Result<()> {
    let config = format!("idempotency_window_ms = 0\n{GRANT}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let (client, message) = (Client::http(&hub), message_to("guest", "flood 1"));
    let answers = [
        client.call("message/send", message.clone()).await?,
        client.call("message/send", message).await?,
    ];
    assert_ne!(answers[0]["id"], answers[1]["id"]);
    assert!(answers.iter().all(|task| task["metadata"].get("repeated").is_none()), "{answers:?}");
    Ok(())
}

/// A conversation that is given makes another request, and so does one that was forgotten.
#[tokio::test]
async fn what_was_forgotten_is_begun_anew() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (client, mut message) = (Client::http(&hub), message_to("guest", "flood 1"));
    let first = client.call("message/send", message.clone()).await?;
    message["message"]["contextId"] = json!("ours");
    let elsewhere = client.call("message/send", message.clone()).await?;
    assert_ne!(elsewhere["id"], first["id"], "it names a conversation");
    client.call("hub/contexts/delete", json!({ "contextId": "ours" })).await?;
    let anew = client.call("message/send", message).await?;
    assert!(anew["id"] != elsewhere["id"] && anew["metadata"].get("repeated").is_none(), "{anew}");
    Ok(())
}

#[tokio::test]
async fn a_task_of_one_agent_takes_no_message_for_another() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    let mut answer = message_to("echo", "blue");
    answer["message"]["taskId"] = asked["id"].clone();
    for method in ["message/send", "message/stream"] {
        let why = client.call(method, answer.clone()).await.err().and_then(|why| why.code());
        assert_eq!(why, Some(-32602), "{method}");
    }
    answer["message"]["metadata"] = Value::Null;
    let done = client.call("message/send", answer).await?;
    assert_eq!(state(&done), "completed");
    Ok(())
}
