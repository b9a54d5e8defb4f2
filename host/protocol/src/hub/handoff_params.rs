//! Parameters of the methods for tasks whose agent cannot go on: handoff, and another try.

use crate::{
    model::{
        error::A2aError,
        id::AgentId,
        operation::{HandOver, Operation},
    },
    v03::params::{read, task_id},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Longest note in bytes.
const MAX_NOTE: usize = 16 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HandOverParams {
    /// Id of the task, which must not be completed, and not be another task's child.
    task_id: String,
    /// Agent that goes on.
    agent_id: AgentId,
    /// Words to that agent, at most 16 KiB.
    note: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryNowParams {
    /// Id of the task, which waits for the quota of its agent.
    task_id: String,
}

/// Reads the parameters of `hub/tasks/retryNow`.
pub(crate) fn retry_now(params: Value) -> Result<Operation, A2aError> {
    let RetryNowParams { task_id: id } = read(params)?;
    Ok(Operation::RetryNow { task: task_id("taskId", id)? })
}

/// Reads the parameters of `hub/tasks/handoff`.
pub(crate) fn hand_over(params: Value) -> Result<Operation, A2aError> {
    let HandOverParams { task_id: id, agent_id: agent, note } = read(params)?;
    if note.as_ref().is_some_and(|note| note.len() > MAX_NOTE) {
        return Err(A2aError::invalid("note", format!("must have at most {MAX_NOTE} bytes")));
    }
    let note = note.filter(|note| !note.trim().is_empty());
    Ok(Operation::HandOver(HandOver { task: task_id("taskId", id)?, agent, note }))
}
