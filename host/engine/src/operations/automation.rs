//! Starts of the runs of schedules and triggers.

use super::{Hub, Reply};
use crate::error::HubError;
use a2a_hub_automation::message::AutomatedMessage;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    error::A2aError,
    id::TaskId,
    operation::{Answer, Operation},
};

/// Number of attempts to start a run, one at each look: an agent may be busy, or load just now.
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
