//! What the hub costs: its speed beside bare servers that do the same without it, its start, and its memory.
//!
//! Figures of different runs do not compare, for machines differ and so do their moods; the ratios of one run do.
//! Servers share one core, and the load comes from another.
#![expect(clippy::print_stdout, reason = "a benchmark is run for what it prints")]

mod bare;
mod calls;
mod cold;
mod finding;
mod guest;
mod hostile;
mod load;
mod minds;
mod profile;
mod programs;
mod waiting;

use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result, ensure};
use bare::{Bare, Kind};
use clap::{Parser, Subcommand};
use load::{Connection, Sample, Work};
use profile::Watch;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::{net::SocketAddr, time::Duration};
use tokio::runtime;

/// Where the servers run, and where the load comes from.
const SERVERS: usize = 0;
const LOAD: usize = 1;

/// Requests at once.
const CONCURRENCIES: [usize; 2] = [1, 16];

/// Those that are profiled.
const PROFILED: usize = 16;

/// What is thrown away before each measurement.
const WARM_UP: Duration = Duration::from_millis(200);

/// Tasks that are looked at in turn.
const TASKS: usize = 64;

/// Measures the hub that `A2A_HUB_BIN` names, or else the one beside this program.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    role: Option<Role>,
    /// Rounds over all servers; medians count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Milliseconds for each server in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    millis: u64,
    /// Tasks to leave waiting for input
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5000))]
    tasks: u32,
    /// Print what the hub spends its time on instead, with `perf` if it is there
    #[arg(long)]
    profile: bool,
    /// Measure only what it costs that one agent calls another
    #[arg(long)]
    calls: bool,
    /// Measure only what it costs to find agents among many
    #[arg(long)]
    finding: bool,
    /// Measure only what it costs to have something in mind, and to hand it over
    #[arg(long)]
    minds: bool,
    /// Measure only what is added to a turn of a command line agent
    #[arg(long)]
    programs: bool,
    /// Measure honest tasks beside hostile ones instead: beside all behaviours, or those whose names hold this
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "BEHAVIOUR")]
    hostile: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be a bare server
    #[command(hide = true)]
    Bare(Kind),
    /// Be a command line agent that answers at once
    #[command(hide = true)]
    Program,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(Role::Program) = args.role {
        return programs::answer();
    }
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        if let Some(Role::Bare(kind)) = args.role {
            return bare::serve(kind).await;
        }
        if args.programs {
            return programs::measure().await;
        }
        if args.finding {
            return finding::measure();
        }
        if args.calls {
            let kind = Servers::start().await?.kind;
            return calls::measure(args.rounds, Duration::from_millis(args.millis), kind).await;
        }
        if args.minds {
            return minds::measure().await;
        }
        if let Some(behaviour) = &args.hostile {
            return hostile::measure(behaviour).await;
        }
        let servers = Servers::start().await?;
        if args.profile {
            return servers.profile(&args).await;
        }
        servers.race(&args).await?;
        let kind = servers.kind;
        drop(servers);
        calls::measure(args.rounds, Duration::from_millis(args.millis), kind).await?;
        finding::measure()?;
        minds::measure().await?;
        programs::measure().await?;
        guest::measure().await?;
        cold::measure().await?;
        waiting::measure(args.tasks).await
    })
}

/// The hub, and two servers that do the same without it.
struct Servers {
    hub: TestHub,
    address: SocketAddr,
    durable: Bare,
    bare: Bare,
    /// What a bare server is like.
    kind: Kind,
}

impl Servers {
    async fn start() -> Result<Self> {
        // A process inherits the core of the thread that starts it.
        pin(SERVERS)?;
        let hub = TestHub::start().await?;
        let address = hub.http().parse().context("the hub serves HTTP at no address")?;
        let kind = like_the_hub(address).await?;
        println!("{} bytes of answer, {} bytes a chunk", kind.answer, kind.event);
        let durable = Bare::start(Kind { durable: true, ..kind }).await?;
        let bare = Bare::start(kind).await?;
        pin(LOAD)?;
        Ok(Self { hub, address, durable, bare, kind })
    }

