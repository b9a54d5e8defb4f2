//! Triggers: the requests for them, and their answers.

use super::schedules::state_name;
use crate::model::{id::TaskId, task::TaskState};
use schemars::JsonSchema;
use serde::Serialize;

/// Request for the triggers of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerRequest {
    /// Lists the triggers: all for an operator that names no tenant, or those of a tenant.
    List,
    /// Starts a run now, without an event.
    Run(String),
    /// Pauses a trigger: events start no run.
    Pause(String),
    /// Resumes a trigger that was paused, or stopped by its limit.
    Resume(String),
    /// Accepts a trigger that passed to the calling person, for which it then runs.
    Accept(String),
}

impl TriggerRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List => "list_triggers",
            Self::Run(_) => "run_trigger",
            Self::Pause(_) => "pause_trigger",
            Self::Resume(_) => "resume_trigger",
            Self::Accept(_) => "accept_trigger",
        }
    }
}

/// Answer to a [`TriggerRequest`]; a run is answered by its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TriggerAnswer {
    /// Triggers of the configuration.
    List(Vec<TriggerInfo>),
    /// Trigger that was paused, resumed or accepted.
    One(Box<TriggerInfo>),
}

/// Trigger of the configuration: an element of the answer to `hub/triggers/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerInfo {
    /// Name of the trigger.
    pub name: String,
    /// Agent, flow or group that gets the message.
    pub agent: String,
    /// Person as whom its runs begin tasks; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// True if the owner must accept it before it starts a run: it passed from a removed person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offered: bool,
    /// Kind of events: `commit`, `file`, `task`, `topic` or `webhook`.
    pub on: String,
    /// Directory that is watched, agent whose tasks count, topics, or path that takes webhooks.
    pub watches: String,
    /// Rule for a run that the end of the hub interrupts: `again` or `fail`.
    pub on_restart: String,
    /// True if the operator paused the trigger.
    pub paused: bool,
    /// True if the limit of runs an hour stopped the trigger, until it is resumed.
    pub stopped: bool,
    /// Number of events that wait for a run.
    pub pending: usize,
    /// Latest run; absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<TriggerRun>,
    /// Note about events without a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Reason why an event would start no run, with the way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Run of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRun {
    /// Start (RFC 3339, in UTC).
    pub started: String,
    /// Task of the run.
    pub task: TaskId,
    /// State of the task; absent if the task was deleted.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "state_name")]
    #[schemars(with = "Option<String>")]
    pub state: Option<TaskState>,
}
