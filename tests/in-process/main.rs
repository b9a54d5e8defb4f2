//! Cost of a call of an agent in the same process: a plain function, a typed message, a JSON-RPC
//! value, the same with a store on disk, and a call over HTTP. All figures come from one process
//! and one run. Run `bench-in-process [CALLS]`, or `--instructions`, which `--check` compares with
//! the accepted ones and `--accept` accepts.
#![expect(clippy::print_stdout, reason = "a benchmark is run for what it prints")]

mod instructions;

use a2a_hub::{
    Builder, Ended, Hub, Stage, completed,
    config::Config,
    local::{Agent, card},
    protocol::{
        card::AgentCard,
        message::{Message, Role},
    },
};
use anyhow::{Context as _, Result, bail, ensure};
use instructions::Then;
use serde_json::json;
use std::{env, hint::black_box, time::Duration};
use tokio::{runtime, time::Instant};

/// Agent that returns its text in upper case.
struct Shout;

impl Agent for Shout {
    fn card(&self) -> AgentCard {
        card("Shout", "Says it louder", &["shout"])
    }

    async fn run(&self, stage: Stage) -> Ended {
        completed(&shout(&stage.text()))
    }
}

fn shout(text: &str) -> String {
    text.to_uppercase()
}

const WORDS: &str = "say it louder";

fn main() -> Result<()> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    // Instructions are counted, on one thread where possible.
    let alone = runtime::Builder::new_current_thread().enable_all().build()?;
    let count = |then| alone.block_on(instructions::measure(then));
    match arguments[..] {
        [] => measure(5_000),
        ["--instructions"] => count(Then::Print),
        ["--instructions", "--accept"] => count(Then::Accept),
        ["--instructions", "--check"] => count(Then::Check),
        ["--piece", piece, times] => alone.block_on(instructions::perform(piece, times.parse()?)),
        [calls] => measure(calls.parse().context("CALLS is a number; or say --instructions")?),
        _ => bail!("usage: bench-in-process [CALLS | --instructions [--accept | --check]]"),
    }
}

#[tokio::main]
async fn measure(calls: usize) -> Result<()> {
    println!("{calls} calls, one after the other          p50 us   p99 us");
    row("a plain function", calls, async || {
        black_box(shout(black_box(WORDS)));
        Ok(())
    })
    .await?;
    let mut config = Config::default();
    config.socket.enabled = false;
    config.http.port = 0;
    config.idempotency_window_ms = Some(0);
    config.agents.entry(a2a_hub::local::agent_id("shout")?).or_default().max_running = Some(64);
    let hub = start(Hub::in_memory().config(config)).await?;
    direct(&hub, "in memory", calls).await?;
    let url = format!("http://{}", hub.http_address().context("no HTTP")?);
    let client = reqwest::Client::new();
    row("HTTP, in memory", calls, async || {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": {
            "kind": "message", "role": "user", "messageId": "m", "parts": [{ "kind": "text", "text": WORDS }],
            "metadata": { "targetAgent": "shout" } } } });
        let answer = client.post(&url).json(&request).send().await?.text().await?;
        ensure!(answer.contains("SAY IT LOUDER"), "{answer}");
        Ok(())
    })
    .await?;
    hub.shutdown().await;
    let dir = tempfile::tempdir()?;
    let hub = start(Hub::builder(dir.path()).built_in(a2a_hub::BuiltIn::default())).await?;
    direct(&hub, "SQLite", calls.div_ceil(5)).await?;
    hub.shutdown().await;
    Ok(())
}

async fn start(builder: Builder) -> Result<Hub> {
    builder.register("shout", Shout)?.start().await
}

/// Measures both kinds of direct call.
async fn direct(hub: &Hub, store: &str, calls: usize) -> Result<()> {
    let agent = hub.local().agent("shout").context("no agent")?;
    row(&format!("a typed message, {store}"), calls, async || {
        let task = agent.send(Message::text(Role::User, WORDS)).await?;
        ensure!(task.status.message.is_some(), "it said nothing");
        Ok(())
    })
    .await?;
    row(&format!("tasks/send as a value, {store}"), calls, async || {
        let request = json!({ "jsonrpc": "2.0", "method": "tasks/send", "params": { "message": WORDS }, "id": 1 });
        let answer = agent.call(request).await;
        ensure!(answer["result"] == "SAY IT LOUDER", "{answer}");
        Ok(())
    })
    .await
}

/// Measures the calls one by one, after a warm-up.
async fn row(name: &str, calls: usize, mut call: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    for _ in 0..calls / 10 {
        call().await?;
    }
    let mut took = Vec::with_capacity(calls);
    for _ in 0..calls {
        let begun = Instant::now();
        call().await?;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    let micros = |per_hundred: usize| {
        let at = took.get(took.len() * per_hundred / 100).copied().unwrap_or(Duration::ZERO);
        at.as_nanos() as f64 / 1_000.0
    };
    println!("{name:<36} {:>9.2} {:>8.2}", micros(50), micros(99));
    Ok(())
}