    /// Each kind of work on each server, round after round.
    async fn race(&self, args: &Args) -> Result<()> {
        println!("medians of {} rounds of {} ms", args.rounds, args.millis);
        let millis = Duration::from_millis(args.millis);
        let (here, there) = (tasks(self.address).await?, tasks(self.durable.address()).await?);
        let look = |path, tasks: &[String]| Work::Get(path, tasks.into());
        for (title, hub, bare) in [
            ("message/send, requests", Work::Send, Work::Send),
            ("message/stream, chunks; until the first", Work::Stream, Work::Stream),
            ("tasks/get, requests", look("/", &here), look("/get", &there)),
        ] {
            for concurrency in CONCURRENCIES {
                let servers = [
                    ("hub", self.address, &hub),
                    ("bare + disk", self.durable.address(), &bare),
                    ("bare", self.bare.address(), &bare),
                ];
                let mut samples = [const { Vec::new() }; 3];
                for _ in 0..args.rounds {
                    for ((_, address, work), samples) in servers.iter().zip(&mut samples) {
                        load::run(*address, work, concurrency, WARM_UP).await?;
                        samples.push(load::run(*address, work, concurrency, millis).await?);
                    }
                }
                println!("\n{title}, {concurrency} at once");
                print_table(servers.map(|(name, ..)| name), samples.map(Sample::median));
            }
        }
        Ok(())
    }

    /// What the hub, and the durable bare server, spend their time on.
    async fn profile(&self, args: &Args) -> Result<()> {
        let millis = Duration::from_millis(args.millis);
        let durable = self.durable.pid().context("the bare server is gone")?;
        for (title, work) in [("message/send", Work::Send), ("message/stream", Work::Stream)] {
            for (name, address, pid) in [
                ("hub", self.address, self.hub.pid()),
                ("bare + disk", self.durable.address(), durable),
            ] {
                load::run(address, &work, PROFILED, WARM_UP).await?;
                let watch = Watch::start(pid, millis)?;
                let sample = load::run(address, &work, PROFILED, millis).await?;
                let title = format!("{name}, {title}, {PROFILED} at once");
                watch.print(&title, sample.per_second * millis.as_secs_f64()).await?;
            }
        }
        Ok(())
    }
}

/// The ratio is to the server that stores as durably as the hub does, and does nothing else.
fn print_table(names: [&str; 3], medians: [Sample; 3]) {
    println!("                  /s    p50 us    p99 us     ratio");
    let [_, durable, _] = medians;
    for (name, sample) in names.iter().zip(medians) {
        println!(
            "{name:<12}{:>8.0}{:>10.0}{:>10.0}{:>10.2}",
            sample.per_second,
            sample.p50.as_secs_f64() * 1e6,
            sample.p99.as_secs_f64() * 1e6,
            sample.per_second / durable.per_second,
        );
    }
}

/// A bare server whose answers and events are as long as the hub's, once it is sure that these are answers.
async fn like_the_hub(hub: SocketAddr) -> Result<Kind> {
    let mut connection = Connection::open(hub).await?;
    let answer = connection.post("/", &load::send()).await?;
    let task: Value = serde_json::from_slice(answer)?;
    ensure!(task["result"]["status"]["state"] == "completed", "no echo, but {task}");
    let answer = answer.len();
    let event = connection.post_stream(&load::stream()).await?.longest;
    Ok(Kind { answer, event, ..Kind::default() })
}

/// Some tasks to look at.
async fn tasks(server: SocketAddr) -> Result<Vec<String>> {
    let mut connection = Connection::open(server).await?;
    let mut tasks = Vec::with_capacity(TASKS);
    for _ in 0..TASKS {
        let answer: Value = serde_json::from_slice(connection.post("/", &load::send()).await?)?;
        tasks.push(answer["result"]["id"].as_str().context("a task without an id")?.to_owned());
    }
    Ok(tasks)
}

/// Keeps this thread, and what it starts, on one core.
fn pin(cpu: usize) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).with_context(|| {
        format!("failed to keep to core {cpu}; cores {SERVERS} and {LOAD} are needed")
    })
}
