//! Subscription of a client that has just sent a message to an existing task: a snapshot of the
//! task, then its events.

use crate::{
    error::HubError,
    tasks::{Subscription, Tasks},
};
use a2a_hub_core::task::fold::TaskFold;
use a2a_hub_protocol::{id::TaskId, task::Task};
use a2a_hub_store::{StorageError, feed::PAGE, fold_page};

impl Tasks {
    /// Subscribes to a task, starting with a snapshot. If the task has ended in the meantime, the
    /// snapshot is the state before the end, followed by the end: every stream has one, however
    /// fast the agent was (A2A 0.3 ends each stream with a `final` status).
    pub async fn subscribe_after_input(&self, id: &TaskId) -> Result<Subscription, HubError> {
        // Looked up before the read, and read once: the task may end at any time.
        let running = self.find(id);
        let stored = self.get(id).await?;
        let last = stored.seq.saturating_sub(1);
        let before = match stored.task.status.state.is_final() {
            true => self.task_at(id, last).await?,
            false => None,
        };
        Ok(match before {
            Some(before) => {
                let subscription = self.subscribe_to(running, &stored, last);
                subscription.opening(stored.agent, before, last)
            }
            None => self.subscribe_from_snapshot(running, stored),
        })
    }

    /// State of a task after event `seq`, folded from its log; none if the task was deleted.
    async fn task_at(&self, id: &TaskId, seq: u64) -> Result<Option<Task>, StorageError> {
        let (mut task, mut at) = (None, 0);
        while at < seq {
            let remaining = usize::try_from(seq - at).unwrap_or(PAGE);
            let events = self.storage.events(id, at, remaining.min(PAGE)).await?;
            let Some(last) = events.last() else { return Ok(None) };
            at = last.seq;
            task = Some(fold_page(id, task, events.into_iter().map(|event| event.event))?);
        }
        Ok(task.map(TaskFold::into_task))
    }
}
