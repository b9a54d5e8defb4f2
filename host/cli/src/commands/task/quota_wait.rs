//! Wait of a task for the quota of its agent: what commands show of it, and `task retry-now`.

use crate::commands::completion;
use crate::{
    Exit, Global, block_on,
    client::{hub_client::Client, ids},
    ui::render::{ago, ahead, text},
};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct RetryNowOptions {
    /// Id of the task, or a unique beginning or end of it
    #[arg(add = completion::tasks())]
    id: String,
}

/// Ends the wait of a task, without waiting for its end.
pub(crate) fn retry_now(global: &Global, args: &RetryNowOptions) -> anyhow::Result<Exit> {
    let task = block_on(async {
        let mut client = Client::connect(global).await?;
        let id = ids::resolve(&mut client, ids::Kind::Task, &args.id).await?;
        client.call("hub/tasks/retryNow", json!({ "taskId": id })).await
    })?;
    let (command, id) = (global.command(), text(&task["id"]));
    global.show(&task, || {
        Ok(format!("task {id} tries now; `{command} task watch {id}` follows it\n").into())
    })?;
    Ok(Exit::Done)
}

/// Time of a task that waits for its agent's quota, as `in 2 h 5 min`; none if it does not wait.
fn waits(task: &Value, now: Timestamp) -> Option<String> {
    let until = &task["metadata"]["waitsUntil"];
    let is_open = ["working", "submitted"].contains(&text(&task["status"]["state"]));
    (is_open && until.is_string()).then(|| ahead(until, now))
}

/// Time since the last change of a task, or the time until it goes on after a wait.
pub(crate) fn changed(task: &Value, now: Timestamp) -> String {
    match waits(task, now) {
        Some(time) => format!("goes on {time}"),
        None => ago(&task["status"]["timestamp"], now),
    }
}

/// Lines of `task show` about a task that waits: until when, and what a person can do.
pub(super) fn lines(task: &Value, command: &str, now: Timestamp) -> Vec<String> {
    let Some(time) = waits(task, now) else { return Vec::new() };
    let (until, id) = (text(&task["metadata"]["waitsUntil"]), text(&task["id"]));
    // A remote agent writes its own metadata.
    let until = until.parse::<Timestamp>().map(|until| format!("{until:.0}")).unwrap_or_default();
    vec![
        format!("waits    until {until}, {time}: the quota of its agent is used up"),
        format!("         {command} task retry-now {id}"),
        format!("         {command} task handoff {id} AGENT"),
        format!("         {command} task cancel {id}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_task_shows_three_ways() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let task = |state: &str, until: Value| json!({ "id": "t-1", "status": { "state": state }, "metadata": { "waitsUntil": until } });
        let waiting = task("working", json!("2026-01-31T15:00:00.000Z"));
        insta::assert_snapshot!(lines(&waiting, "a2a-hub", now).join("\n"), @r"
        waits    until 2026-01-31T15:00:00Z, in 3 h 0 min: the quota of its agent is used up
                 a2a-hub task retry-now t-1
                 a2a-hub task handoff t-1 AGENT
                 a2a-hub task cancel t-1
        ");
        assert_eq!(changed(&waiting, now), "goes on in 3 h 0 min");
        assert_eq!(waits(&task("submitted", json!("2026-01-31T11:00:00Z")), now).unwrap(), "now");
        let hostile = task("working", json!("\u{1b}[2J"));
        assert!(!lines(&hostile, "a2a-hub", now).join("").contains('\u{1b}'));
        for other in [task("canceled", json!("2026-01-31T15:00:00Z")), task("working", json!(7))] {
            assert_eq!(lines(&other, "a2a-hub", now), [""; 0]);
        }
    }
}
