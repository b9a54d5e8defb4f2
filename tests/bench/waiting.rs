//! What a task costs in memory while its agent waits for the client: an instance, suspended in the middle of a call.

use a2a_hub_tests::{Client, TestHub, message_to, resident_bytes, test_guests};
use anyhow::{Context as _, Result, ensure};
use std::time::Duration;
use tokio::time::sleep;

/// For the hub to finish what it does after answering, and to let go of what it does not use.
const SETTLE: Duration = Duration::from_secs(8);

/// Leaves that many tasks waiting for input, and prints by how much the hub has grown for each.
pub(crate) async fn measure(tasks: u32) -> Result<()> {
    // Those that wait take up half of the room at most.
    let all = tasks + 1;
    let config = format!("max_tasks = {}\nagents.test-guests.max_waiting = {all}", 2 * all);
    let builder = TestHub::builder().config(config);
    let mut hub = builder.plugin("test-guests", test_guests()?).start().await?;
    let client = Client::http(&hub);
    // The first one pays for what all of them share.
    suspend(&client).await?;
    let before = resident(&hub).await?;
    for _ in 0..tasks {
        suspend(&client).await?;
    }
    let after = resident(&hub).await?;
    let each = after.saturating_sub(before) / u64::from(tasks);
    println!("\n{tasks} tasks waiting for input: {} kB each", each / 1024);
    println!("the hub had {} MB before and {} MB after", before >> 20, after >> 20);
    hub.kill9().await
}

async fn suspend(client: &Client) -> Result<()> {
    let task = client.call("message/send", message_to("test-guests", "ask")).await?;
    let state = task["status"]["state"].as_str().unwrap_or_default();
    let waits = matches!(state, "input-required" | "TASK_STATE_INPUT_REQUIRED");
    ensure!(waits, "the task does not wait for input: {task}");
    Ok(())
}

async fn resident(hub: &TestHub) -> Result<u64> {
    sleep(SETTLE).await;
    resident_bytes(hub.pid()).context("the hub is gone")
}
