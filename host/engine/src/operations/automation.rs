//! Runs of schedules and triggers: how one is started, found at work, and replaced.

use super::{Hub, Reply};
use crate::conversations::handoff::{self, MAX_HANDOFFS};
use crate::error::HubError;
use a2a_hub_automation::message::AutomatedMessage;
use a2a_hub_core::{access_control::Principal, discovery::did_you_mean::hint};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    operation::{Answer, Operation},
    task::TaskState,
};
use a2a_hub_store::Head;
use std::collections::BTreeMap;

/// Number of attempts to start a run, one at each poll: an agent may be busy, or load just now.
pub(super) const ATTEMPTS: u32 = 30;

/// Error of starting a run.
pub(super) enum RunRefusal {
    /// Another attempt may succeed.
    Refused(A2aError),
    /// The hub cannot say now.
    Unknown(HubError),
}

impl From<RunRefusal> for HubError {
    fn from(why: RunRefusal) -> Self {
        match why {
            RunRefusal::Refused(why) => why.into(),
            RunRefusal::Unknown(why) => why,
        }
    }
}

/// Starts a run as the task `id`, unless that exists.
pub(super) async fn start_run(
    hub: &Hub,
    message: AutomatedMessage<'_>,
    id: TaskId,
) -> Result<TaskId, RunRefusal> {
    let is_there = hub.tasks.stored(&id).await;
    if is_there.map_err(|why| RunRefusal::Unknown(why.into()))?.is_some() {
        return Ok(id);
    }
    let by = Principal::Automation { name: message.name.to_owned() };
    let send = message.request(id.clone()).map_err(RunRefusal::Refused)?;
    let sent = hub.handle(by, None, Operation::SendMessage(Box::new(send))).await;
    match sent.map_err(RunRefusal::Refused)? {
        Reply::One(Answer::Task(task)) => Ok(task.id),
        Reply::One(_) | Reply::Stream(_) => Ok(id),
    }
}

/// State of a run's task, or of the one that goes on with it; none if the task was deleted.
pub(super) async fn state_of(hub: &Hub, task: &TaskId) -> Result<Option<TaskState>, HubError> {
    Ok(latest_of(hub, task).await?.map(|head| head.state))
}

/// Task that goes on with a run, after all handoffs.
async fn latest_of(hub: &Hub, task: &TaskId) -> Result<Option<Head>, HubError> {
    let mut latest = hub.tasks.find_head(task).await?;
    for _ in 0..MAX_HANDOFFS {
        let over = latest.as_ref().filter(|head| head.state == TaskState::Canceled);
        let Some(over) = over else { break };
        let over = hub.tasks.stored(&over.task).await?;
        let Some(next) = over.and_then(|over| handoff::successor(&over.task)) else { break };
        match hub.tasks.find_head(&next).await? {
            Some(head) => latest = Some(head),
            None => break,
        }
    }
    Ok(latest)
}

/// True if the latest run is still at work. `is_over` spares the next question once it is not.
pub(super) async fn is_at_work(
    hub: &Hub,
    last: Option<&String>,
    is_over: &mut bool,
) -> Result<bool, HubError> {
    let Some(task) = last.filter(|_| !*is_over) else { return Ok(false) };
    let state = state_of(hub, &TaskId::new(task.as_str())).await?;
    *is_over = state.is_none_or(TaskState::is_final);
    Ok(!*is_over)
}

/// Cancels the previous run of a schedule or trigger.
pub(super) async fn replace(hub: &Hub, name: &str, before: &TaskId) -> Result<(), HubError> {
    let by = Principal::Automation { name: name.to_owned() };
    let latest = latest_of(hub, before).await?;
    match hub.tasks.cancel(latest.as_ref().map_or(before, |head| &head.task), by).await {
        Ok(_) => Ok(()),
        // It has ended meanwhile.
        Err(why) if why.error().kind == ErrorKind::TaskNotCancelable => Ok(()),
        Err(why) => Err(why),
    }
}

/// The schedule or trigger of this name; `kind` is `schedule` or `trigger`.
///
/// # Errors
/// None has that name: the error names a similar one.
pub(super) fn find_named<T>(
    mut all: BTreeMap<String, T>,
    kind: &str,
    name: &str,
) -> Result<T, HubError> {
    all.remove(name).ok_or_else(|| {
        let hint = hint(name, all.keys().map(String::as_str));
        let hint = hint.unwrap_or_else(|| {
            format!(
                "`a2a-hub {kind} list` lists them; `[{kind}.<id>]` in the configuration makes one"
            )
        });
        A2aError::invalid("name", format!("no {kind} is called `{name}`; {hint}")).into()
    })
}
