//! What a task costs in memory while its agent waits for the client: an instance, suspended in the middle of a call.

use a2a_hub_tests::{Client, TestHub, example_agent, message_to, proportional_bytes, test_guests};
use anyhow::{Context as _, Result, ensure};
use std::{fs, path::PathBuf, time::Duration};
use tokio::time::sleep;

/// For the hub to finish what it does after answering, and to let go of what it does not use.
const SETTLE: Duration = Duration::from_secs(8);

/// How large a guest's stack is, in kB.
const STACK: u64 = 2 << 10;

/// How large a piece of a guest's memory is at most, in kB; the heaps of the hub's allocator are larger.
const GUEST: u64 = 4 << 10;

/// Leaves that many tasks waiting for input, and prints by how much the hub has grown for each: tasks of a guest that can do everything, and of an agent
/// that people have, which asks for approval.
pub(crate) async fn measure(tasks: u32) -> Result<()> {
    measure_of("the test guest", test_guests()?, "ask", tasks).await?;
    let gate = example_agent("approval-gate")?;
    measure_of("an agent that asks for approval", gate, "deploy to production", tasks).await
}

async fn measure_of(name: &str, guest: PathBuf, text: &str, tasks: u32) -> Result<()> {
    // Those that wait take up half of the room at most.
    let all = tasks + 1;
    let config = format!("max_tasks = {}\nagents.waiter.max_waiting = {all}", 2 * all);
    let builder = TestHub::builder().config(config);
    let mut hub = builder.plugin("waiter", guest).start().await?;
    let client = Client::http(&hub);
    // The first one pays for what all of them share.
    suspend(&client, text).await?;
    let (before, parts_before) = (memory_of(&hub).await?, Parts::of(&hub)?);
    for _ in 0..tasks {
        suspend(&client, text).await?;
    }
    let (after, parts) = (memory_of(&hub).await?, Parts::of(&hub)?);
    let each = after.saturating_sub(before) / u64::from(tasks);
    println!("\n{tasks} tasks of {name} waiting for input: {} kB each", each / 1024);
    for (name, now, then) in [
        ("the hub's heap", parts.heap, parts_before.heap),
        ("what the guest wrote to", parts.written, parts_before.written),
        ("the guest's stack", parts.stacks, parts_before.stacks),
    ] {
        println!("{:>6} kB  {name}", now.saturating_sub(then) / u64::from(tasks));
    }
    let shared = parts.shared.saturating_sub(parts_before.shared) / u64::from(tasks);
    println!("and {shared} kB of constants, which all instances share and each maps");
    println!("the hub had {} MB before and {} MB after", before >> 20, after >> 20);
    hub.kill9().await
}

/// The hub's memory by what it is, in kB: its mappings are told by their sizes and names.
#[derive(Default)]
struct Parts {
    heap: u64,
    written: u64,
    /// Mapped more often than it is there.
    shared: u64,
    stacks: u64,
}

impl Parts {
    fn of(hub: &TestHub) -> Result<Self> {
        let mappings = fs::read_to_string(format!("/proc/{}/smaps", hub.pid()))?;
        let (mut parts, mut size, mut mapped, mut is_image) = (Self::default(), 0, 0, false);
        for line in mappings.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let kilobytes = words.get(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            match words[..] {
                ["Size:", ..] => size = kilobytes,
                ["Rss:", ..] => mapped = kilobytes,
                // What each has of its own counts in full, and next to nothing of what hundreds share.
                ["Pss:", ..] if is_image => {
                    parts.shared += mapped - kilobytes;
                    parts.written += kilobytes;
                }
                ["Pss:", ..] if size == STACK => parts.stacks += kilobytes,
                ["Pss:", ..] if size <= GUEST => parts.written += kilobytes,
                ["Pss:", ..] => parts.heap += kilobytes,
                // Whose they are stands at the end, if they are somebody's.
                [range, ..] if range.contains('-') => {
                    is_image = words.get(5).is_some_and(|name| name.contains("memfd"));
                }
                _ => {}
            }
        }
        Ok(parts)
    }
}

async fn suspend(client: &Client, text: &str) -> Result<()> {
    let task = client.call("message/send", message_to("waiter", text)).await?;
    let state = task["status"]["state"].as_str().unwrap_or_default();
    let waits = matches!(state, "input-required" | "TASK_STATE_INPUT_REQUIRED");
    ensure!(waits, "the task does not wait for input: {task}");
    Ok(())
}

async fn memory_of(hub: &TestHub) -> Result<u64> {
    sleep(SETTLE).await;
    proportional_bytes(hub.pid()).context("the hub is gone")
}
