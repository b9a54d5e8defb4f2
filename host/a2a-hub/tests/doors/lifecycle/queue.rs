//! Tests of an agent's queue: further tasks wait in order, and beyond its limit they are rejected.

use crate::hub::InProcessHub;
use crate::stage::{get, said, send, state, stream, until};
use a2a_hub_tests::{
    Client, RpcError, message_to,
    queue::{narrow, occupy},
    test_guests,
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// Starts a hub whose agent runs one task and queues two.
async fn narrow_hub(more: &str) -> Result<InProcessHub> {
    InProcessHub::builder().config(narrow(more)).plugin("guest", test_guests()?).start().await
}

async fn cancel(client: &Client, task: &str) -> Result<Value> {
    Ok(client.call("tasks/cancel", json!({ "id": task })).await?)
}

#[tokio::test]
async fn full_queue_refuses_further_tasks() -> Result<()> {
    let hub = narrow_hub("").await?;
    let client = Client::unix(&hub);
    let (first, _) = occupy(&client).await?;
    let (second, mut second_heard) = stream(&client, "guest", "flood 1").await?;
    let (third, third_heard) = stream(&client, "guest", "flood 1").await?;
    let waiting = get(&client, &second).await?;
    assert_eq!((state(&waiting), &waiting["metadata"]["queued"]), ("submitted", &json!(true)));

    let refused = client.call("message/send", message_to("guest", "reply x")).await;
    let Err(RpcError::Refused { code, message, data }) = refused else { bail!("it was taken") };
    assert_eq!(code, -32004);
    assert_eq!(data, json!({ "reason": "busy", "agent": "guest", "running": 1, "queued": 2 }));
    assert!(message.contains("`max_queued`"), "{message}");
    assert_eq!(said(&send(&client, "echo", "hello").await?), "hello", "others are not held up");

    cancel(&client, &first).await?;
    until(&mut second_heard, |event| event["status"]["state"] == "completed").await?;
    third_heard.rest().await?;
    let [second, third] = [get(&client, &second).await?, get(&client, &third).await?];
    assert_eq!((state(&second), state(&third)), ("completed", "completed"));
    assert!(second["status"]["timestamp"].as_str() <= third["status"]["timestamp"].as_str());
    assert!(second["metadata"].get("queued").is_none(), "{second}");
    Ok(())
}

#[tokio::test]
async fn queued_task_cancels_and_times_out() -> Result<()> {
    let hub = narrow_hub("").await?;
    let client = Client::http(&hub);
    let (first, _) = occupy(&client).await?;
    let (second, _) = stream(&client, "guest", "flood 1").await?;
    assert_eq!(state(&cancel(&client, &second).await?), "canceled");
    let mut hurried = message_to("guest", "flood 1");
    hurried["configuration"] = json!({ "timeoutMs": 300 });
    let late = client.call("message/send", hurried).await?;
    assert_eq!((state(&late), &late["metadata"]["reason"]), ("failed", &json!("timeout")));
    assert!(said(&late).contains("busy"), "{late}");
    cancel(&client, &first).await?;
    assert_eq!(state(&send(&client, "guest", "flood 1").await?), "completed");
    Ok(())
}

#[tokio::test]
async fn waiting_task_releases_run_permit() -> Result<()> {
    let hub = narrow_hub("").await?;
    let client = Client::unix(&hub);
    let asked = send(&client, "guest", "ask").await?;
    assert_eq!(state(&asked), "input-required");
    let (busy, _) = occupy(&client).await?;
    let id = asked["id"].as_str().context("no id")?;
    let mut answer = message_to("guest", "blue");
    answer["message"]["taskId"] = json!(id);
    let mut heard = client.stream("message/stream", answer).await?;
    assert_eq!(state(&get(&client, id).await?), "input-required", "it is another's turn");
    cancel(&client, &busy).await?;
    until(&mut heard, |event| event["status"]["state"] == "completed").await?;
    assert_eq!(said(&get(&client, id).await?), "blue");
    Ok(())
}

#[tokio::test]
async fn history_setting_limits_agent_history() -> Result<()> {
    for (history, expected) in
        [(0, ""), (3, "one\nreply two\ntwo"), (9, "reply one\none\nreply two\ntwo")]
    {
        let hub = narrow_hub(&format!("history = {history}")).await?;
        let client = Client::unix(&hub);
        let mut message = message_to("guest", "reply one");
        message["message"]["contextId"] = json!("talk");
        client.call("message/send", message.clone()).await?;
        message["message"]["parts"][0]["text"] = json!("reply two");
        client.call("message/send", message.clone()).await?;
        message["message"]["parts"][0]["text"] = json!("history");
        let told = client.call("message/send", message).await?;
        assert_eq!(said(&told), expected, "{history}");
    }
    Ok(())
}
