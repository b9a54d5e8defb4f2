//! Comparison of the hub with two baseline servers that do the same work, round after round.

use crate::{
    Args, LOAD, SERVERS, WARM_UP,
    bare::{Bare, Kind},
    keep_to,
    load::{self, Connection, Sample, Work},
    pin, pin_process,
    profile::{self, Watch},
    ratios::Ratios,
};
use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::{net::SocketAddr, time::Duration};

/// Number of connections during profiling.
const PROFILED: usize = 16;

/// Number of tasks that are read in turn.
const TASKS: usize = 64;

/// Hub with two baseline servers.
pub(crate) struct Servers {
    hub: TestHub,
    address: SocketAddr,
    durable: Bare,
    bare: Bare,
    /// Properties of the baseline servers.
    kind: Kind,
}

/// Compared work: its name, the requests to the hub and to the others, and the numbers of
/// connections.
struct Race {
    title: &'static str,
    of_hub: Work,
    of_others: Work,
    concurrency: &'static [usize],
}

/// One server in a comparison.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'w> {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
    pub(crate) work: &'w Work,
}

/// Results of a server: its speed, and the CPU time per piece of work in microseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) sample: Sample,
    pub(crate) cpu: f64,
}

impl Servers {
    /// Starts the servers. With `is_one` they start as on a machine of many cores and are pinned to
    /// one core afterwards, so their threads take turns. Otherwise they find one core and start one
    /// thread for it.
    pub(crate) async fn start(is_one: bool) -> Result<Self> {
        // A process inherits the core of the thread that starts it.
        if is_one {
            keep_to(None, &[SERVERS, LOAD])?;
        } else {
            pin(SERVERS)?;
        }
        let hub = TestHub::start().await?;
        let address = hub.http().parse().context("the hub serves HTTP at no address")?;
        let kind = like_the_hub(address).await?;
        println!("{} bytes of answer, {} bytes a chunk", kind.answer, kind.event);
        let durable = Bare::start(Kind { durable: true, ..kind }).await?;
        let bare = Bare::start(kind).await?;
        pin(LOAD)?;
        let servers = Self { hub, address, durable, bare, kind };
        if is_one {
            for pid in [servers.hub.pid(), running(&servers.durable)?, running(&servers.bare)?] {
                pin_process(pid, SERVERS)?;
            }
        }
        Ok(servers)
    }

    /// Properties of the baseline servers.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Runs each kind of work on each server, round after round. Returns the hub's rates as ratios
    /// to the durable baseline server.
    pub(crate) async fn race(&self, args: &Args) -> Result<Ratios> {
        println!("medians of {} rounds of {} ms", args.rounds, args.millis);
        let (here, there) = (tasks(self.address).await?, tasks(self.durable.address()).await?);
        let look = |path, tasks: &[String]| Work::Get(path, tasks.into());
        let races = [
            Race {
                title: "message/send, requests",
                of_hub: Work::Send,
                of_others: Work::Send,
                concurrency: &[1, 16, 64],
            },
            Race {
                title: "message/stream, chunks; until the first",
                of_hub: Work::Stream,
                of_others: Work::Stream,
                concurrency: &[1, 16],
            },
            Race {
                title: "tasks/get, requests",
                of_hub: look("/", &here),
                of_others: look("/get", &there),
                concurrency: &[1, 16],
            },
        ];
        let mut ratios = Ratios::default();
        for race in races {
            for concurrency in race.concurrency {
                let title = format!("{}, {concurrency} at once", race.title);
                let ratio = self.run(args, &race, *concurrency, &title).await?;
                ratios.insert(title, ratio);
            }
        }
        Ok(ratios)
    }

    /// Runs one comparison and returns the ratio of the rates.
    async fn run(&self, args: &Args, race: &Race, concurrency: usize, title: &str) -> Result<f64> {
        let (durable, bare) = (running(&self.durable)?, running(&self.bare)?);
        let other = &race.of_others;
        let (hub_at, durable_at, bare_at) =
            (self.address, self.durable.address(), self.bare.address());
        let runners = [
            Runner { name: "hub", address: hub_at, pid: self.hub.pid(), work: &race.of_hub },
            Runner { name: "bare + disk", address: durable_at, pid: durable, work: other },
            Runner { name: "bare", address: bare_at, pid: bare, work: other },
        ];
        let mut rounds = [const { Vec::new() }; 3];
        for _ in 0..args.rounds {
            for (runner, rounds) in runners.iter().zip(&mut rounds) {
                rounds.push(runner.run(concurrency, Duration::from_millis(args.millis)).await?);
            }
        }
        println!("\n{title}");
        let figures = rounds.map(Figures::median);
        print_table(runners.map(|runner| runner.name), figures);
        let [hub, durable, _] = figures;
        Ok(hub.sample.per_second / durable.sample.per_second)
    }

