//! Second start of an unattended run that the end of the previous process interrupted.

use crate::tasks::Tasks;
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::task::{
    metadata,
    recovery::{Asks, Resumability, UnfinishedTask},
    unattended,
};
use a2a_hub_protocol::{event::TaskEvent, task::TaskState};
use a2a_hub_store::{StorageError, StoredTask};
use std::sync::Arc;

impl Tasks {
    /// Starts the agent of an unattended run again, with a message of the hub in place of the
    /// client's. The message is stored first, so that a second interruption is known as such.
    pub(super) async fn begin_again(
        &self,
        mut stored: StoredTask,
        agent: Arc<Agent>,
        unfinished: UnfinishedTask,
    ) -> Result<(), StorageError> {
        let task = &stored.task;
        let is_known = unfinished.hold == Some(Resumability::Session)
            && unfinished.state != TaskState::Submitted
            && agent.config.history > 0;
        let Some(message) = unattended::again_message(task, is_known) else { return Ok(()) };
        let (state, now) = (TaskState::InputRequired, clock::now());
        let has_question = Asks::for_task(task) == Asks::ToGoOn && metadata::asks(task);
        let asks =
            (!has_question).then(|| metadata::interrupted(task, &agent.card.name, state, now));
        let events = asks.into_iter().chain([TaskEvent::Input(message)]).collect();
        self.append_to(&mut stored, state, events).await?;
        self.start_again(stored, agent).await
    }
}
