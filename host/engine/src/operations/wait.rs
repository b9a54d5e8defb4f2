//! Waits for a task's result, or for its question.

use super::{Hub, handoff::HandoffOperations};
use crate::{error::HubError, tasks::Subscription};
use a2a_hub_core::task::state;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    operation::Answer,
    task::{Task, TaskState},
};
use serde_json::json;

impl Hub {
    /// Waits until the task is over, or waits for its client.
    pub(super) async fn hear_out(&self, heard: &mut Subscription) -> Result<Answer, HubError> {
        // Folds the task from the events, if the stream starts with the first one: that saves
        // reading the log again.
        let mut whole: Option<Task> = None;
        while let Some(recorded) = heard.next().await {
            match &recorded?.event {
                TaskEvent::Reply(message) => return Ok(Answer::Message(message.clone())),
                TaskEvent::Created(created) => whole = Some(created.task.clone()),
                event @ (TaskEvent::Status(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_)) => {
                    whole = whole.and_then(|mut task| {
                        state::apply(&mut task, event).is_ok().then_some(task)
                    });
                }
            }
        }
        let task = match whole {
            Some(task) => task,
            None => self.tasks.get(heard.task()).await?.task,
        };
        if task.status.state == TaskState::Submitted || task.status.state == TaskState::Working {
            let why = "the hub stopped, or its store failed, before the task ended; `tasks/get` tells what became of it";
            return Err(A2aError::new(ErrorKind::Internal, why)
                .with(json!({ "taskId": task.id }))
                .into());
        }
        Ok(Answer::Task(Box::new(Box::pin(HandoffOperations(self).latest_of(task)).await?)))
    }
}
