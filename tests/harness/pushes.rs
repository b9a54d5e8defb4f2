//! Support for tests of push notifications.

use crate::{
    Client, Receiver, message_to,
    stage::{eventually, state},
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// Timeout longer than two pauses after failures, which are at most one and two seconds.
pub const SOON: Duration = Duration::from_secs(15);

/// Message to the guest with a receiver for notifications.
pub fn pushed(text: &str, url: &str) -> Value {
    let mut params = message_to("guest", text);
    params["configuration"] = json!({ "pushNotificationConfig": {
        "url": url, "token": "mine",
        "authentication": { "schemes": ["Bearer"], "credentials": "let-me-in" },
    }});
    params
}

/// States that a receiver accepted, oldest first.
pub fn states(receiver: &Receiver) -> Vec<String> {
    receiver.taken().iter().map(|task| state(task).to_owned()).collect()
}

/// Waits until a receiver has accepted a task in this state.
pub async fn told(receiver: &Receiver, wanted: &str) -> Result<()> {
    eventually(SOON, || states(receiver).iter().any(|state| state == wanted))
        .await
        .with_context(|| format!("{wanted} never came, but {:?}", receiver.came()))
}

/// Sets the receiver of a task's notifications, and returns the config.
pub async fn set(client: &Client, task: &Value, id: &str, url: &str) -> Result<Value> {
    let config = json!({ "id": id, "url": url });
    let params = json!({ "taskId": task["id"], "pushNotificationConfig": config });
    Ok(client.call("tasks/pushNotificationConfig/set", params).await?)
}

/// Answers a task's question.
pub async fn answer(client: &Client, task: &Value, text: &str) -> Result<Value> {
    let mut params = message_to("guest", text);
    params["message"]["taskId"] = task["id"].clone();
    Ok(client.call("message/send", params).await?)
}

/// Duration longer than the pause after the first failure, which is at most a second.
pub const MORE_THAN_A_PAUSE: Duration = Duration::from_millis(2_500);

/// Pending deliveries of the hub.
pub async fn deliveries(client: &Client) -> Result<Vec<Value>> {
    let listed = client.call("hub/deliveries/list", json!({ "limit": 100 })).await?;
    Ok(listed.as_array().cloned().unwrap_or_default())
}

/// States that a receiver accepted at a path, oldest first.
pub fn at(receiver: &Receiver, path: &str) -> Vec<String> {
    let there = receiver.came().into_iter().filter(|it| it.path == path && it.status == 200);
    there.map(|it| state(&it.body).to_owned()).collect()
}
