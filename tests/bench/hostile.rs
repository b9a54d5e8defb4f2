//! Benchmark of honest tasks next to hostile ones: the latency of an answer under each attack, and
//! the memory that the hub frees afterwards.

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

/// Behaviour whose clients wait until the tasks end, although the tasks return a question early. In
/// the row below it, the clients leave, and the number of asking tasks grows.
const FOLLOWED: &str = "questions";

/// Separator between the messages of different hostile clients.
const AND: &str = " | ";

/// Messages to the hostile agent, each under a name for the table.
const BEHAVIOURS: [(&str, &str); 23] = [
    ("spin", "spin"),
    ("memory", "bomb"),
    ("recursion", "recurse"),
    ("traps", "trap"),
    ("events", "flood-forever"),
    ("small data parts", "flood-data 1000"),
    ("large data parts", "flood-data 1000000"),
    ("giant strings", "flood-text 4000000"),
    // The longest possible messages, and the longest that the hub accepts.
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
    // A spinning agent leaves little CPU time for events and files of other agents.
    ("spin, with events", "spin | flood-forever"),
    ("spin, with files", "spin | put-many 1000000"),
];

/// Number of concurrent hostile clients.
const HOSTILE: usize = 8;

/// Polling interval of a client that follows an asking task.
const LOOK: Duration = Duration::from_millis(50);

/// Time during which the honest answers are measured, alone and next to each behaviour.
const MEASURED: Duration = Duration::from_secs(4);

/// Time for the hostile tasks to start.
const WARM_UP: Duration = Duration::from_secs(1);

/// Time after which the hub must have freed the memory of the hostile tasks.
const BACK_AFTER: Duration = Duration::from_secs(10);

/// Grants for the hostile agent: everything that can do harm. Its circuit breaker is disabled in
/// effect, because it would soon end the measurement.
const CONFIG: &str = "
    breaker.failures = 1000000000
    [agents.guest]
    answer_timeout_ms = 1000
    [agents.guest.grant]
    memory = true
    files = true
    [agents.guest.grant.process.formed]
";

/// Limit for honest answers; they must also take less than twice the time that they take alone.
const AT_MOST: Duration = Duration::from_millis(25);

/// Loop outside of the hub that keeps a core busy at the lowest priority.
const BUSY_LOOP: &str = "exec nice -n 19 sh -c 'while :; do :; done'";

/// Prints a row for each behaviour whose name contains `wanted`.
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
    // Same allocator settings as in `a2a-hub start`.
    for (name, value) in ALLOCATOR {
        builder = builder.env(name, value);
    }
    let hub = builder.start().await?;
    let address: SocketAddr = hub.http().parse().context("the hub serves HTTP at no address")?;
    Ok((hub, address))
}

/// Measures the p99 of honest answers without hostile agents on a machine that is busy otherwise.
/// No host can do better next to an agent that keeps its cores busy.
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

/// Cancels the tasks that remain.
async fn end_tasks(client: &Client) -> Result<()> {
    for state in ["working", "submitted", "input-required"] {
        let wanted = json!({ "agentId": "guest", "state": state, "limit": 100 });
        let list = client.call("hub/tasks/list", wanted).await?;
        for task in list.as_array().into_iter().flatten() {
            // The task may have ended already.
            let _ = client.call("tasks/cancel", json!({ "id": task["id"] })).await;
        }
    }
    Ok(())
}

/// Clients of the hostile agent, on a separate thread. Each sends its next message after the answer
/// or, with `follow`, after the end of the task.
struct Hostile {
    stop: Arc<AtomicBool>,
    /// Number of answered messages.
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
                    // A refused client tries again.
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

/// Sends one message and waits for the answer or, with `follow`, for the end of the task.
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
