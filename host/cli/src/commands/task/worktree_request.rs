//! The task that a command about worktrees means, and requests for it.

use crate::{
    Global, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
        sent::{is_sent, note_taken},
    },
    ui::{
        failure::CommandError,
        render::{list, text},
    },
};
use a2a_hub_protocol::{hub_metadata::WORKTREE_TASK, member};
use anyhow::Context as _;
use serde_json::{Value, json};

/// Reason of a refusal: no task is meant.
const NO_TASK: &str = "TASK_NOT_FOUND";

/// States of a task that has not ended.
const OPEN: [&str; 4] = ["submitted", "working", "input-required", "auth-required"];

/// Calls a method for one task; returns the task's whole id and the answer.
pub(super) fn ask_for(
    global: &Global,
    method: &str,
    typed: Option<&str>,
    mut params: Value,
) -> anyhow::Result<(String, Value)> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let id = match typed {
            Some(typed) => ids::resolve(&mut client, Kind::Task, typed).await?,
            None => latest_here(global, &mut client).await?,
        };
        member::set(&mut params, "taskId", id.as_str());
        let answer = client.call(method, params).await?;
        Ok((id, answer))
    })
}

/// Returns the latest task that somebody sent and that has a worktree of the repository of the
/// current directory, and notes which task that is. A flow that has picked no candidate has no
/// worktree; while it is open, no older task is taken in its place.
async fn latest_here(global: &Global, client: &mut Client) -> anyhow::Result<String> {
    let here = std::env::current_dir().context("find the current directory")?;
    let all = client.call("hub/worktrees/list", json!({})).await?;
    let mut without = Vec::new();
    for one in list(&all).iter().rev() {
        if !here.starts_with(text(&one["repository"])) {
            continue;
        }
        let parent = one["parentTaskId"].as_str();
        let sent = parent.unwrap_or_else(|| text(&one["taskId"]));
        if without.contains(&sent) {
            continue;
        }
        let task = match client.call("tasks/get", json!({ "id": sent })).await {
            Err(why) if CommandError::from_error(&why).is(NO_TASK) => Value::Null,
            found => found?,
        };
        // A flow names the one of its tasks whose worktree counts, once it has picked one.
        let picked = &task["metadata"][WORKTREE_TASK];
        let is_picked = || list(&all).iter().any(|one| one["taskId"] == *picked);
        if is_sent(&task) && (parent.is_none() || (picked.is_string() && is_picked())) {
            if !task.is_null() {
                note_taken(global, &task);
            }
            return Ok(sent.to_owned());
        }
        if OPEN.contains(&text(&task["status"]["state"])) && is_sent(&task) {
            let why = format!(
                "find the latest task with a worktree: task {sent} is the latest, and has picked none of its tasks yet; name \
                 another one, as `a2a-hub worktrees` lists them"
            );
            return Err(CommandError::new(NO_TASK, why)
                .mended_by(format!("a2a-hub task watch {sent}"))
                .into());
        }
        without.push(sent);
    }
    let none = match without.first() {
        Some(flow) => format!("task {flow} has picked none of its tasks"),
        None => format!("none has one of {}", here.display()),
    };
    let why = format!(
        "find the latest task with a worktree: {none}; name one, as `a2a-hub worktrees` lists them"
    );
    Err(CommandError::new(NO_TASK, why).mended_by("a2a-hub worktrees").into())
}
