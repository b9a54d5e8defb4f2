//! Growth of costs with the number of stored tasks, of agents, of bytes in a message, and of a
//! task's subscribers. Each figure comes from a hub on one core, and is compared with that of the
//! smallest size.

use crate::{
    LOAD, SERVERS, WARM_UP,
    load::{self, Connection, Sample, Work},
    pin,
    profile::spent,
};
use a2a_hub_tests::{Client, TestHub, message_to, resident_bytes, test_guests};
use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection as Database, params};
use serde_json::{Value, json};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// Duration of each measurement.
const MEASURED: Duration = Duration::from_secs(2);

/// Numbers of tasks stored before the hub starts, in conversations of ten.
const STORED: [u32; 4] = [10, 1_000, 100_000, 1_000_000];

/// Numbers of agents beside the bundled ones.
const AGENTS: [usize; 3] = [1, 50, 200];

/// Sizes of a message's text in bytes.
const SIZES: [usize; 4] = [10, 10_000, 100_000, 900_000];

/// Numbers of subscribers of one task.
const LISTENERS: [usize; 4] = [1, 10, 100, 1_000];

/// Number and interval of the task's events.
const TICKS: u32 = 10;
const PACE_MS: u64 = 300;

/// Number of tasks that are read in turn.
const LOOKED_AT: u32 = 64;

/// Time in which the hub finishes its work after the start.
const SETTLE: Duration = Duration::from_secs(1);

/// Disables the retention limit during the measurement.
const CONFIG: &str = "retention.max_mb = 100000\n";

/// Prints all four tables.
pub(crate) async fn measure() -> Result<()> {
    stored_tasks().await?;
    agents().await?;
    sizes().await?;
    listeners().await
}

/// Restarts the hub on the servers' core; returns its address and the start time.
async fn start(hub: &mut TestHub) -> Result<(SocketAddr, Duration)> {
    hub.stop().await?;
    pin(SERVERS)?;
    let begun = Instant::now();
    hub.restart().await?;
    let took = begun.elapsed();
    pin(LOAD)?;
    sleep(SETTLE).await;
    Ok((hub.http().parse().context("the hub serves HTTP at no address")?, took))
}

