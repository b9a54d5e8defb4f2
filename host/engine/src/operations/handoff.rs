//! Hands a task over to another agent.

use super::Hub;
use crate::conversations::handoff::{self, MAX_HANDOFFS};
use crate::{error::HubError, tasks::ResponseMode};
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    operation::{HandOver, SendMessage},
    task::Task,
};
use serde_json::json;

impl Hub {
    /// Begins the new task, and returns it. The old one is cancelled by the new one's run.
    ///
    /// # Errors
    /// The task cannot be handed over, or the agent does not take it; then the task goes on.
    pub(super) async fn hand_over(
        &self,
        caller: &Caller,
        request: HandOver,
    ) -> Result<Task, HubError> {
        let HandOver { task: id, agent: to, note } = request;
        let to = self.agent(Some(to))?;
        let head = self.tasks.head(&id).await?;
        let old = self.tasks.get(&id).await?.task;
        let allowed = handoff::require_may(&old, head.parent.as_ref(), &head.agent, &to.id);
        allowed.map_err(|why| {
            A2aError::new(ErrorKind::UnsupportedOperation, why.to_string())
                .with(json!({ "reason": "handoff", "taskId": id }))
        })?;
        let message = self.tasks.handoff_message((&old, &head.agent), &to, note.as_deref()).await;
        let hub_facts = Some(handoff::fact_of_new(&head.agent, &id, None));
        let send = SendMessage {
            task_metadata: hub_facts,
            agent: Some(to.id.clone()),
            ..SendMessage::new(message, None)?
        };
        let subscription = self.start_anew(caller, Box::new(send), ResponseMode::TaskOnly).await?;
        tracing::info!(task = %id, to = %to.id, next = %subscription.task(), "a task was handed over");
        Ok(self.tasks.get(subscription.task()).await?.task)
    }

    /// Task that goes on with `task`, after all handoffs.
    pub(super) async fn latest_of(&self, mut task: Task) -> Result<Task, HubError> {
        for _ in 0..MAX_HANDOFFS {
            let Some(next) = handoff::successor(&task) else { break };
            match self.next_of(&next).await? {
                Some(found) => task = found,
                None => break,
            }
        }
        Ok(task)
    }

    /// Waits until the task is over or waits for its client; none if it does not exist any more.
    async fn next_of(&self, id: &TaskId) -> Result<Option<Task>, HubError> {
        if self.tasks.stored(id).await?.is_none() {
            return Ok(None);
        }
        let mut subscription = self.tasks.resubscribe(id, None).await?;
        while let Some(recorded) = subscription.next().await {
            recorded?;
        }
        Ok(Some(self.tasks.get(id).await?.task))
    }
}
