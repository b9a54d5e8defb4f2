//! What a client hears that has just said more to a task: the task first, and then what happens to it.

use super::{Subscription, Tasks};
use crate::error::HubError;
use a2a_hub_core::task;
use a2a_hub_protocol::{event::TaskEvent, id::TaskId, task::Task};
use a2a_hub_store::StorageError;

/// Events read from the log at once.
const PAGE: usize = 256;

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
            None => self.standing(running, stored),
        })
    }

    /// A task as it was after event `seq`, by its log; none if it is not there any more, or began later.
    async fn task_at(&self, id: &TaskId, seq: u64) -> Result<Option<Task>, StorageError> {
        let (mut task, mut at) = (None, 0);
        while at < seq {
            let left = usize::try_from(seq - at).unwrap_or(PAGE);
            let events = self.storage.events(id, at, left.min(PAGE)).await?;
            if events.is_empty() {
                return Ok(None);
            }
            for event in events {
                at = event.seq;
                match (&mut task, event.event) {
                    (None, TaskEvent::Created(created)) => task = Some(created.task),
                    (None, _) => return Ok(None),
                    (Some(task), event) => task::apply(task, &event)?,
                }
            }
        }
        Ok(task)
    }
}
