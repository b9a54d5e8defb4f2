//! Many concurrent streams with an event per second each: time until all are open, delay of their
//! events, and cost, compared with a server that only stores and sends them.

use crate::{
    LOAD, SERVERS,
    bare::{Bare, Kind},
    load::{self, Connection, PACE, TICKS},
    pin,
    profile::spent,
};
use a2a_hub_tests::{TestHub, proportional_bytes, test_guests};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// Number of streams with much output, and the time of their measurement: each has then sent more
/// than is buffered for a slow subscriber.
const LONG: u32 = 100;
const LONG_ENOUGH: Duration = Duration::from_secs(6);
const LONG_TEXT: &str = "tick 400 20";

/// File descriptors beside those of the streams.
const OTHERS: u64 = 200;

/// Results of all streams.
struct Heard {
    /// Time until each stream had sent its first event.
    open: Duration,
    /// Delay of an event after the previous one, beyond the interval.
    late_p50: Duration,
    late_p99: Duration,
    lost: usize,
    /// CPU time per event, in microseconds.
    cpu: f64,
    /// Growth of the server's memory per stream halfway, in bytes.
    bytes: u64,
}

/// Prints the results twice: the first run pays for resources that later ones share.
pub(crate) async fn measure(streams: u32, kind: Kind) -> Result<()> {
    open_files(u64::from(streams) + OTHERS)?;
    pin(SERVERS)?;
    let config = format!(
        "max_tasks = {0}\nmax_streams = {0}\nagents.guest.max_running = {streams}",
        2 * streams
    );
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let bare = Bare::start(Kind { durable: true, ..kind }).await?;
    pin(LOAD)?;
    let address = hub.http().parse().context("the hub serves HTTP at no address")?;
    let pid = bare.pid().context("the bare server is gone")?;
    for round in ["the first time", "once more"] {
        println!("\n{streams} streams, {TICKS} events each, one in {PACE:?}, {round}");
        println!("               open ms   late p50 ms   late p99 ms    lost    cpu us   kB each");
        let of_hub = listen(address, hub.pid(), "/", streams).await?;
        let of_bare = listen(bare.address(), pid, "/ticks", streams).await?;
        for (name, heard) in [("hub", &of_hub), ("bare + disk", &of_bare)] {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let Heard { open, late_p50, late_p99, lost, cpu, bytes } = heard;
            let (open, p50, p99) = (ms(*open), ms(*late_p50), ms(*late_p99));
            let each = bytes / 1024;
            println!("{name:<12}{open:>10.0}{p50:>14.1}{p99:>14.1}{lost:>8}{cpu:>10.1}{each:>10}");
        }
        let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
        println!(
            "{:<12}{:>10.1}{:>14.1}{:>14.1}{:>18.1}{:>10.1}",
            "ratio",
            ratio(of_hub.open, of_bare.open),
            ratio(of_hub.late_p50, of_bare.late_p50),
            ratio(of_hub.late_p99, of_bare.late_p99),
            of_hub.cpu / of_bare.cpu,
            of_hub.bytes as f64 / of_bare.bytes.max(1) as f64,
        );
    }
    let long = load::message_stream("guest", LONG_TEXT);
    let (before, mut clients) = (memory_of(hub.pid())?, JoinSet::new());
    for _ in 0..LONG {
        let body = long.clone();
        clients.spawn(async move { Connection::open(address).await?.post_ticks("/", &body).await });
    }
    sleep(LONG_ENOUGH).await;
    let each = memory_of(hub.pid())?.saturating_sub(before) / u64::from(LONG);
    println!("\n{LONG} streams that have told some 300 chunks: {} kB each", each / 1024);
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

/// Proportional memory of a server, in bytes.
fn memory_of(server: u32) -> Result<u64> {
    proportional_bytes(server).context("the server is gone")
}

/// Opens all streams at once, and reads them to their ends.
async fn listen(address: SocketAddr, pid: u32, path: &'static str, streams: u32) -> Result<Heard> {
    let (before, had, begun) = (spent(pid)?, memory_of(pid)?, Instant::now());
    let mut clients = JoinSet::new();
    for _ in 0..streams {
        clients.spawn(async move {
            let mut connection = Connection::open(address).await?;
            connection.post_ticks(path, &load::ticks()).await
        });
    }
    sleep(PACE * TICKS / 2).await;
    let bytes = memory_of(pid)?.saturating_sub(had) / u64::from(streams);
    let (mut open, mut late, mut count) = (Duration::ZERO, Vec::new(), 0);
    while let Some(client) = clients.join_next().await {
        let ticks = client??;
        count += ticks.len();
        open = open.max(*ticks.first().context("a stream without an event")? - begun);
        late.extend(ticks.windows(2).map(|two| (two[1] - two[0]).saturating_sub(PACE)));
    }
    late.sort_unstable();
    let percentile = |p: usize| late.get(late.len() * p / 100).copied().unwrap_or_default();
    let lost = (streams as usize * TICKS as usize).saturating_sub(count);
    let cpu = spent(pid)?.saturating_sub(before).as_secs_f64() * 1e6 / count as f64;
    Ok(Heard { open, late_p50: percentile(50), late_p99: percentile(99), lost, cpu, bytes })
}

/// Raises the limit of open files of this process and its children.
fn open_files(wanted: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        wanted <= most,
        "{wanted} files may not be open here, {most} may: ask for fewer streams"
    );
    let raised = limit.current.map(|current| current.max(wanted));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: raised, ..limit })?)
}
