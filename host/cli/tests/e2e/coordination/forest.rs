//! Grows many random trees of tasks concurrently: calls, races, failures, questions, cancellations
//! and kills of the hub. Every tree must end without leftovers.

use crate::stage::{get, state};
use a2a_hub_tests::{Client, Numbers, RpcError, TestHub, durable_guest, message_to};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{collections::BTreeMap, env, time::Duration};
use tokio::time::{Instant, sleep};

/// Maximum number of trees, and duration of the growth in seconds, which `A2A_HUB_FOREST_SECONDS`
/// overrides: an unoptimised build takes three minutes for all trees.
const TREES: usize = 1_000;
const GROWN_FOR: u64 = 30;

/// Number of concurrent trees.
const AT_ONCE: usize = 12;

/// Time that the last trees have to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum depth below a root, and maximum number of tasks below it.
const DEPTH: u64 = 5;
const TASKS: usize = 12;

/// Configures agents that may call every agent including themselves, with two run permits each.
fn config() -> String {
    let agent = |id| {
        format!(
            "[agents.{id}]\nmax_running = 2\nmax_queued = 1000\n[agents.{id}.grant]\ndelegate = ['ash', 'oak', 'elm']\n\
             [agents.{id}.limits.tree]\ndepth = {DEPTH}\ntasks = {TASKS}\n"
        )
    };
    let agents = ["ash", "oak", "elm"].map(agent).concat();
    format!("[breaker]\nfailures = 1000000\n{agents}")
}

/// Generates the instructions of an agent at this depth below the root.
fn program(numbers: &mut Numbers, level: usize) -> String {
    let lines = 1 + numbers.below(4);
    let line = |number: u64, numbers: &mut Numbers| match numbers.below(12) {
        0..=2 => format!("piece {level}.{number};"),
        3 => format!("sleep {}", numbers.below(40)),
        4 => "ask how?".to_owned(),
        5 => "children".to_owned(),
        6 if level > 0 => "fail on purpose".to_owned(),
        7..=9 if level < 6 => {
            let agent = numbers.one_of(&["ash", "oak", "elm"]);
            format!("call {agent} {}", program(numbers, level + 1))
        }
        10 if level < 4 => {
            let fan_out = 1 + numbers.one_of(&[0, 1, 1, 2, 3, 5, 7]);
            let agents = ["ash", "oak", "elm"].iter().cycle().take(fan_out);
            let agents = agents.copied().collect::<Vec<_>>().join(",");
            format!("race {agents} {}", program(numbers, level + 1))
        }
        _ => format!("say {number}"),
    };
    let lines: Vec<_> = (0..lines).map(|number| line(number, numbers)).collect();
    lines.join(&if level == 0 { "\n".to_owned() } else { format!(" {} ", "/".repeat(level)) })
}

/// Running and ended trees, by their roots.
#[derive(Default)]
struct Forest {
    grown: usize,
    standing: Vec<String>,
    felled: Vec<String>,
    /// Error of the last answer, if it was refused.
    refused: Option<RpcError>,
}

impl Forest {
    /// Adds roots up to the limit, answers questions, and occasionally cancels a task.
    async fn tend(&mut self, client: &Client, numbers: &mut Numbers, plants: bool) -> Result<()> {
        while plants && self.standing.len() < AT_ONCE && self.grown < TREES {
            let mut message = message_to("ash", &program(numbers, 0));
            message["configuration"] = json!({ "blocking": false });
            let task = client.call("message/send", message).await?;
            self.standing.push(task["id"].as_str().context("no id")?.to_owned());
            self.grown += 1;
        }
        for id in std::mem::take(&mut self.standing) {
            let task = get(client, &id).await?;
            match state(&task) {
                "completed" | "failed" | "canceled" => {
                    self.felled.push(id);
                    continue;
                }
                "input-required" => {
                    let mut answer = message_to("ash", "so");
                    answer["message"]["taskId"] = json!(id);
                    answer["message"]["metadata"] =
                        json!({ "question": task["metadata"]["question"]["id"] });
                    answer["configuration"] = json!({ "blocking": false });
                    // The task may have continued in the meantime.
                    self.refused = client.call("message/send", answer).await.err();
                }
                _ if numbers.below(200) == 0 => {
                    let _ = client.call("tasks/cancel", json!({ "id": id })).await;
                }
                _ => {}
            }
            self.standing.push(id);
        }
        Ok(())
    }
}

