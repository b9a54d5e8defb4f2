//! What the choice of an agent needs to know of tasks.

use super::{Subscription, Tasks};
use crate::error::HubError;
use crate::routes::{Question, Route, Routes, looks_for_holder};
use a2a_hub_core::routing::Wanted;
use a2a_hub_protocol::{event::TaskEvent, id::AgentId, message::Message, task::TaskState};
use a2a_hub_store::{HeadFilter, StorageError};
use std::time::Duration;
use tokio::time::timeout;

/// How long it is listened for whether an agent rejects a task at once, while another one could have it. The hub says of one that
/// says nothing that it works, long before.
const AT_ONCE: Duration = Duration::from_millis(500);

impl Tasks {
    /// How many tasks of an agent run or wait for their turn.
    pub fn load(&self, agent: &AgentId) -> usize {
        self.queue.load(agent)
    }

    /// Chooses an agent for a message, among those that whoever asks may have do something.
    pub async fn choose(
        &self,
        routes: &Routes,
        wanted: Wanted,
        message: &Message,
        may_call: &(dyn Fn(&AgentId) -> bool + Send + Sync),
    ) -> Result<Route, HubError> {
        let holder = self.holder(looks_for_holder(routes.balance(&wanted), message)).await?;
        let load = |agent: &AgentId| self.load(agent);
        let asked = Question { message, holder: holder.as_ref(), load: &load, may_call };
        routes.choose(wanted, &asked)
    }

    /// The agent whose the latest task of a conversation is.
    async fn holder(
        &self,
        context: Option<&a2a_hub_protocol::id::ContextId>,
    ) -> Result<Option<AgentId>, StorageError> {
        let Some(context) = context else { return Ok(None) };
        let latest =
            HeadFilter { context: Some(context.clone()), limit: 1, ..HeadFilter::default() };
        Ok(self.storage.heads(latest).await?.pop().map(|head| head.agent))
    }

    /// What the agent said, if it rejects the task that has just begun before it says anything else. Waits for its first word, or the
    /// hub's in its place. Of a task that is over by now, the log tells.
    pub async fn rejection(&self, heard: &Subscription) -> Option<String> {
        // The first event is that it is there.
        let mut follow = match self.listen(heard.task(), 1) {
            Some(follow) => follow,
            None => self.follow(heard.task(), 1).await.ok()?,
        };
        let first = timeout(AT_ONCE, follow.next()).await.ok()??.ok()?;
        match &first.event {
            TaskEvent::Status(update) if update.status.state == TaskState::Rejected => {
                Some(update.status.message.as_ref().map(Message::joined_text).unwrap_or_default())
            }
            TaskEvent::Status(_)
            | TaskEvent::Artifact(_)
            | TaskEvent::Reply(_)
            | TaskEvent::Created(_)
            | TaskEvent::Input(_) => None,
        }
    }
}
