//! Honest tasks beside hostile ones: how long an answer takes while other agents do their worst, and what of the memory they
//! took is given back.

use crate::load::{self, Connection, Sample, Work};
use a2a_hub_process::daemon::ALLOCATOR;
use a2a_hub_tests::{Client, TestHub, resident_bytes, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::{process::Command, runtime, task::JoinSet, time::sleep};

/// The row whose clients wait until their tasks are over, although these ask them something at once: left alone, as in the row below it, tasks
/// that ask become more and more.
const FOLLOWED: &str = "questions";

/// Between what one hostile task is told and what the next one is.
const AND: &str = " | ";

/// What the hostile agent is told, under a name for people.
const BEHAVIOURS: [(&str, &str); 23] = [
    ("spin", "spin"),
    ("memory", "bomb"),
    ("recursion", "recurse"),
    ("traps", "trap"),
    ("events", "flood-forever"),
    ("small data parts", "flood-data 1000"),
    ("large data parts", "flood-data 1000000"),
    ("giant strings", "flood-text 4000000"),
    // Of the longest ends that there are, and of the longest that the hub takes.
    ("long ends", "end-long 7000000"),
    ("ends", "end-long 1000000"),
    ("logs", "log-flood 10000000"),
    ("standard output", "flood-stdout"),
    ("standard error", "flood-stderr"),
    ("random bytes", "flood-random"),
    ("waits of no time", "flood-glances"),
    ("memory sets", "flood-memory"),
    ("files", "put-many 1000000"),
    ("arguments", "flood-arguments"),
    (FOLLOWED, "flood-questions 100000"),
    ("questions, left", "flood-questions 100000"),
    ("many tasks", "reply x"),
    // Whoever spins leaves what the others store, or have read, few turns.
    ("spin, with events", "spin | flood-forever"),
    ("spin, with files", "spin | put-many 1000000"),
];

/// Hostile tasks at once.
const HOSTILE: usize = 8;

/// How often a client looks whether a task that asks it something is over.
const LOOK: Duration = Duration::from_millis(50);

/// How long the honest answers are measured, alone and beside each behaviour.
const MEASURED: Duration = Duration::from_secs(4);

/// For the hostile tasks to be at work.
const WARM_UP: Duration = Duration::from_secs(1);

/// When what hostile tasks took is to be back.
const BACK_AFTER: Duration = Duration::from_secs(10);

/// What the operator grants the hostile agent: everything that it can do harm with. Its breaker would end the matter soon.
const CONFIG: &str = "
    breaker.failures = 1000000000
    [agents.guest]
    answer_timeout_ms = 1000
    [agents.guest.grant]
    memory = true
    files = true
    [agents.guest.grant.process.formed]
";

/// Honest tasks are answered within twice the time that they take alone, and within this.
const AT_MOST: Duration = Duration::from_millis(25);

/// What keeps a core busy that is none of the hub's business, at the lowest priority.
const BUSY_LOOP: &str = "exec nice -n 19 sh -c 'while :; do :; done'";

/// Prints a row for each behaviour whose name holds `wanted`.
pub(crate) async fn measure(wanted: &str) -> Result<()> {
    let busy = on_a_busy_machine().await?;
    println!("echo, one task after the other, beside {HOSTILE} hostile tasks at once");
    println!(
        "p99 beside nothing but a busy loop a core, at the lowest priority and outside of the hub: {:.2} ms",
        busy.as_secs_f64() * 1e3
    );
    println!(
        "{:<18}{:>9}{:>9}{:>11}{:>11}{:>7}{:>8}{:>8}{:>8}{:>8}{:>9}",
        "ms",
        "p50",
        "p99",
        "p50 beside",
        "p99 beside",
        "ratio",
        "to busy",
        "MB",
        "most",
        "after",
        "hostile"
    );
    for (name, text) in BEHAVIOURS.iter().filter(|(name, _)| name.contains(wanted)) {
        beside(name, text, busy).await.with_context(|| (*name).to_owned())?;
    }
    Ok(())
}

async fn hub() -> Result<(TestHub, SocketAddr)> {
    let mut builder = TestHub::builder().config(CONFIG).plugin("guest", test_guests()?);
    // As `a2a-hub start` does.
    for (name, value) in ALLOCATOR {
        builder = builder.env(name, value);
    }
    let hub = builder.start().await?;
    let address: SocketAddr = hub.http().parse().context("the hub serves HTTP at no address")?;
    Ok((hub, address))
}

/// The p99 of an honest answer where nobody is hostile, and the machine has something else to do: no host can be expected to be
/// better beside an agent that keeps its cores busy.
#[expect(clippy::disallowed_methods, reason = "it is to be outside of the hub and of its minders")]
async fn on_a_busy_machine() -> Result<Duration> {
    let (_hub, address) = hub().await?;
    load::run(address, &Work::Send, 1, WARM_UP).await?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let start = |_| Command::new("sh").args(["-c", BUSY_LOOP]).kill_on_drop(true).spawn();
    let _loops = (0..cores).map(start).collect::<Result<Vec<_>, _>>()?;
    sleep(WARM_UP).await;
    Ok(load::run(address, &Work::Send, 1, MEASURED).await?.p99)
}

async fn beside(name: &str, text: &str, busy: Duration) -> Result<()> {
    let (mut hub, address) = hub().await?;
    load::run(address, &Work::Send, 1, WARM_UP).await?;
    let alone = load::run(address, &Work::Send, 1, MEASURED).await?;
    let base = resident_bytes(hub.pid()).context("the hub is gone")?;

    let hostile = Hostile::start(address, text, name == FOLLOWED);
    sleep(WARM_UP).await;
    let beside = load::run(address, &Work::Send, 1, MEASURED).await?;
    let most = resident_bytes(hub.pid()).context("the hub is gone")?;
    let tasks = hostile.stop();
    end_tasks(&Client::unix(&hub)).await?;
    sleep(BACK_AFTER).await;
    let after = resident_bytes(hub.pid()).context("the hub is gone")?;
    hub.kill9().await?;

    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let Sample { p50, p99, .. } = alone;
    let ratio = ms(beside.p99) / ms(p99);
    let to_busy = ms(beside.p99) / ms(busy);
    let held = (ratio <= 2.0 || to_busy <= 2.0) && beside.p99 < AT_MOST;
    let kept = after <= base + base / 10;
    println!(
        "{name:<18}{:>9.2}{:>9.2}{:>11.2}{:>11.2}{ratio:>7.1}{to_busy:>8.1}{:>8}{:>8}{:>8}{tasks:>9}{}{}",
        ms(p50),
        ms(p99),
        ms(beside.p50),
        ms(beside.p99),
        base >> 20,
        most >> 20,
        after >> 20,
        if held { "" } else { "  slow" },
        if kept { "" } else { "  keeps memory" },
    );
    Ok(())
}

/// Cancels what nobody waits for any more.
async fn end_tasks(client: &Client) -> Result<()> {
    for state in ["working", "submitted", "input-required"] {
        let wanted = json!({ "agentId": "guest", "state": state, "limit": 100 });
        let list = client.call("hub/tasks/list", wanted).await?;
        for task in list.as_array().into_iter().flatten() {
            // It may be over by now.
            let _ = client.call("tasks/cancel", json!({ "id": task["id"] })).await;
        }
    }
    Ok(())
}

/// Clients of the hostile agent, on a thread of their own: each sends the next task once it is answered or, to `follow`, over.
struct Hostile {
    stop: Arc<AtomicBool>,
    /// How many tasks were answered.
    answered: Arc<AtomicU64>,
}

impl Hostile {
    fn start(address: SocketAddr, text: &str, follow: bool) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&answered));
        let bodies: Vec<_> = text.split(AND).map(|text| load::message("guest", text)).collect();
        let clients = async move {
            let mut clients = JoinSet::new();
            for body in bodies.into_iter().cycle().take(HOSTILE) {
                let counted = Arc::clone(&counted);
                clients.spawn(async move {
                    // A client that was refused tries again.
                    loop {
                        let Ok(mut connection) = Connection::open(address).await else { return };
                        while next(&mut connection, &body(), follow).await.is_ok() {
                            counted.fetch_add(1, Relaxed);
                        }
                        sleep(Duration::from_millis(10)).await;
                    }
                });
            }
            while !stopped.load(Relaxed) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(clients))
        });
        Self { stop, answered }
    }

    fn stop(self) -> u64 {
        self.stop.store(true, Relaxed);
        self.answered.load(Relaxed)
    }
}

/// Has one more task done, to the answer or, to `follow`, to its end.
async fn next(connection: &mut Connection, body: &str, follow: bool) -> Result<()> {
    let answer = connection.post("/", body).await?;
    if !follow {
        return Ok(());
    }
    let mut answer: Value = serde_json::from_slice(answer)?;
    while answer["result"]["status"]["state"] == "input-required" {
        sleep(LOOK).await;
        let look = load::get(answer["result"]["id"].as_str().unwrap_or_default());
        answer = serde_json::from_slice(connection.post("/", &look).await?)?;
    }
    Ok(())
}
