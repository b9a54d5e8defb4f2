//! Tests of tasks that wait for their client: they keep nobody else out, and differ from tasks that
//! a stop ends.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, get, resuming_guests, said, send, state},
};
use a2a_hub_tests::{Client, message_to};
use anyhow::Result;
use serde_json::Value;

async fn answer(client: &Client, task: &Value, text: &str) -> Result<Value> {
    let mut answer = message_to("guest", text);
    answer["message"]["taskId"] = task["id"].clone();
    Ok(client.call("message/send", answer).await?)
}

#[tokio::test]
async fn waiting_task_is_parked_and_resumed() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let config = format!("max_tasks = 2\n{GRANT}");
    let hub = InProcessHub::builder().config(config).plugin("guest", resuming_guests(dir.path())?);
    let hub = hub.start().await?;
    let client = Client::http(&hub);
    let (first, second) =
        (send(&client, "guest", "ask").await?, send(&client, "guest", "ask").await?);
    for round in 0..3 {
        assert_eq!(said(&send(&client, "echo", "hello").await?), "hello", "{round}");
    }
    let id = |task: &Value| task["id"].as_str().unwrap_or_default().to_owned();
    let parked = get(&client, &id(&first)).await?;
    assert_eq!(state(&parked), "input-required", "{parked}");
    assert!(said(&parked).contains("made room for other tasks"), "{parked}");
    assert!(said(&parked).contains("what do you say?"), "{parked}");
    assert_ne!(parked["metadata"]["question"]["id"], first["metadata"]["question"]["id"]);
    assert_eq!(get(&client, &id(&second)).await?["status"], second["status"], "it has its agent");
    assert_eq!(state(&answer(&client, &first, "flood 2").await?), "completed");
    assert_eq!(state(&answer(&client, &second, "well").await?), "completed");
    Ok(())
}
