//! `task tree`: a task with all that its agent gave to other agents, and they to others.

use super::{
    Exit, Format, Global, block_on,
    client::Client,
    completing,
    ids::{self, Kind},
    render::{ago, first_words, list, text},
    table::{Cell, Table},
    tasks::changed,
    text::{Text, style_of},
};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::pin::pin;
use tokio::signal::unix::{SignalKind, signal};

/// As many tasks are shown: more than a tree may have unless its operator says so.
const MOST: usize = 1_000;

#[derive(Debug, Args)]
pub(super) struct Tree {
    /// The task, or the beginning of its id
    #[arg(value_name = "ID", add = completing::tasks())]
    id: String,
    /// Draw it again whenever it changes, until its task has ended or Ctrl-C
    #[arg(long)]
    watch: bool,
}

pub(super) fn tree(global: &Global, tree: &Tree) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let root = ids::resolve(&mut client, Kind::Task, &tree.id).await?;
        if tree.watch {
            return watch(global, &mut client, &root).await;
        }
        let tasks = of(&mut client, &root).await?;
        print(global, &tasks)?;
        Ok(Exit::Done)
    })
}

async fn watch(global: &Global, client: &mut Client, root: &str) -> anyhow::Result<Exit> {
    let mut events = Client::connect(global).await?;
    events.ask("hub/events", json!({})).await?;
    let console = global.console();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut unread = pin!(console.unread());
    let mut shown = Value::Null;
    loop {
        let tasks = of(client, root).await?;
        if tasks != shown {
            if global.format == Format::Pretty && console.columns().is_some() {
                console.clear_screen()?;
            }
            print(global, &tasks)?;
            shown = tasks;
        }
        let state = &shown[0]["status"]["state"];
        if ["completed", "failed", "canceled", "rejected"].contains(&text(state)) {
            return Ok(Exit::Done);
        }
        tokio::select! {
            changed = changed(&mut events) => changed?,
            _ = interrupt.recv() => return Ok(Exit::Interrupted),
            () = &mut unread => return Ok(Exit::Interrupted),
        }
    }
}

/// The task and all those below it, each after its parent, with its `depth`.
async fn of(client: &mut Client, root: &str) -> anyhow::Result<Value> {
    let task = client.call("tasks/get", json!({ "id": root })).await?;
    let workflow = task["metadata"]["x-workflow-id"].as_str().unwrap_or(root);
    let query = json!({ "workflow": workflow, "limit": MOST });
    let listed = client.call("hub/tasks/list", query).await?;
    Ok(Value::Array(below(list(&listed), root)))
}

/// The tasks from `root` down, oldest first among those of one parent.
fn below(listed: &[Value], root: &str) -> Vec<Value> {
    let mut left: Vec<_> =
        listed.iter().filter(|task| task["id"] == root).map(|task| (task, 0)).collect();
    let mut tree = Vec::new();
    while let Some((task, depth)) = left.pop() {
        let mut drawn = task.clone();
        drawn["depth"] = json!(depth);
        tree.push(drawn);
        // The newest comes first in the list, and the last is taken first.
        let children = listed.iter().filter(|it| it["metadata"]["parentTaskId"] == task["id"]);
        left.extend(children.map(|child| (child, depth + 1)));
    }
    tree
}

fn print(global: &Global, tasks: &Value) -> anyhow::Result<()> {
    let columns = global.console().columns();
    global.show(tasks, || Ok(tree_text(tasks, Timestamp::now(), columns)))
}

fn tree_text(tasks: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let ids = || list(tasks).iter().map(|task| text(&task["id"]));
    let mut table = Table::new(["TASK", "STATE", "CHANGED", "AGENT", "USED", "ASKED"]);
    for task in list(tasks) {
        let status = &task["status"];
        let (id, state) = (text(&task["id"]), text(&status["state"]));
        let changed = match columns {
            Some(_) => ago(&status["timestamp"], now),
            None => text(&status["timestamp"]).to_owned(),
        };
        let depth = task["depth"].as_u64().and_then(|depth| usize::try_from(depth).ok());
        let branch = match depth.unwrap_or_default() {
            0 => String::new(),
            depth => format!("└{} ", "──".repeat(depth)),
        };
        let asked = list(&task["history"]).first().map(|said| first_words(&said["parts"]));
        table.row([
            Cell::named(id, ids::short(id, &ids())),
            Cell::styled(style_of(state), state),
            changed.into(),
            format!("{branch}{}", text(&task["agentId"])).into(),
            used(&task["metadata"]).into(),
            asked.unwrap_or_default().into(),
        ]);
    }
    table.text(columns)
}

/// What a task used up, as its agent reports it.
fn used(facts: &Value) -> String {
    let of = |name: &str| facts["usage"][name].as_u64().unwrap_or(0);
    let tokens = of("input_tokens").saturating_add(of("output_tokens"));
    let tokens = (tokens > 0).then(|| format!("{tokens} tokens"));
    let cost = facts["cost_usd"].as_f64().filter(|cost| *cost > 0.0);
    let cost = cost.map(|cost| format!("${cost:.4}"));
    [tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_as_people_see_it() {
        let task = |id: &str, parent: Option<&str>, agent: &str, state: &str, asked: &str| {
            json!({ "id": id, "contextId": "c", "agentId": agent,
                "status": { "state": state, "timestamp": "2026-01-31T11:58:00.000Z" },
                "metadata": { "parentTaskId": parent, "cost_usd": 0.0123,
                    "usage": { "input_tokens": 1000, "output_tokens": 200 } },
                "history": [{ "parts": [{ "kind": "text", "text": asked }] }] })
        };
        // As the hub lists them: the newest first.
        let listed = [
            task("e", Some("x"), "echo", "working", "of another tree"),
            task("d", Some("b"), "gemini", "completed", "look it up"),
            task("c", Some("a"), "vibe", "input-required", "write the tests"),
            task("b", Some("a"), "codex", "working", "review the diff"),
            task("a", None, "claude-code", "working", "make it work"),
        ];
        let tree = Value::Array(below(&listed, "a"));
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        insta::assert_snapshot!(tree_text(&tree, now, Some(120)).words(), @r"
        TASK  STATE           CHANGED    AGENT         USED                  ASKED
        a     working         2 min ago  claude-code   1200 tokens, $0.0123  make it work
        b     working         2 min ago  └── codex     1200 tokens, $0.0123  review the diff
        d     completed       2 min ago  └──── gemini  1200 tokens, $0.0123  look it up
        c     input-required  2 min ago  └── vibe      1200 tokens, $0.0123  write the tests
        ");
        assert_eq!(below(&listed, "b").len(), 2);
    }
}
