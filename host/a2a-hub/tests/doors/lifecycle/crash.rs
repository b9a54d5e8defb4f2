//! Tests of bad moments for a task: the store cannot be written, or the client disconnects.

use crate::{
    hub::InProcessHub,
    stage::{eventually, eventually_async, get, hub_with_guest, said, send, state, stream},
};
use a2a_hub_tests::{Client, message_to};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::sleep};

/// Locks the store, as a backup or an operator's tool may: writes block until the connection is
/// dropped.
fn hold_the_store(hub: &InProcessHub) -> Result<rusqlite::Connection> {
    let db = rusqlite::Connection::open(hub.data_dir().join("hub.db"))?;
    db.execute_batch("BEGIN IMMEDIATE")?;
    Ok(db)
}

/// An event that cannot be stored is not reported, and the task does not stay in the state
/// `working`.
#[tokio::test]
async fn unstorable_task_fails_once_storage_works() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let (id, updates) = stream(&client, "guest", "tick 400 50").await?;
    let held = hold_the_store(&hub)?;
    eventually(Duration::from_secs(20), || hub.log().contains("task aborted, storing")).await?;
    drop(held);
    let heard = updates.rest().await?;
    let last = heard.last().context("nothing was heard")?;
    assert_eq!((state(last), &last["final"]), ("failed", &json!(true)), "{last}");
    let task = get(&client, &id).await?;
    assert_eq!((state(&task), &task["metadata"]["reason"]), ("failed", &json!("storage")));
    assert_eq!(said(&send(&client, "echo", "hello").await?), "hello");
    Ok(())
}

/// Clients that disconnect while their task is being stored leave no task that never runs.
#[tokio::test]
async fn disconnect_during_storing_leaves_no_orphan_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let held = hold_the_store(&hub)?;
    let host = hub.http().trim_start_matches("http://");
    let mut gone = Vec::new();
    for _ in 0..8 {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_to("echo", "hello") });
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut client = TcpStream::connect(host).await?;
        client.write_all(request.as_bytes()).await?;
        gone.push(client);
    }
    // Time for the request to reach the locked store.
    sleep(Duration::from_millis(300)).await;
    drop(gone);
    sleep(Duration::from_millis(300)).await;
    drop(held);
    let client = Client::unix(&hub);
    eventually_async(Duration::from_secs(5), async || {
        let listed = client.call("hub/tasks/list", json!({ "state": "completed" })).await;
        listed.is_ok_and(|listed| listed.as_array().is_some_and(|tasks| tasks.len() == 8))
    })
    .await
}
