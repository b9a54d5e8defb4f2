//! What a client hears that has just said more to a task: the task first, and then what happens to it.

use super::{Subscription, Tasks, feed::PAGE};
use crate::error::HubError;
use a2a_hub_protocol::{id::TaskId, task::Task};
use a2a_hub_store::{StorageError, fold};

impl Tasks {
    /// Hears a task as it stands, and what happens from now on. One that came to its end meanwhile is told as it was before, and then its end: a stream has one, however quick
    /// the agent was (A2A 0.3 ends each with a status that is `final`).
    pub async fn hear_on(&self, id: &TaskId) -> Result<Subscription, HubError> {
        // Looked up before it is read, and read once: its end may come at any time.
        let running = self.find(id);
        let stored = self.get(id).await?;
        let last = stored.seq.saturating_sub(1);
        let before = match stored.task.status.state.is_final() {
            true => self.task_at(id, last).await?,
            false => None,
        };
        Ok(match before {
            Some(before) => {
                let heard = self.subscribe_to(running, &stored, last);
                heard.opening(stored.agent, before, last)
            }
            None => self.as_it_stands(running, stored),
        })
    }

    /// A task as it was after event `seq`, by its log; none if it is not there any more.
    async fn task_at(&self, id: &TaskId, seq: u64) -> Result<Option<Task>, StorageError> {
        let (mut task, mut at) = (None, 0);
        while at < seq {
            let left = usize::try_from(seq - at).unwrap_or(PAGE);
            let events = self.storage.events(id, at, left.min(PAGE)).await?;
            let Some(last) = events.last() else { return Ok(None) };
            at = last.seq;
            task = Some(fold(id, task, events.into_iter().map(|event| event.event))?);
        }
        Ok(task)
    }
}
