//! Schedules: messages that the hub sends at planned times.

use crate::model::{id::TaskId, task::TaskState};
use schemars::JsonSchema;
use serde::Serialize;

/// Schedule of the configuration: an element of the answer to `hub/schedules/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleInfo {
    /// Name of the schedule.
    pub name: String,
    /// Agent, flow or group that gets the message.
    pub agent: String,
    /// Person as whom its runs begin tasks; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// True if the owner must accept it before it starts a run: it passed from a removed person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offered: bool,
    /// Planned times as a cron expression of five fields.
    pub cron: String,
    /// Time zone of the expression; absent for that of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Rule for a run that the end of the hub interrupts: `again` or `fail`.
    pub on_restart: String,
    /// True if the operator paused the schedule.
    pub paused: bool,
    /// Next planned time (RFC 3339, in the zone of the schedule); absent while it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Latest run; absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ScheduleRun>,
    /// Planned time whose run waits for the end of the latest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<String>,
    /// Note about planned times without a run, such as missed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Reason why the next run would fail, with the way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Run of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRun {
    /// Planned time (RFC 3339, in the zone of the schedule).
    pub planned: String,
    /// Task of the run.
    pub task: TaskId,
    /// State of the task; absent if the task was deleted.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "state_name")]
    #[schemars(with = "Option<String>")]
    pub state: Option<TaskState>,
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
pub(super) fn state_name<S: serde::Serializer>(
    state: &Option<TaskState>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match state {
        Some(state) => to.serialize_str(state.name()),
        None => to.serialize_none(),
    }
}
