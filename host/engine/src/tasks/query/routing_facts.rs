//! Routing queries on tasks: load, the conversation's agent, immediate rejection.

use crate::{
    error::HubError,
    routing::{AgentRoute, Routes, RoutingInput, looks_for_holder},
    tasks::{NewTask, ResponseMode, SubmitError, Subscription, TaskRefused, Tasks},
};
use a2a_hub_agents::Agent;
use a2a_hub_config::OnQuota;
use a2a_hub_core::{
    identity::CardScopes,
    routing::{NotChosen, Wanted},
    task::{metadata, quota::QuotaReaction},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::AgentId,
    message::Message,
    task::TaskState,
};
use a2a_hub_store::{HeadFilter, StorageError};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Time that routing waits for an agent to reject a task, while another agent could take it. The
/// hub's own `working` status for a silent agent comes long before.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Refuses a message to an agent for a skill, or for any if it names none, without their scopes.
pub fn require_scopes(
    scopes: &CardScopes,
    agent: &Agent,
    skill: Option<&str>,
) -> Result<(), A2aError> {
    scopes.require_for(&agent.card, skill).map_err(|why| {
        A2aError::new(ErrorKind::PermissionDenied, format!("send to `{}`: {why}", agent.id))
    })
}

impl Tasks {
    /// Number of an agent's tasks that run or wait for a run permit.
    pub fn load(&self, agent: &AgentId) -> usize {
        self.queue.load(agent)
    }

    /// Chooses an agent for a message, among those that the caller may use.
    pub async fn choose(
        &self,
        routes: &Routes,
        wanted: Wanted,
        message: &Message,
        may_call: &(dyn Fn(&AgentId) -> bool + Send + Sync),
    ) -> Result<AgentRoute, HubError> {
        let holder = self.holder(looks_for_holder(routes.balance(&wanted), message)).await?;
        let load = |agent: &AgentId| self.load(agent);
        let input = RoutingInput { message, holder: holder.as_ref(), load: &load, may_call };
        routes.choose(wanted, &input)
    }

    /// Offers a task to its agent: starts it, unless the agent is unhealthy, has an open circuit
    /// breaker, has too much to do, or takes tasks of flows only.
    pub async fn offer(&self, mut new: Box<NewTask>) -> Result<Subscription, TaskRefused> {
        let by_agent = |reason, why: HubError| TaskRefused::ByAgent(reason, why.into());
        let agent = Arc::clone(&new.agent);
        if agent.is_script() {
            let why = format!(
                "send to `{}`: it runs the programs of trusted flows, and only these call it; run a flow by its name, as \
                 `a2a-hub run NAME` does",
                agent.id
            );
            let why = A2aError::new(ErrorKind::UnsupportedOperation, why);
            return Err(TaskRefused::ByHub(why.into()));
        }
        let scopes = CardScopes::of_tree(new.facts.as_ref());
        require_scopes(&scopes, &agent, metadata::named_skill(&new.message))
            .map_err(|why| by_agent(NotChosen::Scopes, why.into()))?;
        agent.require_working().await.map_err(|why| by_agent(NotChosen::Health, why.into()))?;
        agent.admit().map_err(|why| by_agent(NotChosen::Breaker, why.into()))?;
        if new.routing.as_ref().is_some_and(|it| self.hands_on(&agent, it.named.as_ref())) {
            // Another agent may go on with the task, which is in the log before its agent begins.
            new.response = ResponseMode::TaskOnly;
        }
        self.submit(new).await.map_err(|why| match why {
            busy @ SubmitError::Busy { .. } => by_agent(NotChosen::Busy, busy.into()),
            why @ (SubmitError::Storage(_)
            | SubmitError::Worktree(_)
            | SubmitError::Directory(_)) => TaskRefused::ByHub(why.into()),
        })
    }

    /// True if the tasks that this group gave the agent are handed over to another of its agents.
    pub(in crate::tasks) fn hands_on(&self, agent: &Agent, group: Option<&AgentId>) -> bool {
        let routes = self.directory.routes().zip(group);
        let hands_over = agent.config.on_quota == Some(QuotaReaction::Handoff);
        routes.is_some_and(|(routes, group)| {
            hands_over || routes.agents().on_quota(group) == OnQuota::Handoff
        })
    }

    /// Agent of the latest task in a conversation.
    async fn holder(
        &self,
        context: Option<&a2a_hub_protocol::id::ContextId>,
    ) -> Result<Option<AgentId>, StorageError> {
        let Some(context) = context else { return Ok(None) };
        let latest =
            HeadFilter { context: Some(context.clone()), limit: 1, ..HeadFilter::default() };
        Ok(self.storage.heads(latest).await?.pop().map(|head| head.agent))
    }

    /// Text of the rejection, if the agent rejects the new task as its first event. Waits for the
    /// first event after the creation. For a task that is already over, it is read from the log.
    pub async fn rejection(&self, subscription: &Subscription) -> Option<String> {
        // Event 1 is the creation.
        let mut follow = match self.listen(subscription.task(), 1) {
            Some(follow) => follow,
            None => self.follow(subscription.task(), 1).await.ok()?,
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
