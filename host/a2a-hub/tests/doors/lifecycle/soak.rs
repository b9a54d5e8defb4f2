//! Test of a thousand concurrent tasks with an event per second each: no event is lost, and no
//! memory leaks.

use crate::{
    hub::InProcessHub,
    stage::{state, stream, tell},
};
use a2a_hub_tests::{Client, resident_bytes, test_guests};
use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Number of concurrent tasks.
const TASKS: usize = 1_000;

/// Events of each task, one per second.
const EVENTS: usize = 30;

/// Maximal growth of the hub's memory after an equal round; caches fill up and lists grow once.
const MAX_GROWTH: u64 = 32 << 20;

/// Time in which the hub finishes its work after the last response.
const SETTLE: Duration = Duration::from_secs(2);

/// Number of checks for freed memory: the hub frees memory every few seconds.
const LOOKS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn thousand_streams_lose_no_event() -> Result<()> {
    // One slot per task and some to spare: further slots fill up one by one, and a slot keeps its
    // memory.
    let config = format!("max_tasks = {}\nagents.guest.max_running = {TASKS}", TASKS + 100);
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    // The first round pays for shared resources: slots for guests, connections, the allocator's
    // pools.
    round(&client, EVENTS).await?;
    let before = resident(&hub).await?;
    let begun = Instant::now();
    let heard = round(&client, EVENTS).await?;
    let took = begun.elapsed();
    let during = resident_bytes(hub.pid()).context("the hub is gone")?;
    let mut after = resident(&hub).await?;
    for _ in 1..LOOKS {
        if after < before + MAX_GROWTH {
            break;
        }
        after = resident(&hub).await?;
    }
    tell(&format!(
        "{TASKS} streams, {heard} events in {took:.1?}; resident before {} MB, at the end {} MB, afterwards {} MB",
        before >> 20,
        during >> 20,
        after >> 20
    ));
    ensure!(after < before + MAX_GROWTH, "the hub grew from {before} to {after} bytes");
    Ok(())
}

/// Runs all tasks with that number of ticks, and returns the number of events. Each client gets its
/// own events, all of them, in order.
async fn round(client: &Client, events: usize) -> Result<usize> {
    let text = format!("tick {events} 1000");
    let expected: String = (1..=events).map(|n| format!("{n}\n")).collect();
    let tasks = (0..TASKS).map(async |_| {
        let (id, mut updates) = stream(client, "guest", &text).await?;
        let (mut heard, mut ticks, mut last) = (1, String::new(), String::new());
        while let Some(event) = updates.next().await {
            let event = event?;
            heard += 1;
            ticks += event["artifact"]["parts"][0]["text"].as_str().unwrap_or_default();
            state(&event).clone_into(&mut last);
        }
        ensure!(ticks == expected && last == "completed", "task {id} heard {ticks:?}, then {last}");
        Ok(heard)
    });
    Ok(try_join_all(tasks).await?.into_iter().sum())
}

async fn resident(hub: &InProcessHub) -> Result<u64> {
    sleep(SETTLE).await;
    resident_bytes(hub.pid()).context("the hub is gone")
}
