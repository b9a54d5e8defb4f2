//! The hostile suite: a bad guest for each promise. It fails with a word that names the way out, whichever of its functions it
//! misuses, and honest tasks beside it hardly notice.

use crate::{
    hub::InProcessHub,
    stage::{hub_with_guest, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// All capabilities that floods need, and little of what they use up.
const CONFIG: &str = "
    breaker.failures = 1000
    [agents.guest.grant]
    memory = true
    files = true
    [agents.guest.grant.process.formed]
    [agents.guest.limits]
    cpu_ms = 500
    output_bytes = 4000000
";

async fn hub() -> Result<InProcessHub> {
    InProcessHub::builder().config(CONFIG).plugin("guest", test_guests()?).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_flood_ends_at_a_limit_that_names_its_remedy() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    for (text, reason, remedy) in [
        ("flood-data 2000000", "invalid_request", "a raw part of type `application/json`"),
        ("flood-data 100000", "limit_exceeded", "in the agent's `limits`"),
        ("flood-text 1000000", "limit_exceeded", "in the agent's `limits`"),
        ("flood-stdout", "limit_exceeded", "`cpu_ms` in the agent's `limits`"),
        ("flood-stderr", "agent_crashed", ""),
        ("flood-random", "limit_exceeded", "`cpu_ms` in the agent's `limits`"),
        ("flood-arguments", "limit_exceeded", "`cpu_ms` in the agent's `limits`"),
    ] {
        let task = send(&client, "guest", text).await?;
        let told = said(&task);
        ensure!(state(&task) == "failed" && task["metadata"]["reason"] == reason, "{text}: {told}");
        ensure!(told.contains(remedy), "{text}: {told}");
    }
    for (text, remedy) in [
        ("put-big 1000000", "the manifest's `[files]`"),
        ("remember key 0123456789abcdef", "key is 16 bytes"),
        ("read /etc/passwd", "refused"),
        ("env HOME", "absent"),
    ] {
        let task = send(&client, "guest", text).await?;
        ensure!(said(&task).contains(remedy), "{text}: {}", said(&task));
    }
    Ok(())
}

/// Those that are slow rather than many wait for their turn, and a client that has enough of it is heard at once.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_held_back_or_never_returns_is_cancelled_at_once() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    for text in ["flood-memory", "log-flood 1000000000", "hang 3600"] {
        let (id, mut updates) = stream(&client, "guest", text).await?;
        until(&mut updates, |event| event["status"]["state"] == "working").await?;
        sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        let task = client.call("tasks/cancel", json!({ "id": id })).await?;
        assert_eq!(state(&task), "canceled", "{text}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{text}: {:?}", begun.elapsed());
    }
    Ok(())
}

/// The functions that hear no message are told how to behave by a setting.
#[tokio::test(flavor = "multi_thread")]
async fn each_function_may_spin_trap_or_hang() -> Result<()> {
    let agents = ["spin", "trap", "hang"].map(|how| {
        format!(
            "[agents.{how}s]\nsettings = {{ health = '{}', cancel = '{how}' }}\nlimits.cpu_ms = 300\n",
            // A health check that hangs is the health monitor's matter.
            if how == "hang" { "" } else { how },
        )
    });
    let builder =
        InProcessHub::builder().config(format!("breaker.failures = 1000\n{}", agents.concat()));
    let builder = builder.plugin("spins", test_guests()?).plugin("traps", test_guests()?);
    let hub = builder.plugin("hangs", test_guests()?).start().await?;
    let client = Client::http(&hub);
    for (agent, why) in [("spins", "ms of CPU time"), ("traps", "it panicked")] {
        let health = client.call("hub/agents/health", json!({ "agentId": agent })).await;
        let told = health.map_or_else(|why| why.to_string(), |told| told.to_string());
        ensure!(told.contains(why), "{agent}: {told}");
    }
    // What cannot be healthy is given no task; the one that can is cancelled, and its clean-up is not waited for.
    let (id, mut updates) = stream(&client, "hangs", "hang 3600").await?;
    until(&mut updates, |event| event["status"]["state"] == "working").await?;
    let task = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&task), "canceled");
    assert_eq!(said(&send(&client, "echo", "still here").await?), "still here");
    Ok(())
}

/// The word by which the guest behaves while it is asked for its card stands in the component.
#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_spins_traps_or_hangs_displaces_nothing() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let component = fs::read(test_guests()?)?;
    let word = b"card-behaves:    ";
    let at = component.windows(word.len()).position(|bytes| bytes == word);
    let at = at.context("the guest has no such word")?;
    for (how, why) in
        [("spin", "1 s of CPU time"), ("trap", "it panicked"), ("hang", "longer than 2 s")]
    {
        let mut bad = component.clone();
        bad[at + word.len() - 4..at + word.len()].copy_from_slice(how.as_bytes());
        fs::write(hub.data_dir().join("plugins/bad.new"), &bad)?;
        fs::rename(
            hub.data_dir().join("plugins/bad.new"),
            hub.data_dir().join("plugins/bad.wasm"),
        )?;
        let told = |status: &Value| status["rejectedPlugins"].to_string().contains(why);
        let begun = Instant::now();
        while !told(&client.call("hub/status", json!({})).await?) {
            let status = client.call("hub/status", json!({})).await?;
            ensure!(
                begun.elapsed() < Duration::from_secs(20),
                "{how}: {}",
                status["rejectedPlugins"]
            );
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(said(&send(&client, "echo", "still here").await?), "still here", "{how}");
    }
    Ok(())
}

/// Before the hub's work for guests was theirs, and greedy agents had a low priority, honest ones waited half a second. The
/// benchmark (`--hostile`) has the exact numbers; this one holds on a machine that does other things, too.
#[tokio::test(flavor = "multi_thread")]
async fn honest_tasks_hardly_notice_hostile_ones() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    median_of_answers(&client).await?;
    let alone = median_of_answers(&client).await?;
    let mut hostile = JoinSet::new();
    for text in ["spin", "flood-data 100000", "flood-arguments", "flood-random"].repeat(2) {
        let client = client.clone();
        hostile.spawn(async move {
            loop {
                // It fails, as it must.
                let _ = send(&client, "guest", text).await;
            }
        });
    }
    sleep(Duration::from_millis(500)).await;
    let beside = median_of_answers(&client).await?;
    let bearable = alone * 4 + Duration::from_millis(50);
    assert!(beside < bearable, "{alone:?} alone, {beside:?} beside hostile tasks");
    Ok(())
}

async fn median_of_answers(client: &Client) -> Result<Duration> {
    let mut took = Vec::new();
    for _ in 0..25 {
        let begun = Instant::now();
        ensure!(said(&send(client, "echo", "hello").await?) == "hello");
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    Ok(took[took.len() / 2])
}