/// Formats a tree, one task per line.
fn drawn(tree: &[Value]) -> String {
    let line = |task: &Value| {
        let [parent, question, reason] =
            ["parentTaskId", "question", "reason"].map(|it| &task["metadata"][it]);
        format!(
            "\n{} of {parent}: {} {} {reason} {question} {}",
            task["id"], task["agentId"], task["status"]["state"], task["status"]["timestamp"]
        )
    };
    tree.iter().map(line).collect()
}

/// Checks the invariants of a tree that has ended.
async fn check(client: &Client, root: &str) -> Result<usize> {
    let wanted = json!({ "workflow": root, "limit": 1000 });
    let tree = client.call("hub/tasks/list", wanted).await?;
    let tree = tree.as_array().context("no list")?;
    let by_id: BTreeMap<&str, &Value> =
        tree.iter().filter_map(|task| Some((task["id"].as_str()?, task))).collect();
    ensure!(tree.len() <= TASKS + 1, "{} tasks in the tree of {root}", tree.len());
    for task in tree {
        let over = ["completed", "failed", "canceled"].contains(&state(task));
        ensure!(over, "it has ended, and this has not: {task}");
        let Some(parent) = task["metadata"]["parentTaskId"].as_str() else { continue };
        let parent = by_id.get(parent).with_context(|| format!("no parent of {task}"))?;
        let ended = |task: &Value| task["status"]["timestamp"].as_str().map(str::to_owned);
        ensure!(ended(task) <= ended(parent), "it outlived its parent: {}", drawn(tree));
        let whole = get(client, task["id"].as_str().context("no id")?).await?;
        let pieces = whole["artifacts"][0]["parts"].as_array().cloned().unwrap_or_default();
        let text: String = pieces.iter().filter_map(|part| part["text"].as_str()).collect();
        let mut told: Vec<_> = text.split_terminator(';').collect();
        let all = told.len();
        told.dedup();
        ensure!(told.len() == all, "something was told twice: {text}");
    }
    Ok(tree.len())
}

#[tokio::test]
async fn every_tree_ends_children_before_parents() -> Result<()> {
    let durable = durable_guest()?;
    let mut builder = TestHub::builder().config(config());
    for agent in ["ash", "oak", "elm"] {
        builder = builder.plugin(agent, &durable);
    }
    let mut hub = builder.start().await?;
    let mut numbers = Numbers::new(0x2026_1122);
    let seconds = env::var_os("A2A_HUB_FOREST_SECONDS");
    let seconds = seconds.and_then(|said| said.to_str()?.parse().ok());
    let grown_for = Duration::from_secs(seconds.unwrap_or(GROWN_FOR));
    let (mut forest, begun) = (Forest::default(), Instant::now());
    let mut kills = [5, 12, 20].map(Duration::from_secs).into_iter().peekable();
    loop {
        let plants = begun.elapsed() < grown_for && forest.grown < TREES;
        let client = Client::http(&hub);
        forest.tend(&client, &mut numbers, plants).await?;
        if !plants && forest.standing.is_empty() {
            break;
        }
        if kills.next_if(|at| begun.elapsed() > *at).is_some() {
            hub.kill9().await?;
            hub.restart().await?;
        }
        let standing = &forest.standing;
        if begun.elapsed() > grown_for + PATIENCE {
            let root = standing.first().context("none stands")?;
            let tree =
                client.call("hub/tasks/list", json!({ "workflow": root, "limit": 100 })).await?;
            let tree = tree.as_array().context("no list")?;
            let refused = &forest.refused;
            bail!("{} have not ended: {}; {refused:?}; {}", standing.len(), drawn(tree), hub.log());
        }
        sleep(Duration::from_millis(20)).await;
    }
    let client = Client::http(&hub);
    let mut tasks = 0;
    for root in &forest.felled {
        tasks += check(&client, root).await?;
    }
    for live in ["submitted", "working", "input-required"] {
        let left = client.call("hub/tasks/list", json!({ "state": live })).await?;
        ensure!(left == json!([]), "{left}");
    }
    let trees = forest.felled.len();
    ensure!(trees > 20 && tasks > trees, "{tasks} tasks in {trees} trees are no forest");
    Ok(())
}
