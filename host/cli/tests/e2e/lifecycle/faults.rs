//! Kills the hub at random moments, repeatedly: every reported event must be stored, and every task
//! must be in a valid state.

use crate::stage::{GRANT, get, no_program_left, state, tell};
use a2a_hub_tests::{Client, TestHub, message_to, test_guests};
use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{collections::HashMap, env, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

/// Number of kills of all hubs; `A2A_HUB_FAULTS` overrides it.
const KILLS: u32 = 200;

/// Number of hubs that are killed concurrently: starting one keeps a core busy.
const HUBS: u32 = 2;

/// Number of concurrent tasks of each hub when it is killed.
const TASKS: u32 = 6;

/// Maximum time until a hub is killed; its shortest task takes a few milliseconds, its longest two
/// seconds.
const KILLED_WITHIN_MS: u64 = 200;

/// Time that continued tasks have to end after a restart.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);

/// Number of earlier tasks that are checked again after each kill.
const LOOKED_AT_AGAIN: usize = 4;

/// Messages of which each task is sent a random one.
const WORK: [(&str, &str); 6] = [
    ("echo", "hello"),
    ("guest", "flood 200"),
    ("guest", "ask"),
    ("guest", "tick 20 10"),
    ("guest", "sh echo a; sleep 0.1; echo b; sleep 2"),
    ("guest", "reply hello"),
];

/// Random numbers, reproducible by their seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let at = self.below(all.len().max(1) as u64);
        all.get(usize::try_from(at).unwrap_or_default())
    }
}

/// Events received of each task before a kill, in order.
type Heard = Mutex<HashMap<String, Vec<Value>>>;

