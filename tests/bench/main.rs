//! Benchmarks of the hub: its speed compared with baseline servers that do the same work, its
//! start, and its memory.
//!
//! Figures of different runs are not comparable, since machines and their load differ; the ratios
//! within one run are. Servers share one core, and the load comes from another.
#![expect(clippy::print_stdout, reason = "a benchmark is run for what it prints")]

mod bare;
mod calls;
mod cold;
mod finding;
mod flows;
mod growth;
mod guest;
mod hostile;
mod load;
mod minds;
mod plugins;
mod profile;
mod programs;
mod race;
mod ratios;
mod streams;
mod topics;
mod waiting;

use anyhow::{Context as _, Result};
use bare::Kind;
use clap::{Parser, Subcommand};
use race::Servers;
use ratios::Ratios;
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_setaffinity},
};
use std::{fs, time::Duration};
use tokio::runtime;

/// Cores of the servers and of the load generator.
const SERVERS: usize = 0;
const LOAD: usize = 1;

/// Discarded time before each measurement.
const WARM_UP: Duration = Duration::from_millis(200);

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
    /// Start the servers as on a machine of many cores, and then keep all their threads on one:
    /// what switching between them costs shows
    #[arg(long)]
    one_core: bool,
    /// Race only, and fail if a ratio is more than 15 % below the accepted one
    #[arg(long)]
    check: bool,
    /// Race only, and accept the ratios from now on
    #[arg(long, conflicts_with = "check")]
    accept: bool,
    /// Print what the hub spends its time on instead, with `perf` if it is there
    #[arg(long)]
    profile: bool,
    /// Measure only what it costs that one agent calls another
    #[arg(long)]
    calls: bool,
    /// Measure only what flows and worktrees cost
    #[arg(long)]
    flows: bool,
    /// Measure only what it costs to find agents among many
    #[arg(long)]
    finding: bool,
    /// Measure only what topics cost
    #[arg(long)]
    topics: bool,
    /// Measure only what it costs to have something in mind, and to hand it over
    #[arg(long)]
    minds: bool,
    /// Measure only what plug-ins from the folder cost, and the first event of an agent that thinks
    #[arg(long)]
    plugins: bool,
    /// Measure only how costs grow: with stored tasks, agents, the size of messages, and listeners
    #[arg(long)]
    growth: bool,
    /// Measure only what is added to a turn of a command line agent
    #[arg(long)]
    programs: bool,
    /// Measure only that many streams that are open at once, an event a second each
    #[arg(long, num_args = 0..=1, default_missing_value = "1000", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: Option<u32>,
    /// Measure honest tasks beside hostile ones instead: beside all behaviours, or those whose
    /// names hold this
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
        if args.topics {
            return topics::measure().await;
        }
        if args.flows {
            return flows::measure(args.rounds, Duration::from_millis(args.millis)).await;
        }
        if args.calls {
            let kind = Servers::start(false).await?.kind();
            return calls::measure(args.rounds, Duration::from_millis(args.millis), kind).await;
        }
        if let Some(streams) = args.streams {
            let kind = Servers::start(false).await?.kind();
            return streams::measure(streams, kind).await;
        }
        if args.plugins {
            let kind = Servers::start(false).await?.kind();
            return plugins::measure(args.rounds, Duration::from_millis(args.millis), kind).await;
        }
        if args.growth {
            return growth::measure().await;
        }
        if args.minds {
            return minds::measure().await;
        }
        if let Some(behaviour) = &args.hostile {
            return hostile::measure(behaviour).await;
        }
        let servers = Servers::start(args.one_core).await?;
        if args.profile {
            return servers.profile(&args).await;
        }
        let ratios = servers.race(&args).await?;
        let mode = if args.one_core { "one core" } else { "own" };
        if args.accept {
            return ratios.accept(mode);
        }
        if args.check {
            return Ratios::accepted(mode)?.check(&ratios);
        }
        let kind = servers.kind();
        drop(servers);
        if args.one_core {
            return Ok(());
        }
        plugins::measure(args.rounds, Duration::from_millis(args.millis), kind).await?;
        calls::measure(args.rounds, Duration::from_millis(args.millis), kind).await?;
        finding::measure()?;
        minds::measure().await?;
        programs::measure().await?;
        guest::measure().await?;
        cold::measure().await?;
        waiting::measure(args.tasks).await
    })
}

/// Pins this thread, and the processes that it starts, to one core.
fn pin(cpu: usize) -> Result<()> {
    keep_to(None, &[cpu])
}

/// Pins a thread, or this one, to these cores.
fn keep_to(thread: Option<Pid>, cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    sched_setaffinity(thread, &set).with_context(|| {
        format!("failed to keep to {cpus:?}; cores {SERVERS} and {LOAD} are needed")
    })
}

/// Pins all threads of a process to one core, and those that it starts later.
fn pin_process(pid: u32, cpu: usize) -> Result<()> {
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("the server is gone")? {
        let id = thread?.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        keep_to(id, &[cpu])?;
    }
    Ok(())
}
