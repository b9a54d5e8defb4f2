//! Routes a delegation call to a child: the existing one with the call's key, or a new one at an
//! agent that takes it, if the call names a group or a skill.

use super::{
    Delegation,
    call_errors::{failed, refused},
};
use crate::{error::HubError, routing::Routes, tasks::Subscription};
use a2a_hub_agents::Agent;
use a2a_hub_core::{
    grant::delegate::Callee,
    routing::{NotChosen, Wanted},
    task::metadata,
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::{AgentId, TaskId},
    operation::AgentRequirements,
};
use a2a_hub_runtime::{Failure, port::delegate::ChildRequest};
use a2a_hub_store::KnownChild;
use std::sync::Arc;

impl Delegation {
    /// Routing request of a call that does not name one agent: a group by its name or, if the call
    /// names nobody, a skill from the message's metadata. If an agent is named, the metadata is
    /// ignored: it may be a client's instruction to the caller.
    pub(in crate::tasks) fn wanted(
        &self,
        request: &ChildRequest,
    ) -> Result<Option<(Routes, Wanted)>, Failure> {
        let Some(routes) = self.tasks.directory.routes() else { return Ok(None) };
        let by = |wanted: Wanted| (routes.clone(), wanted);
        let invalid =
            |why: A2aError| Failure::Invalid(format!("call another agent: {}", why.message));
        if request.agent.is_empty() {
            let requirements =
                AgentRequirements::from_metadata(request.message.metadata.as_ref(), None);
            let wanted = routes.wanted(None, &requirements.map_err(invalid)?).map_err(invalid)?;
            return wanted.map(by).map(Some).ok_or_else(|| {
                let why = "call another agent: name it, or name a skill in `targetSkill` of the message's metadata";
                Failure::Invalid(why.to_owned())
            });
        }
        let Ok(named) = AgentId::parse(&request.agent) else { return Ok(None) };
        let wanted = routes.wanted(Some(&named), &AgentRequirements::default());
        Ok(wanted.map_err(invalid)?.map(by))
    }

    /// Calls the first requested agent that takes the task, among those that the agent may call.
    /// The child of an agent that rejects it at once stays in the log. Grants name agents, never
    /// groups: a group widens no grant.
    pub(in crate::tasks) async fn open_routed(
        &self,
        request: ChildRequest,
        (routes, wanted): (Routes, Wanted),
    ) -> Result<Subscription, Failure> {
        if let Some(key) = &request.key
            && let Some(known) = self.child_under(key).await?
        {
            return self.join_again(&known.task, request.answers_questions).await;
        }
        // A group is called for no skill; its message may be a client's instruction to the caller.
        let skill = request.agent.is_empty().then(|| metadata::named_skill(&request.message));
        let skill = skill.flatten().map(str::to_owned);
        let (caller, of_call) = (Arc::clone(&self.agent), skill.clone());
        let this = self.clone();
        let may_call = move |agent: &AgentId| {
            *agent != caller.id
                && caller.callee(&Callee::new(agent.clone()), of_call.as_deref()).is_ok()
                && metadata::may_reach(&this.task, agent)
        };
        let route = self.tasks.choose(&routes, wanted, &request.message, &may_call).await;
        let mut route = route.map_err(|why| denied_or(why, &self.agent))?;
        while let Some(child) = route.agent() {
            let callee = self.agent.callee(&Callee::new(child.id.clone()), skill.as_deref())?;
            let (reason, begun) = match self.require_available(&child).await {
                Ok(()) => (
                    NotChosen::Busy,
                    self.begin(request.clone(), child, callee, route.routing_facts()).await,
                ),
                Err(why) => (NotChosen::Health, Err(why)),
            };
            match begun {
                Err(Failure::Unavailable(why)) => {
                    route.pass(reason, A2aError::new(ErrorKind::AgentUnavailable, why));
                }
                Ok(subscription) if route.has_another() => {
                    match self.tasks.rejection(&subscription).await {
                        Some(text) => route.pass_rejected(subscription.task().clone(), &text),
                        None => return Ok(subscription),
                    }
                }
                // The caller receives the last agent's rejection itself.
                begun => return begun,
            }
        }
        Err(Failure::Unavailable(A2aError::from(route.refusal()).message))
    }

    /// Existing child with this key.
    pub(super) async fn child_under(&self, key: &str) -> Result<Option<KnownChild>, Failure> {
        let mut known = self.known_children.lock().await;
        let child = known.under(&*self.tasks.storage, &self.task.id, key).await;
        child.map_err(|why| failed("list children", &why))
    }

    /// Refuses a child that is unhealthy or whose circuit breaker is open.
    pub(in crate::tasks) async fn require_available(&self, child: &Agent) -> Result<(), Failure> {
        child.require_working().await.map_err(|why| refused(HubError::from(why)))?;
        child.admit().map_err(|why| refused(HubError::from(why)))
    }

    /// Joins an existing child, and relays its questions.
    pub(in crate::tasks) async fn join_again(
        &self,
        child: &TaskId,
        answers: bool,
    ) -> Result<Subscription, Failure> {
        let subscription = self.tasks.follow(child, 0).await.map_err(refused)?;
        self.relay_questions_again(child, answers).await?;
        Ok(subscription)
    }
}

/// Converts a routing error: if the caller may call none of the requested agents, the call is
/// denied.
fn denied_or(why: HubError, caller: &Agent) -> Failure {
    if why.is_passing() {
        return refused(why);
    }
    let why = A2aError::from(why);
    if why.kind != ErrorKind::AgentNotFound {
        return Failure::Unavailable(why.message);
    }
    Failure::Denied(format!(
        "call another agent: {}, of those that this agent may call; the operator allows others with `delegate = [\"NAME\"]` in \
         `[agents.{}.grant]` of the hub's configuration",
        why.message, caller.id
    ))
}
