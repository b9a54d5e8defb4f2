//! `task cancel`: cancels one task, or all tasks that have been in one state for a given time.

use super::{
    completion,
    task::reference::One,
    tasks::{Since, since},
};
use crate::{
    Global, block_on,
    client::{
        hub_client::Client,
        remote::{REMOTE, RemoteOptions},
    },
    ui::{
        render::{list, text},
        text::Text,
    },
};
use a2a_hub_protocol::task::TaskState;
use clap::{Args, builder::PossibleValuesParser};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Number of tasks per `hub/tasks/list` request.
const PAGE: usize = 500;

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Id of the task, or a unique beginning or end of it [default: the latest task in the current
    /// directory]
    #[arg(add = completion::tasks(), conflicts_with = "state")]
    id: Option<String>,
    /// URL of the remote agent that owns the task [default: the hub]
    #[arg(long, value_name = "URL", help_heading = REMOTE, conflicts_with = "state")]
    agent: Option<String>,
    #[command(flatten)]
    elsewhere: RemoteOptions,
    /// Cancel all tasks of the hub in this state, such as `input-required` for those that wait for
    /// an answer
    #[arg(long, value_parser = PossibleValuesParser::new(live()))]
    state: Option<String>,
    /// Only tasks that have been in the state for this time (`30m`, `2h`, `1d`), or since before
    /// this date (`2026-01-31`, or RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = since, requires = "state")]
    older: Option<Since>,
}

/// Names of the states in which a task can be cancelled.
fn live() -> Vec<&'static str> {
    let live = TaskState::ALL.into_iter().filter(|state| !state.is_final());
    live.filter(|state| *state != TaskState::Unknown).map(TaskState::name).collect()
}

pub(crate) fn cancel(global: &Global, cancel: &Cancel) -> anyhow::Result<()> {
    let Some(state) = &cancel.state else {
        let Cancel { id, agent, elsewhere, .. } = cancel;
        let one = One { id: id.clone(), agent: agent.clone(), elsewhere: elsewhere.clone() };
        let (id, task) = one.ask(global, "tasks/cancel")?;
        return global.show(&task, || Ok(format!("task {id} is cancelled\n").into()));
    };
    let before = cancel.older.map(|older| older.moment(Timestamp::now()));
    let report = block_on(async {
        let mut client = Client::connect(global).await?;
        let ids = matching(&mut client, state, before.as_deref()).await?;
        let (mut cancelled, mut failed) = (Vec::new(), Vec::new());
        for id in ids {
            match client.call("tasks/cancel", json!({ "id": id })).await {
                Ok(_) => cancelled.push(id),
                // The task may have reached a final state in the meantime.
                Err(why) => failed.push(json!({ "id": id, "error": format!("{why:#}") })),
            }
        }
        Ok(json!({ "cancelled": cancelled, "left": failed }))
    })?;
    global.show(&report, || Ok(report_text(&report)?))
}

/// Returns the ids of the tasks in `state` whose state last changed before `before`.
async fn matching(
    client: &mut Client,
    state: &str,
    before: Option<&str>,
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for page in 0.. {
        let params = json!({ "state": state, "limit": PAGE, "offset": page * PAGE });
        let listed = client.call("hub/tasks/list", params).await?;
        let old =
            |task: &&Value| before.is_none_or(|before| text(&task["status"]["timestamp"]) < before);
        found.extend(list(&listed).iter().filter(old).map(|task| text(&task["id"]).to_owned()));
        if list(&listed).len() < PAGE {
            break;
        }
    }
    Ok(found)
}

fn report_text(report: &Value) -> Result<Text, std::fmt::Error> {
    let mut out = Text::new();
    for id in list(&report["cancelled"]) {
        writeln!(out, "task {} is cancelled", text(id))?;
    }
    for failed in list(&report["left"]) {
        writeln!(
            out,
            "task {} was not cancelled: {}",
            text(&failed["id"]),
            text(&failed["error"])
        )?;
    }
    if list(&report["cancelled"]).is_empty() && list(&report["left"]).is_empty() {
        writeln!(out, "there is no such task")?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_cancel_result_is_rendered() {
        let many =
            json!({ "cancelled": ["a", "b"], "left": [{ "id": "c", "error": "it is over" }] });
        let none = json!({ "cancelled": [], "left": [] });
        let told = [many, none].map(|told| report_text(&told).unwrap().words()).concat();
        insta::assert_snapshot!(told, @"
        task a is cancelled
        task b is cancelled
        task c was not cancelled: it is over
        there is no such task
        ");
        assert_eq!(live(), ["submitted", "working", "input-required", "auth-required"]);
    }
}
