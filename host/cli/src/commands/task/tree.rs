//! `task tree`: shows a task with all its child tasks.

use crate::{
    Exit, Format, Global, block_on,
    client::{hub_client::Client, ids, sent},
    commands::{completion, tasks::changed},
    people,
    ui::{
        failure::CommandError,
        render::{ago, list, text},
        table::{Cell, Table},
        text::{Text, style_of},
    },
};
use a2a_hub_terminal::Interrupts;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{pin::pin, time::Duration};
use tokio::time::sleep;

/// Polling interval of a program that may not receive events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Id of the task, or a unique beginning or end of it [default: the latest task in the current
    /// directory]
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<String>,
    /// Print the tree again on each change, until the task ends or Ctrl-C
    #[arg(long)]
    watch: bool,
}

pub(crate) fn tree(global: &Global, tree: &TreeArgs) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let root = sent::resolve_or_latest(global, &mut client, tree.id.as_deref()).await?;
        if tree.watch {
            return watch(global, &mut client, &root).await;
        }
        let tree = fetch(&mut client, &root).await?;
        print(global, &tree)?;
        Ok(Exit::Done)
    })
}

async fn watch(global: &Global, client: &mut Client, root: &str) -> anyhow::Result<Exit> {
    let mut events = Client::connect(global).await?;
    events.ask("hub/events", json!({})).await?;
    let console = global.console();
    let mut interrupts = Interrupts::new()?;
    let mut unread = pin!(console.unread());
    let mut shown = Value::Null;
    // A program that an agent started may not receive events, so it polls.
    let mut subscribed = true;
    loop {
        let tree = fetch(client, root).await?;
        if tree != shown {
            if global.format == Format::Pretty && console.columns().is_some() {
                console.clear_screen()?;
            }
            print(global, &tree)?;
            shown = tree;
        }
        let state = &shown["tasks"][0]["state"];
        if ["completed", "failed", "canceled", "rejected"].contains(&text(state)) {
            return Ok(Exit::Done);
        }
        tokio::select! {
            changed = changed(&mut events), if subscribed => match changed {
                Err(why) if CommandError::from_error(&why).is_denied() => subscribed = false,
                changed => changed?,
            },
            () = sleep(POLL_INTERVAL), if !subscribed => {}
            () = interrupts.next() => return Ok(Exit::Interrupted),
            () = &mut unread => return Ok(Exit::Interrupted),
        }
    }
}

/// Requests the task and all tasks below it.
async fn fetch(client: &mut Client, root: &str) -> anyhow::Result<Value> {
    client.call("hub/tasks/tree", json!({ "id": root })).await
}

fn print(global: &Global, tree: &Value) -> anyhow::Result<()> {
    let columns = global.console().columns();
    global.show(tree, || Ok(tree_text(tree, Timestamp::now(), columns)))
}

fn tree_text(tree: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let tasks = list(&tree["tasks"]);
    let ids = || tasks.iter().map(|task| text(&task["id"]));
    let mut table = Table::new(["TASK", "STATE", "CHANGED", "AGENT", "USED", "ASKED"]);
    let branches = branches(&tasks.iter().map(depth).collect::<Vec<_>>());
    for (task, branch) in tasks.iter().zip(branches) {
        let (id, state) = (text(&task["id"]), text(&task["state"]));
        let changed = match columns {
            Some(_) => ago(&task["updatedAt"], now),
            None => text(&task["updatedAt"]).to_owned(),
        };
        table.row([
            Cell::id(id, ids::short(id, &ids())),
            Cell::styled(style_of(state), state),
            changed.into(),
            Cell::branch(branch, text(&task["agentId"])),
            used(task).into(),
            text(&task["asked"]).to_owned().into(),
        ]);
    }
    let mut drawn = table.text(columns);
    drawn.append(people::reach_text(&tasks.first().unwrap_or(&Value::Null)["reachableAgents"]));
    if tree["cut"] == true {
        let hidden: u64 = tasks.iter().filter_map(|task| task["hidden"].as_u64()).sum();
        let more = format!(
            "at least {hidden} more are not shown; `a2a-hub task tree ID` shows those below one\n"
        );
        drawn.append(more.into());
    }
    drawn
}

fn depth(task: &Value) -> usize {
    let depth = task["depth"].as_u64().and_then(|depth| usize::try_from(depth).ok());
    depth.unwrap_or_default()
}

/// Draws the branch in front of each task of a list in which child tasks follow their parents.
fn branches(depths: &[usize]) -> Vec<String> {
    // True for a level on which a task follows below the current one.
    let mut open: Vec<bool> = Vec::new();
    let mut drawn = Vec::new();
    for &depth in depths.iter().rev() {
        let levels =
            (1..=depth).map(|level| match (level == depth, open.get(level) == Some(&true)) {
                (true, true) => "├── ",
                (true, false) => "└── ",
                (false, true) => "│   ",
                (false, false) => "    ",
            });
        drawn.push(levels.collect());
        open.truncate(depth);
        open.resize(depth, false);
        open.push(true);
    }
    drawn.reverse();
    drawn
}

/// Formats a task's usage, as its agent reports it.
fn used(task: &Value) -> String {
    let tokens = task["tokens"].as_u64().filter(|tokens| *tokens > 0);
    let cost = task["costUsd"].as_f64().filter(|cost| *cost > 0.0);
    let parts = [tokens.map(|it| format!("{it} tokens")), cost.map(|it| format!("${it:.4}"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_tree_is_rendered() {
        let task = |id: &str, depth: usize, agent: &str, state: &str, asked: &str| {
            json!({ "id": id, "depth": depth, "agentId": agent, "state": state,
                "updatedAt": "2026-01-31T11:58:00.000Z", "tokens": 1200, "costUsd": 0.0123,
                "asked": asked })
        };
        let mut vibe = task("c", 1, "vibe", "input-required", "write the tests");
        vibe["hidden"] = json!(3);
        let mut echo = task("e", 1, "echo", "completed", "say it");
        (echo["tokens"], echo["costUsd"]) = (json!(0), json!(0.0));
        let tasks = json!([
            task("a", 0, "claude-code", "working", "make it work"),
            task("b", 1, "codex", "working", "review the diff"),
            task("d", 2, "gemini", "completed", "look it up"),
            vibe,
            echo,
        ]);
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let drawn =
            |cut: bool| tree_text(&json!({ "tasks": tasks, "cut": cut }), now, Some(120)).words();
        insta::assert_snapshot!(drawn(true), @r"
        TASK  STATE           CHANGED    AGENT           USED                  ASKED
        a     working         2 min ago  claude-code     1200 tokens, $0.0123  make it work
        b     working         2 min ago  ├── codex       1200 tokens, $0.0123  review the diff
        d     completed       2 min ago  │   └── gemini  1200 tokens, $0.0123  look it up
        c     input-required  2 min ago  ├── vibe        1200 tokens, $0.0123  write the tests
        e     completed       2 min ago  └── echo                              say it
        at least 3 more are not shown; `a2a-hub task tree ID` shows those below one
        ");
        assert!(!drawn(false).contains("not shown"));
    }
}
