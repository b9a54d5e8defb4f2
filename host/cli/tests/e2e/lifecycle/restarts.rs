//! Kills the hub repeatedly while replayed agents run: no journal may record an answer of a hub
//! that was not up.

use crate::stage::{get, said, state, tell};
use a2a_hub_tests::{Client, Numbers, TestHub, durable_guest, message_to};
use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use std::{env, fs, path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// Number of kills; `A2A_HUB_RESTARTS` overrides it. The test before a release takes ten times as
/// many.
const KILLS: u64 = 20;

/// Number of finished tasks in the store per kill, which a start has to read.
const STORED_PER_KILL: u64 = 25;

/// Number of concurrent trees of tasks.
const AT_ONCE: usize = 8;

/// Maximum time until the hub is killed after its start.
const KILLED_WITHIN_MS: u64 = 400;

/// Time that the last trees have to end.
const PATIENCE: Duration = Duration::from_secs(60);

const AGENTS: [&str; 3] = ["top", "middle", "bottom"];

/// Callees: an agent's name, an alias, or a group.
const CALLED: [&str; 4] = ["middle", "bottom", "lowest", "lower"];

/// Configuration without reasons to refuse a call: any refusal in a journal comes from the hub
/// itself.
fn config() -> String {
    let agent = |id| {
        format!(
            "[agents.{id}]\nmax_running = 100\nmax_queued = 1000\n[agents.{id}.grant]\ndelegate = ['*', 'top', 'middle', 'bottom']\n\
             [agents.{id}.limits.tree]\ndepth = 8\ntasks = 10000\n"
        )
    };
    let agents = AGENTS
        .map(agent)
        .concat()
        .replace("[agents.bottom]\n", "[agents.bottom]\naliases = ['lowest']\n");
    format!("[breaker]\nfailures = 1000000\n[aliases]\nlower = ['middle', 'bottom']\n{agents}")
}

/// Generates the instructions of an agent at this depth below the root.
fn program(numbers: &mut Numbers, level: usize) -> String {
    let lines = 2 + numbers.below(3);
    let line = |numbers: &mut Numbers| match numbers.below(8) {
        0 => format!("sleep {}", numbers.below(60)),
        1 => "children".to_owned(),
        2 | 3 if level < 3 => {
            let (one, other) = (numbers.one_of(&CALLED), numbers.one_of(&CALLED));
            format!("race {one},{other} {}", program(numbers, level + 1))
        }
        4..=6 if level < 4 => {
            format!("call {} {}", numbers.one_of(&CALLED), program(numbers, level + 1))
        }
        _ => "say on".to_owned(),
    };
    let lines: Vec<_> = (0..lines).map(|_| line(numbers)).collect();
    lines.join(&if level == 0 { "\n".to_owned() } else { format!(" {} ", "/".repeat(level)) })
}

/// Journals in the store of a killed hub.
#[derive(Default)]
struct Journals {
    entries: usize,
    refusals: Vec<String>,
}

/// Reads the journals from a copy of the store, because opening the store would change it.
fn journals(data_dir: &Path) -> Result<Journals> {
    let copy = tempfile::tempdir()?;
    for file in ["hub.db", "hub.db-wal"] {
        let (from, to) = (data_dir.join(file), copy.path().join(file));
        if from.exists() {
            fs::copy(from, to)?;
        }
    }
    let db = rusqlite::Connection::open(copy.path().join("hub.db"))?;
    let mut rows = db.prepare("SELECT task, entry FROM journals WHERE number > 0")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found = Journals::default();
    for row in rows {
        let (task, entry): (String, String) = row?;
        found.entries += 1;
        let recorded: Value = serde_json::from_str(&entry)?;
        let answer = recorded["entry"]["answer"][1].as_object();
        let failed = |answer: &Value| answer.get("Err").is_some_and(|why| *why != json!("timeout"));
        if answer.is_some_and(|answer| answer.values().any(failed)) {
            found.refusals.push(format!("{task}: {entry}"));
        }
    }
    Ok(found)
}

/// Running and ended trees, by their roots.
struct Trees {
    standing: Vec<String>,
    over: Vec<String>,
}

impl Trees {
    async fn plant(&mut self, client: &Client, numbers: &mut Numbers) -> Result<()> {
        while self.standing.len() < AT_ONCE {
            let mut message = message_to("top", &program(numbers, 0));
            message["configuration"] = json!({ "blocking": false });
            let task = client.call("message/send", message).await?;
            self.standing.push(task["id"].as_str().context("no id")?.to_owned());
        }
        Ok(())
    }

    /// Collects the trees that ended; each must have completed without a failed call.
    async fn look(&mut self, client: &Client) -> Result<()> {
        for id in std::mem::take(&mut self.standing) {
            let task = get(client, &id).await?;
            match state(&task) {
                "submitted" | "working" => self.standing.push(id),
                "completed" => {
                    ensure!(!said(&task).contains("failed: "), "a call failed: {task}");
                    self.over.push(id);
                }
                odd => bail!("it is {odd}: {task}"),
            }
        }
        Ok(())
    }
}

/// Fills the store with finished tasks.
async fn fill(client: &Client, tasks: u64) -> Result<()> {
    let sent = (0..tasks).map(|_| client.call("message/send", message_to("echo", "hello")));
    stream::iter(sent).buffer_unordered(16).try_for_each(|_| async { Ok(()) }).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn journals_never_record_shutdown_refusals() -> Result<()> {
    let kills = match env::var_os("A2A_HUB_RESTARTS") {
        Some(said) => said.to_str().and_then(|said| said.parse().ok()),
        None => Some(KILLS),
    };
    let kills = kills.context("A2A_HUB_RESTARTS is not a number")?;
    let durable = durable_guest()?;
    let mut builder = TestHub::builder().config(config());
    for agent in AGENTS {
        builder = builder.plugin(agent, &durable);
    }
    let mut hub = builder.start().await?;
    let begun = Instant::now();
    fill(&Client::http(&hub), kills * STORED_PER_KILL).await?;
    let mut numbers = Numbers::new(0x2026_0726);
    let mut trees = Trees { standing: Vec::new(), over: Vec::new() };
    let (mut entries, mut refusals) = (0, Vec::new());
    for kill in 0..kills {
        let client = Client::http(&hub);
        trees.look(&client).await.with_context(|| format!("kill {kill}"))?;
        trees.plant(&client, &mut numbers).await?;
        sleep(Duration::from_millis(numbers.below(KILLED_WITHIN_MS))).await;
        hub.kill9().await?;
        let found = journals(&hub.data_dir())?;
        entries += found.entries;
        refusals.extend(found.refusals);
        ensure!(refusals.is_empty(), "by kill {kill}: {refusals:#?}");
        hub.restart().await?;
    }
    let ended = Instant::now() + PATIENCE;
    let client = Client::http(&hub);
    while !trees.standing.is_empty() {
        trees.look(&client).await?;
        ensure!(Instant::now() < ended, "{:?} have not ended", trees.standing);
        sleep(Duration::from_millis(50)).await;
    }
    let (over, stored) = (trees.over.len(), kills * STORED_PER_KILL);
    tell(&format!(
        "{kills} kills over a store of {stored} tasks: {over} trees completed, {entries} entries of journals read, {} of them of a hub \
         that was not up, in {:.0?}",
        refusals.len(),
        begun.elapsed()
    ));
    ensure!(entries > 0 && over > 0, "{entries} entries, {over} trees: nothing was replayed");
    Ok(())
}