    /// Profiles the hub and the durable baseline server.
    pub(crate) async fn profile(&self, args: &Args) -> Result<()> {
        let millis = Duration::from_millis(args.millis);
        let (here, there) = (tasks(self.address).await?, tasks(self.durable.address()).await?);
        let look = |path, tasks: &[String]| Work::Get(path, tasks.into());
        for (title, of_hub, of_other) in [
            ("message/send", Work::Send, Work::Send),
            ("message/stream", Work::Stream, Work::Stream),
            ("tasks/get", look("/", &here), look("/get", &there)),
        ] {
            for (name, address, pid, work) in [
                ("hub", self.address, self.hub.pid(), of_hub),
                ("bare + disk", self.durable.address(), running(&self.durable)?, of_other),
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

impl Runner<'_> {
    /// Generates load for that duration, after a warm-up.
    pub(crate) async fn run(&self, concurrency: usize, duration: Duration) -> Result<Figures> {
        load::run(self.address, self.work, concurrency, WARM_UP).await?;
        let before = profile::spent(self.pid)?;
        let sample = load::run(self.address, self.work, concurrency, duration).await?;
        let spent = profile::spent(self.pid)?.saturating_sub(before);
        let pieces = sample.per_second * sample.took.as_secs_f64();
        Ok(Figures { sample, cpu: spent.as_secs_f64() * 1e6 / pieces })
    }
}

impl Figures {
    /// Median of each figure.
    pub(crate) fn median(rounds: Vec<Self>) -> Self {
        let cpu = load::middle(rounds.iter().map(|round| round.cpu), f64::total_cmp);
        let sample = Sample::median(rounds.into_iter().map(|round| round.sample).collect());
        Self { sample, cpu }
    }
}

/// Prints the table. Ratios refer to the server that stores as durably as the hub and does nothing
/// else.
fn print_table(names: [&str; 3], figures: [Figures; 3]) {
    println!(
        "                  /s    p50 us    p99 us    cpu us   ratios: /s       p50       p99       cpu"
    );
    let [_, to, _] = figures;
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    for (name, Figures { sample, cpu }) in names.iter().zip(figures) {
        let (p50, p99) = (micros(sample.p50), micros(sample.p99));
        println!(
            "{name:<12}{:>8.0}{p50:>10.0}{p99:>10.0}{cpu:>10.1}{:>13.2}{:>10.1}{:>10.1}{:>10.1}",
            sample.per_second,
            sample.per_second / to.sample.per_second,
            p50 / micros(to.sample.p50),
            p99 / micros(to.sample.p99),
            cpu / to.cpu,
        );
    }
}

fn running(server: &Bare) -> Result<u32> {
    server.pid().context("the bare server is gone")
}
/// Properties of a baseline server whose responses and events are as long as the hub's. Checks that
/// the hub's responses are valid.
async fn like_the_hub(hub: SocketAddr) -> Result<Kind> {
    let mut connection = Connection::open(hub).await?;
    let answer = connection.post("/", &load::send()).await?;
    let task: Value = serde_json::from_slice(answer)?;
    ensure!(task["result"]["status"]["state"] == "completed", "no echo, but {task}");
    let answer = answer.len();
    let event = connection.post_stream(&load::stream()).await?.longest;
    Ok(Kind { answer, event, ..Kind::default() })
}

/// Creates tasks to be read.
async fn tasks(server: SocketAddr) -> Result<Vec<String>> {
    let mut connection = Connection::open(server).await?;
    let mut tasks = Vec::with_capacity(TASKS);
    for _ in 0..TASKS {
        let answer: Value = serde_json::from_slice(connection.post("/", &load::send()).await?)?;
        tasks.push(answer["result"]["id"].as_str().context("a task without an id")?.to_owned());
    }
    Ok(tasks)
}
