//! Access to the hub: what people may do by their keys, and on whose tasks; and what an agent's
//! program may do, which is what its agent may, on behalf of the task that it was started for.

use super::{Caller, Hub};
use crate::conversations::repeats::Claim;
use crate::{error::HubError, tasks::Subscription};
use a2a_hub_agents::{Agent, is_idle_owner};
use a2a_hub_core::{
    access_control::{self, Principal},
    identity::{KeyScope, PersonRights, PersonRule},
    task::idempotency,
};
use a2a_hub_process::TreeOwner;
use a2a_hub_protocol::{
    budget::Budget,
    error::{A2aError, ErrorKind},
    id::{AgentId, TaskId},
    operation::{Operation, SendMessage, TopicRequest},
    question::{self, Question, QuestionKind},
};
use a2a_hub_runtime::port::delegate::ChildRequest;

impl Hub {
    /// Checks that a caller may perform an operation at all.
    pub(super) fn may(&self, caller: &Principal, operation: &Operation) -> Result<(), A2aError> {
        let denied = match self.rights_of(caller)? {
            Some(rights) => {
                let rule = access_control::rule_for_people(operation);
                rights.may(rule).map_err(|why| why.to_string())
            }
            None => {
                let needed = access_control::needed(operation);
                caller.may(needed).map_err(|why| why.to_string())
            }
        };
        let kind = if *caller == Principal::Anonymous {
            ErrorKind::Authentication
        } else {
            ErrorKind::PermissionDenied
        };
        denied.map_err(|why| A2aError::new(kind, why))
    }

    /// Rights of a person; `None` for other callers.
    ///
    /// # Errors
    ///
    /// If the key of the person was revoked, or has expired.
    pub(super) fn rights_of(&self, caller: &Principal) -> Result<Option<PersonRights>, A2aError> {
        let Principal::Person { name, key } = caller else { return Ok(None) };
        let rights = self.people.rights(name, key);
        rights.map(Some).ok_or_else(|| {
            let why = format!("the key `{key}` of {name} was revoked, or has expired");
            A2aError::new(ErrorKind::Authentication, why)
        })
    }

    /// Refuses operations on tasks that a person may not change, and messages to agents that the
    /// key is not for. [`Hub::may`] has checked the operation itself.
    async fn require_persons_rights(
        &self,
        rights: &PersonRights,
        operation: &Operation,
    ) -> Result<(), HubError> {
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation {
            if send.push.is_some() {
                rights.require(KeyScope::Push)?;
            }
            if send.message.task_id.is_none() {
                rights.may_send_to(send.agent.as_ref())?;
            }
        }
        if let Operation::HandOver(request) = operation {
            rights.may_send_to(Some(&request.agent))?;
        }
        // A message to a topic may begin a task at any agent, by a trigger.
        if let Operation::Topic(TopicRequest::Publish { .. }) = operation {
            rights.may_send_to(None)?;
        }
        let PersonRule::Initiator(_) = access_control::rule_for_people(operation) else {
            return Ok(());
        };
        let Some(task) = operation.task() else { return Ok(()) };
        let initiator = self.tasks.initiator(task).await?.map(|by| by.identity());
        if initiator.is_none() {
            // An unknown task is not found, which says more than a refusal.
            self.tasks.get(task).await?;
        }
        rights.may_change(initiator.as_deref())?;
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation
            && let Err(why) = rights.require(KeyScope::Approve)
        {
            // A message that names no question answers the one that is open when it arrives.
            let named = question::answered(&send.message)?;
            let stored = self.tasks.get(task).await?.task;
            let open = Question::from_metadata(stored.metadata.as_ref());
            let is_harmless = |open: &Question| {
                named.as_ref() == Some(&open.id) && open.kind != QuestionKind::Permission
            };
            if !open.as_ref().is_some_and(is_harmless) {
                let why = format!(
                    "{why}; it answers other questions by their ids, such as by `hub/questions/answer`"
                );
                return Err(A2aError::new(ErrorKind::PermissionDenied, why).into());
            }
        }
        Ok(())
    }

