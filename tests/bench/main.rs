//! What the hub costs: its speed beside bare servers that do the same without it, and its memory for a waiting task.
//!
//! Figures of different runs do not compare, for machines differ and so do their moods; the ratios of one run do.
//! Servers share one core, and the load comes from another.
#![expect(clippy::print_stdout, reason = "a benchmark is run for what it prints")]

mod bare;
mod guest;
mod load;
mod waiting;

use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result, ensure};
use bare::{Bare, Durability};
use clap::Parser;
use load::{Connection, Sample};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::{net::SocketAddr, time::Duration};
use tokio::runtime;

/// Where the servers run, and where the load comes from.
const SERVERS: usize = 0;
const LOAD: usize = 1;

/// Requests at once.
const CONCURRENCIES: [usize; 2] = [1, 16];

/// What is thrown away before each measurement.
const WARM_UP: Duration = Duration::from_millis(200);

/// Measures the hub that `A2A_HUB_BIN` names, or else the one beside this program.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds over all servers; medians count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Milliseconds for each server in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    millis: u64,
    /// Tasks to leave waiting for input
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5000))]
    tasks: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        unary(&args).await?;
        guest::measure().await?;
        waiting::measure(args.tasks).await
    })
}

/// The hub's echo beside the bare ones.
async fn unary(args: &Args) -> Result<()> {
    // A process inherits the core of the thread that starts it.
    pin(SERVERS)?;
    let mut hub = TestHub::start().await?;
    pin(LOAD)?;
    let hub_address = hub.http().parse().context("the hub serves HTTP at no address")?;
    let size = answer_size(hub_address).await?;
    let bare = Bare::start(Durability::None, size)?;
    let durable = Bare::start(Durability::Row, size)?;
    let servers =
        [("hub", hub_address), ("bare + row", durable.address()), ("bare", bare.address())];

    println!(
        "unary echo, {size} bytes of answer, medians of {} rounds of {} ms",
        args.rounds, args.millis
    );
    for concurrency in CONCURRENCIES {
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..args.rounds {
            for ((_, address), samples) in servers.iter().zip(&mut samples) {
                load::run(*address, concurrency, WARM_UP).await?;
                let millis = Duration::from_millis(args.millis);
                samples.push(load::run(*address, concurrency, millis).await?);
            }
        }
        print_table(concurrency, &servers.map(|(name, _)| name), &samples.map(Sample::median));
    }
    hub.stop().await?;
    Ok(())
}

/// The ratio is to the server that stores a row as durably as the hub does, and nothing else.
fn print_table(concurrency: usize, names: &[&str; 3], medians: &[Sample; 3]) {
    println!("\n{concurrency:>3} at once      req/s    p50 us    p99 us     ratio");
    let [_, durable, _] = medians;
    for (name, sample) in names.iter().zip(medians) {
        println!(
            "{name:<12}{:>11.0}{:>10.0}{:>10.0}{:>10.2}",
            sample.per_second,
            sample.p50.as_secs_f64() * 1e6,
            sample.p99.as_secs_f64() * 1e6,
            sample.per_second / durable.per_second,
        );
    }
}

/// How long the hub's answers are, once it is sure that they are answers.
async fn answer_size(hub: SocketAddr) -> Result<usize> {
    let mut connection = Connection::open(hub).await?;
    let answer = connection.post(&load::request()).await?;
    let task: Value = serde_json::from_slice(answer)?;
    let state = &task["result"]["status"]["state"];
    ensure!(state == "completed" || state == "TASK_STATE_COMPLETED", "no echo, but {task}");
    Ok(answer.len())
}

/// Keeps this thread, and what it starts, on one core.
fn pin(cpu: usize) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).with_context(|| {
        format!("failed to keep to core {cpu}; cores {SERVERS} and {LOAD} are needed")
    })
}