/// Knowledge of the clients about one hub's tasks.
#[derive(Default)]
struct Ledger {
    /// Ended tasks, with their final states.
    over: HashMap<String, Value>,
    /// Tasks that wait for their client.
    waiting: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn random_kills_lose_no_reported_event() -> Result<()> {
    let number = |name, otherwise| match env::var_os(name) {
        Some(text) => text
            .to_str()
            .and_then(|text| text.parse().ok())
            .with_context(|| format!("{name} is not a number")),
        None => Ok(otherwise),
    };
    let kills = number("A2A_HUB_FAULTS", u64::from(KILLS))?;
    let now = jiff::Timestamp::now().as_millisecond().unsigned_abs();
    let seed = number("A2A_HUB_FAULTS_SEED", now)?;
    tell(&format!("{kills} kills; A2A_HUB_FAULTS_SEED={seed} repeats them"));
    let begun = Instant::now();
    let hubs =
        (0..u64::from(HUBS)).map(|n| torment(kills.div_ceil(HUBS.into()), Chance(seed ^ n << 32)));
    let tasks: usize = try_join_all(hubs).await?.into_iter().sum();
    tell(&format!("{kills} kills and {tasks} tasks in {:.0?}", begun.elapsed()));
    Ok(())
}

/// Kills one hub `kills` times; returns its number of tasks.
async fn torment(kills: u64, mut chance: Chance) -> Result<usize> {
    let config = GRANT.replace("max_running = 100", "max_running = 3");
    let mut hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let mut ledger = Ledger::default();
    for kill in 0..kills {
        one_life(&mut hub, &mut ledger, &mut chance)
            .await
            .with_context(|| format!("kill {kill}"))?;
    }
    let client = Client::unix(&hub);
    for (id, was) in &ledger.over {
        ensure!(get(&client, id).await? == *was, "task {id} is over, and changed");
    }
    hub.stop().await?;
    let db = rusqlite::Connection::open(hub.data_dir().join("hub.db"))?;
    let verdict: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    ensure!(verdict == "ok", "{verdict}");
    Ok(ledger.over.len() + ledger.waiting.len())
}

/// Puts a hub under load, kills and restarts it, and checks the tasks.
async fn one_life(hub: &mut TestHub, ledger: &mut Ledger, chance: &mut Chance) -> Result<()> {
    let client = Client::unix(hub);
    let heard: Arc<Heard> = Arc::default();
    let mut clients = JoinSet::new();
    for _ in 0..TASKS {
        let (agent, text) = chance.one_of(&WORK).context("there is no work")?;
        let patience = (chance.below(4) == 0).then(|| chance.millis(KILLED_WITHIN_MS));
        clients.spawn(listen(client.clone(), agent, text, patience, Arc::clone(&heard)));
    }
    if let Some(id) = ledger.waiting.pop() {
        clients.spawn(go_on(client.clone(), id.clone(), chance.below(2) == 0));
        // The task's log shows its state.
        heard.lock().insert(id, Vec::new());
    }
    sleep(chance.millis(KILLED_WITHIN_MS)).await;
    hub.kill9().await?;
    // The clients end with the connection.
    clients.join_all().await;
    no_program_left(&hub.data_dir(), Duration::from_secs(10)).await?;
    hub.restart().await?;
    let client = Client::unix(hub);
    let status = client.call("hub/status", json!({})).await?;
    ensure!(status["warnings"].is_null(), "a kill loses nothing: {}", status["warnings"]);
    let told = std::mem::take(&mut *heard.lock());
    check(&client, told, ledger, chance).await
}

/// Receives a task's events until the hub is gone, or cancels the task after `patience`.
async fn listen(
    client: Client,
    agent: &str,
    text: &str,
    patience: Option<Duration>,
    heard: Arc<Heard>,
) {
    let Ok(mut updates) = client.stream("message/stream", message_to(agent, text)).await else {
        return;
    };
    let mut id = String::new();
    let listening = async {
        while let Some(Ok(event)) = updates.next().await {
            if id.is_empty() {
                id = event["id"].as_str().unwrap_or_default().to_owned();
            }
            heard.lock().entry(id.clone()).or_default().push(event);
        }
    };
    match patience {
        None => listening.await,
        Some(patience) => {
            if timeout(patience, listening).await.is_err() && !id.is_empty() {
                // The task may have ended, and the hub may be gone.
                let _ = client.call("tasks/cancel", json!({ "id": id })).await;
            }
        }
    }
}

/// Answers a waiting task, or cancels it; the hub may be gone before.
async fn go_on(client: Client, id: String, answers: bool) {
    let mut answer = message_to("guest", "reply thanks");
    answer["message"]["taskId"] = json!(id);
    let _ = if answers {
        client.call("message/send", answer).await
    } else {
        client.call("tasks/cancel", json!({ "id": id })).await
    };
}

/// Checks every task with events before the kill, and some older ones.
async fn check(
    client: &Client,
    told: HashMap<String, Vec<Value>>,
    ledger: &mut Ledger,
    chance: &mut Chance,
) -> Result<()> {
    for (id, heard) in told {
        let log = timeout(SETTLED_WITHIN, log(client, &id)).await;
        let log = log.with_context(|| format!("task {id} does not come to an end"))??;
        let kept = log.iter().zip(&heard).take_while(|(kept, heard)| kept == heard).count();
        ensure!(
            kept == heard.len(),
            "task {id}: {} was heard and not kept; its log: {log:?}",
            heard[kept]
        );
        let task = get(client, &id).await?;
        match state(&task) {
            "input-required" | "auth-required" => ledger.waiting.push(id),
            "completed" | "failed" | "canceled" | "rejected" => {
                ledger.over.insert(id, task);
            }
            odd => anyhow::bail!("task {id} was left {odd}"),
        }
    }
    let known: Vec<_> = ledger.over.keys().collect();
    for _ in 0..LOOKED_AT_AGAIN {
        let Some(id) = chance.one_of(&known) else { break };
        ensure!(get(client, id).await? == ledger.over[*id], "task {id} is over, and changed");
    }
    Ok(())
}

/// Returns all events of a task, once it ended or waits.
async fn log(client: &Client, id: &str) -> Result<Vec<Value>> {
    let all = json!({ "id": id, "afterSeq": 0 });
    Ok(client.stream("tasks/resubscribe", all).await.context("it was lost")?.rest().await?)
}