    /// Refuses operations outside of the caller's tree of tasks, and on agents that its agent may
    /// not call.
    pub(super) async fn require_within(
        &self,
        caller: &Principal,
        operation: &Operation,
    ) -> Result<(), HubError> {
        if let Some(rights) = self.rights_of(caller)? {
            return self.require_persons_rights(&rights, operation).await;
        }
        let Principal::AgentTask { agent, task } = caller else { return Ok(()) };
        if let Some(id) = operation.task() {
            let only_looks = matches!(
                operation,
                Operation::GetTask { .. } | Operation::Resubscribe { .. } | Operation::GetTree(_)
            );
            if id == task && !only_looks {
                let why = format!(
                    "task `{id}` is the one that this program works on: its agent ends it, or its client"
                );
                return Err(A2aError::new(ErrorKind::PermissionDenied, why).into());
            }
            return self.tasks.require_within(task, id).await;
        }
        if let Operation::GetAgent { id } | Operation::GetCard { agent: Some(id) } = operation {
            return self.may_see(agent, id);
        }
        Ok(())
    }

    /// Resolves a program to its agent and to the task that its process tree serves now. Other
    /// callers stay the same.
    pub(super) fn at_work_now(&self, caller: Caller) -> Result<Caller, A2aError> {
        let Some(tree) = caller.principal.tree() else { return Ok(caller) };
        let refused = |why: &str| A2aError::new(ErrorKind::Authentication, why.to_owned());
        let Some(TreeOwner { agent, owner, .. }) = self.agents.owner_of_tree(tree) else {
            return Err(refused("the program that asks has ended"));
        };
        if is_idle_owner(&owner) {
            return Err(refused(
                "the program that asks is kept for a later task, and works for none now: what it asks, it asks for nobody",
            ));
        }
        let agent = AgentId::parse(agent).map_err(|why| refused(&why.to_string()))?;
        let principal = Principal::AgentTask { agent, task: TaskId::new(owner) };
        Ok(Caller { principal, ..caller })
    }

    fn may_see(&self, caller: &AgentId, agent: &AgentId) -> Result<(), HubError> {
        let caller = self.agent(Some(caller.clone()))?;
        caller.may_call(agent).map_err(|why| {
            HubError::from(A2aError::new(ErrorKind::PermissionDenied, why.to_string()))
        })
    }

    /// True if the caller may see an agent.
    pub(super) fn sees(&self, caller: &Principal, agent: &Agent) -> bool {
        match caller {
            Principal::AgentTask { agent: by, .. } => self.may_see(by, &agent.id).is_ok(),
            Principal::Operator
            | Principal::OperatorHttp
            | Principal::OperatorToken
            | Principal::Device { .. }
            | Principal::Automation { .. }
            | Principal::Client(_)
            | Principal::Person { .. }
            | Principal::Anonymous => true,
        }
    }

    /// Starts a child task at the agent that a program's message names. A repeated message gets the
    /// child that it began.
    pub(super) async fn give(
        &self,
        caller: &Caller,
        task: &TaskId,
        send: SendMessage,
    ) -> Result<Subscription, HubError> {
        // Without idempotency the request is not serialized. The caller in it is the program's
        // agent at this task, so the programs of two tasks are distinct.
        let whom = (&send.agent, &send.requirements);
        let is_remembered = self.repeats.are_remembered();
        let request = is_remembered.then(|| idempotency::request(caller, &whom, &send));
        let claim = self.claim(&caller.principal, request.as_ref()).await;
        if let Some(child) = claim.as_ref().and_then(Claim::task) {
            // The child may have been deleted; then a new one begins.
            if self.tasks.stored(child).await?.is_some() {
                return self.tasks.give_again(task, child, send.after.unwrap_or(0)).await;
            }
        }
        self.require_open()?;
        let SendMessage { mut message, agent, requirements, working_directory, timeout_ms, .. } =
            send;
        // A message that names no agent goes to one with the skill that the message names.
        let agent = match agent {
            Some(agent) => agent.to_string(),
            None if requirements.skill.is_some() => {
                requirements.write_to(message.metadata.get_or_insert_default());
                String::new()
            }
            None => {
                let why = "name the agent that is to hear the message, or a skill that it must have (`targetSkill`)";
                return Err(A2aError::invalid("message.metadata.targetAgent", why).into());
            }
        };
        let request = ChildRequest {
            budget: Budget::from_metadata(message.metadata.as_ref())?,
            context_id: message.context_id.as_ref().map(ToString::to_string),
            timeout_ms,
            working_directory,
            ..ChildRequest::new(agent, message)
        };
        let subscription = self.tasks.give(task, request).await?;
        if let Some(claim) = claim {
            claim.begun(subscription.task().clone());
        }
        Ok(subscription)
    }
}
