//! Tests of repeated requests: per client, within the window, after a restart, and concurrently.

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
async fn concurrent_repeats_create_one_task() -> Result<()> {
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

/// A message id is used again with other parameters, as test suites do.
#[tokio::test]
async fn changed_parameters_create_another_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (client, first) = (Client::http(&hub), message_to("guest", "flood 1"));
    let with = |name: &str, value: Value| {
        let mut params = first.clone();
        params[name] = value;
        params
    };
    let mut said = first.clone();
    said["message"]["metadata"]["note"] = json!("again");
    let all = [
        first.clone(),
        said,
        with("metadata", json!({ "note": "once" })),
        with("metadata", json!({ "note": "twice" })),
        with("configuration", json!({ "blocking": true, "historyLength": 0 })),
        with("configuration", json!({ "blocking": false })),
        with("configuration", json!({ "acceptedOutputModes": ["text/plain"] })),
    ];
    let mut ids = Vec::new();
    for params in &all {
        let task = client.call("message/send", params.clone()).await?;
        assert!(task["metadata"].get("repeated").is_none(), "{params}: {task}");
        let again = client.call("message/send", params.clone()).await?;
        let is_repeated = (&again["id"], &again["metadata"]["repeated"]);
        assert_eq!(is_repeated, (&task["id"], &json!(true)), "{params}");
        ids.push(task["id"].to_string());
    }
    let over_socket = Client::unix(&hub).call("message/send", first.clone()).await?;
    ids.push(over_socket["id"].to_string());
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), tasks(&client).await?), (all.len() + 1, all.len() + 1));
    Ok(())
}

#[tokio::test]
async fn zero_window_disables_deduplication() -> Result<()> {
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

/// Another conversation makes another request, and so does a deleted one.
#[tokio::test]
async fn deleted_conversation_forgets_its_requests() -> Result<()> {
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
async fn task_rejects_message_for_other_agent() -> Result<()> {
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

/// A disconnected client repeats its answer, which is no answer to the task's later question.
#[tokio::test]
async fn repeated_answer_is_stored_once() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let task = send(&client, "guest", "ask").await?;
    let mut message = message_to("guest", "permit");
    message["message"]["taskId"] = task["id"].clone();
    let all = (0..4).map(|_| client.call("message/send", message.clone()));
    let answers = try_join_all(all).await?;
    let repeated = answers.iter().filter(|task| task["metadata"]["repeated"] == true).count();
    assert_eq!(repeated, 3, "{answers:?}");
    let said = |task: &Value| {
        let history = task["history"].as_array().map_or(&[][..], Vec::as_slice);
        history.iter().filter(|said| said["messageId"] == message["message"]["messageId"]).count()
    };
    let last = client.call("tasks/get", json!({ "id": task["id"] })).await?;
    assert_eq!(said(&last), 1, "{last}");
    let late = client.call("message/send", message.clone()).await?;
    assert_eq!((state(&late), said(&late)), (state(&last), 1), "{late}");
    assert_eq!(late["metadata"]["repeated"], true, "also of a task that is over");
    Ok(())
}

#[tokio::test]
async fn answer_over_receiver_limit_is_refused() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let task = send(&client, "guest", "ask").await?;
    let config = |id: usize| json!({ "id": id.to_string(), "url": "http://127.0.0.1:9/news" });
    for id in 0..16 {
        let set = json!({ "taskId": task["id"], "pushNotificationConfig": config(id) });
        client.call("tasks/pushNotificationConfig/set", set).await?;
    }
    let mut answer = message_to("guest", "hello");
    answer["message"]["taskId"] = task["id"].clone();
    answer["configuration"] = json!({ "pushNotificationConfig": config(16) });
    let refused = client.call("message/send", answer.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("16 are enough"), "{refused}");
    let task = client.call("tasks/get", json!({ "id": task["id"] })).await?;
    assert_eq!(state(&task), "input-required", "it was not answered: {task}");
    answer["configuration"] = json!({ "pushNotificationConfig": config(3) });
    let answered = client.call("message/send", answer).await?;
    assert_eq!(state(&answered), "completed", "{answered}");
    Ok(())
}
