//! Cost of topics: 10,000 messages, from sixteen publishers to a hundred subscribers that wait.

use crate::{LOAD, SERVERS, pin};
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{task::JoinSet, time::Instant};

/// Numbers of messages, publishers and subscribers.
const MESSAGES: u64 = 10_000;
const PUBLISHERS: u64 = 16;
const SUBSCRIBERS: u64 = 100;

pub(crate) async fn measure() -> Result<()> {
    pin(SERVERS)?;
    let hub = TestHub::builder().config("topics.keep_messages = 20000").start().await?;
    pin(LOAD)?;
    let client = Arc::new(Client::http(&hub));
    for (what, subscribers) in [("alone", 0), ("with subscribers", SUBSCRIBERS)] {
        let topic = if subscribers == 0 { "bench/alone" } else { "bench/heard" };
        let mut readers = JoinSet::new();
        for _ in 0..subscribers {
            readers.spawn(read_all(Arc::clone(&client), topic));
        }
        let begun = Instant::now();
        let mut publishers = JoinSet::new();
        for publisher in 0..PUBLISHERS {
            let client = Arc::clone(&client);
            publishers.spawn(async move {
                for n in 0..MESSAGES / PUBLISHERS {
                    let text = format!("message {n} of publisher {publisher}");
                    let message = json!({ "topic": topic, "text": text });
                    client.call("hub/topics/publish", message).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = publishers.join_next().await {
            done??;
        }
        let published = begun.elapsed();
        while let Some(done) = readers.join_next().await {
            done??;
        }
        let all = begun.elapsed();
        println!(
            "topics, {what}: {MESSAGES} messages stored in {:.2} s ({:.0} a second)",
            published.as_secs_f64(),
            MESSAGES as f64 / published.as_secs_f64()
        );
        if subscribers > 0 {
            let read = (MESSAGES * subscribers) as f64 / all.as_secs_f64();
            println!(
                "topics, {what}: all {subscribers} had all of them in order after {:.2} s ({read:.0} a second)",
                all.as_secs_f64()
            );
        }
    }
    Ok(())
}

/// Reads until all messages were read, each once and in order.
async fn read_all(client: Arc<Client>, topic: &str) -> Result<()> {
    let (mut after, mut last) = (json!(0), 0);
    while last < MESSAGES {
        let asked = json!({ "pattern": topic, "after": after, "limit": 1_000, "waitMs": 10_000 });
        let page = client.call("hub/topics/read", asked).await?;
        ensure!(page["gaps"].is_null(), "messages were dropped: {page}");
        for message in page["messages"].as_array().context("no messages")? {
            ensure!(message["sequence"] == last + 1, "after {last}: {message}");
            last += 1;
        }
        after = Value::clone(&page["next"]);
    }
    Ok(())
}