async fn run(address: SocketAddr, work: &Work, at_once: usize) -> Result<Sample> {
    load::run(address, work, at_once, WARM_UP).await?;
    load::run(address, work, at_once, MEASURED).await
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

async fn stored_tasks() -> Result<()> {
    println!(
        "\ntasks stored before, p50 in us, one at once but where it says so; a list is a page of 20"
    );
    println!(
        "{:>9}{:>8}{:>14}{:>8}{:>8}{:>8}{:>10}{:>10}{:>6}{:>9}",
        "tasks",
        "send",
        "16 at once/s",
        "get",
        "status",
        "tasks",
        "contexts",
        "start ms",
        "MB",
        "MB disk"
    );
    let mut hub = TestHub::builder().config(CONFIG).start().await?;
    let client = Client::unix(&hub);
    let pattern = client.call("message/send", message_to("echo", "hi")).await?;
    let pattern = pattern["id"].as_str().context("no id")?.to_owned();
    let mut there = 1;
    for tasks in STORED {
        hub.stop().await?;
        let file = hub.data_dir().join("hub.db");
        fill(&file, &pattern, there..tasks)?;
        there = tasks;
        let (address, started) = start(&mut hub).await?;
        let grown = resident_bytes(hub.pid()).context("the hub is gone")?;
        let stride = (tasks / LOOKED_AT).max(1);
        let looked_at: Vec<String> = (1..tasks).step_by(stride as usize).map(id).collect();
        let ask =
            |method: &'static str, params: Value| Work::Ask(load::call(method, &params).into());
        let mut figures = Vec::new();
        for work in [
            Work::Send,
            Work::Get("/", looked_at.into()),
            ask("hub/status", json!({})),
            ask("hub/tasks/list", json!({ "limit": 20 })),
            ask("hub/contexts/list", json!({ "limit": 20 })),
        ] {
            figures.push(us(run(address, &work, 1).await?.p50));
        }
        let many = run(address, &Work::Send, 16).await?.per_second;
        let [send, get, status, list, contexts] = figures[..] else {
            unreachable!("five were asked")
        };
        let disk = std::fs::metadata(&file)?.len() >> 20;
        println!(
            "{tasks:>9}{send:>8.0}{many:>14.0}{get:>8.0}{status:>8.0}{list:>8.0}{contexts:>10.0}{:>10.0}{:>6}{disk:>9}",
            started.as_secs_f64() * 1e3,
            grown >> 20
        );
    }
    Ok(())
}

/// Id of a stored task, lower than those that a hub generates.
fn id(number: u32) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

/// Stores copies of a finished task under these numbers.
fn fill(file: &Path, pattern: &str, numbers: std::ops::Range<u32>) -> Result<()> {
    let mut db = Database::open(file)?;
    let columns: Vec<String> = db
        .prepare("SELECT name FROM pragma_table_info('tasks')")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let value = |column: &String| match column.as_str() {
        "id" => "printf('00000000-0000-7000-8000-%012d', n)".to_owned(),
        "context" => "printf('00000000-0000-7000-9000-%012d', n / 10)".to_owned(),
        "workflow" => "NULL".to_owned(),
        other => other.to_owned(),
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    let numbered = "WITH RECURSIVE numbers(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2)";
    let tasks = format!(
        "{numbered} INSERT INTO tasks ({}) SELECT {} FROM numbers, (SELECT * FROM tasks WHERE id = ?3)",
        columns.join(", "),
        values.join(", ")
    );
    let events = format!(
        "{numbered} INSERT INTO events (task, seq, event)
            SELECT printf('00000000-0000-7000-8000-%012d', n), seq,
            replace(event, ?3, printf('00000000-0000-7000-8000-%012d', n))
            FROM numbers, (SELECT seq, event FROM events WHERE task = ?3)"
    );
    let change = db.transaction()?;
    for sql in [tasks, events] {
        change.execute(&sql, params![numbers.start, numbers.end, pattern])?;
    }
    change.commit()?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

async fn agents() -> Result<()> {
    println!("\nplug-ins beside the built-in agents, p50 in us");
    println!(
        "{:>9}{:>8}{:>8}{:>8}{:>10}{:>6}",
        "agents", "send", "status", "find", "start ms", "MB"
    );
    for agents in AGENTS {
        let mut hub = TestHub::builder().config(CONFIG).start().await?;
        let echo = test_guests()?.with_file_name("echo.wasm");
        for number in 0..agents {
            hub.plug(&format!("echo-{number}"), &echo)?;
        }
        for number in 0..agents {
            hub.joined(&format!("echo-{number}")).await?;
        }
        let (address, started) = start(&mut hub).await?;
        let find = json!({ "query": "says it again" });
        let send = run(address, &Work::Send, 1).await?.p50;
        let ask =
            |method: &'static str, params: &Value| Work::Ask(load::call(method, params).into());
        let status = run(address, &ask("hub/status", &json!({})), 1).await?.p50;
        let find = run(address, &ask("hub/agents/find", &find), 1).await?.p50;
        let grown = resident_bytes(hub.pid()).context("the hub is gone")?;
        println!(
            "{agents:>9}{:>8.0}{:>8.0}{:>8.0}{:>10.0}{:>6}",
            us(send),
            us(status),
            us(find),
            started.as_secs_f64() * 1e3,
            grown >> 20
        );
    }
    Ok(())
}

async fn sizes() -> Result<()> {
    println!("\nbytes of a message, which the echo says again, one at once");
    println!("{:>9}{:>10}{:>10}{:>10}", "bytes", "p50 us", "p99 us", "MB/s");
    let mut hub = TestHub::builder().config(CONFIG).start().await?;
    let (address, _) = start(&mut hub).await?;
    for size in SIZES {
        let work = Work::Say("echo", "x".repeat(size).into());
        let Sample { p50, p99, per_second, .. } = run(address, &work, 1).await?;
        let rate = per_second * size as f64 / f64::from(1 << 20);
        println!("{size:>9}{:>10.0}{:>10.0}{rate:>10.1}", us(p50), us(p99));
    }
    Ok(())
}

async fn listeners() -> Result<()> {
    println!(
        "\nlisteners of one task, an event in {PACE_MS} ms; processor time of each that is told"
    );
    println!("{:>9}{:>12}{:>14}{:>14}", "listeners", "cpu us", "p50 late ms", "p99 late ms");
    let config = format!("{CONFIG}max_streams = 2000\n");
    let mut hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let (address, _) = start(&mut hub).await?;
    for listeners in LISTENERS {
        let mut message = message_to("guest", &format!("tick {} {PACE_MS}", 3 * TICKS));
        message["configuration"] = json!({ "blocking": false });
        let task = Client::unix(&hub).call("message/send", message).await?;
        let listen: Arc<str> = load::call("tasks/resubscribe", &json!({ "id": task["id"] })).into();
        let mut clients = JoinSet::new();
        for _ in 0..listeners {
            let listen = Arc::clone(&listen);
            clients.spawn(async move {
                let mut connection = Connection::open(address).await?;
                connection.post_ticks("/stream", &listen).await
            });
        }
        // All clients are subscribed by then.
        sleep(Duration::from_millis(PACE_MS) * TICKS).await;
        let before = spent(hub.pid())?;
        let (mut late, mut told, counted) = (Vec::new(), 0, 2 * TICKS as usize);
        while let Some(client) = clients.join_next().await {
            let ticks = client??;
            ensure!(ticks.len() >= counted, "only {} events came", ticks.len());
            let rest = &ticks[ticks.len() - counted..];
            told += rest.len();
            let pace = Duration::from_millis(PACE_MS);
            late.extend(rest.windows(2).map(|two| (two[1] - two[0]).saturating_sub(pace)));
        }
        let cpu = spent(hub.pid())?.saturating_sub(before).as_secs_f64() * 1e6 / told as f64;
        late.sort_unstable();
        let ms = |p: usize| late.get(late.len() * p / 100).map_or(0.0, |late| us(*late) / 1e3);
        println!("{listeners:>9}{cpu:>12.1}{:>14.2}{:>14.2}", ms(50), ms(99));
    }
    Ok(())
}
