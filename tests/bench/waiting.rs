//! Memory of a task whose agent waits for the client: an instance that is suspended during a call.

use a2a_hub_tests::{Client, TestHub, example_agent, message_to, proportional_bytes, test_guests};
use anyhow::{Context as _, Result, ensure};
use std::{fs, path::PathBuf, time::Duration};
use tokio::time::sleep;

/// Time in which the hub finishes its work after a response, and releases unused memory.
const SETTLE: Duration = Duration::from_secs(8);

/// Size of a guest's stack, in kB.
const STACK: u64 = 2 << 10;

/// Maximum size of a mapping of a guest's memory, in kB; heaps of the hub's allocator are larger.
const GUEST: u64 = 4 << 10;

/// Leaves `tasks` tasks waiting for input, and prints the hub's growth per task: for a guest with
/// all capabilities, and for a realistic agent that asks for approval.
pub(crate) async fn measure(tasks: u32) -> Result<()> {
    measure_of("the test guest", test_guests()?, "ask", tasks).await?;
    let gate = example_agent("approval-gate")?;
    measure_of("an agent that asks for approval", gate, "deploy to production", tasks).await
}

async fn measure_of(name: &str, guest: PathBuf, text: &str, tasks: u32) -> Result<()> {
    // Waiting tasks may use at most half of the capacity.
    let all = tasks + 1;
    let config = format!("max_tasks = {}\nagents.waiter.max_waiting = {all}", 2 * all);
    let builder = TestHub::builder().config(config);
    let mut hub = builder.plugin("waiter", guest).start().await?;
    let client = Client::http(&hub);
    // The first task pays for resources that all share.
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

/// Memory of the hub by kind, in kB; the size and name of a mapping identify its kind.
#[derive(Default)]
struct Parts {
    heap: u64,
    written: u64,
    /// Memory that is mapped several times but resident once.
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
                // Private memory counts in full, and memory that hundreds share for nearly nothing.
                ["Pss:", ..] if is_image => {
                    parts.shared += mapped - kilobytes;
                    parts.written += kilobytes;
                }
                ["Pss:", ..] if size == STACK => parts.stacks += kilobytes,
                ["Pss:", ..] if size <= GUEST => parts.written += kilobytes,
                ["Pss:", ..] => parts.heap += kilobytes,
                // A mapped file's name is at the end of the line.
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
