//! Access to the hub: what people may do by their keys, and on whose tasks; and what an agent's
//! program may do, which is what its agent may, on behalf of the task that it was started for.

use super::{Caller, Hub};
use crate::conversations::repeats::Claim;
use crate::{
    error::HubError,
    tasks::{Subscription, VisibleTasks, require_scopes},
};
use a2a_hub_agents::{Agent, is_idle_owner};
use a2a_hub_core::{
    access_control::{self, Principal},
    identity::{CardScopes, KeyScope, PersonProof, PersonRights, PersonRule, TaskFacts},
    task::idempotency,
};
use a2a_hub_process::TreeOwner;
use a2a_hub_protocol::{
    budget::Budget,
    error::{A2aError, ErrorKind},
    id::{AgentId, ContextId, TaskId},
    operation::{BoardRequest, Operation, RuleRequest, SendMessage, TopicRequest, TriggerRequest},
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
            let why = match PersonProof::parse(key).certificate {
                None if self.people.knows_key(key) => {
                    format!("the key `{key}` of {name} has expired")
                }
                None => format!("the key `{key}` of {name} was revoked"),
                Some(_) => format!(
                    "the credentials `{key}` of {name} count no more, or their scopes have nothing in common"
                ),
            };
            A2aError::new(ErrorKind::Authentication, why)
        })
    }

    /// Refuses a further message that names a skill whose scopes the caller lacks.
    async fn require_card_scopes(
        &self,
        scopes: &CardScopes,
        operation: &Operation,
    ) -> Result<(), HubError> {
        let (Operation::SendMessage(send) | Operation::StreamMessage(send)) = operation else {
            return Ok(());
        };
        let (Some(task), Some(skill)) = (&send.message.task_id, &send.requirements.skill) else {
            return Ok(());
        };
        let (agent, _) = self.tasks.whose(task).await?;
        let Some(agent) = self.agents.find(&agent) else { return Ok(()) };
        Ok(require_scopes(scopes, &agent, Some(skill))?)
    }

    /// Refuses operations on tasks that a person may not change, and messages to agents that the
    /// key is not for. A task that the person may not see is not found. [`Hub::may`] has checked
    /// the operation itself.
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
                rights.may_send_to(send.agent.as_ref(), send.requirements.skill.as_deref())?;
                if let Some(context) = &send.message.context_id {
                    self.require_context(rights, context).await?;
                }
            }
        }
        if let Operation::HandOver(request) = operation {
            rights.may_send_to(Some(&request.agent), None)?;
        }
        // A message to a topic may begin a task at any agent, by a trigger.
        if let Operation::Topic(TopicRequest::Publish { .. }) = operation {
            rights.may_send_to(None, None)?;
        }
        let rule = access_control::rule_for_people(operation);
        if rule == PersonRule::May(KeyScope::AdminGrant) {
            rights.may_grant()?;
        }
        let Some(task) = operation.task() else {
            if is_about_all(operation) {
                rights.require_all()?;
            }
            return Ok(());
        };
        let is_change = matches!(rule, PersonRule::Initiator(_));
        if rights.sees_all() && !is_change {
            return Ok(());
        }
        let PersonRights { name, scopes, .. } = rights;
        let facts = self.tasks.facts(task, name, scopes.name_skills()).await?;
        // A worktree may outlive its task.
        if facts.agents.is_empty() && !matches!(operation, Operation::Worktree(_)) {
            // An unknown task is not found, which says more than a refusal.
            self.tasks.get(task).await?;
        }
        if !rights.sees(&facts) {
            return Err(A2aError::no_task(task).into());
        }
        let PersonRule::Initiator(scope) = rule else { return Ok(()) };
        rights.may_change(&facts)?;
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation {
            if send.push.is_some() {
                rights.require_for(KeyScope::Push, &facts)?;
            }
            // A key for one skill of an agent names no other one in the middle of a task.
            if let Some(skill) = &send.requirements.skill {
                let agent = facts.agents.first().map(|at| &at.agent);
                rights.may_send_to(agent, Some(skill))?;
            }
            return self.require_answer(rights, send, task, &facts).await;
        }
        // The agent that takes a task over counts, which was checked above.
        if matches!(operation, Operation::HandOver(_)) {
            return Ok(());
        }
        Ok(rights.require_for(scope, &facts)?)
    }

    /// Refuses a message in a conversation of which the person may not see all tasks: the agent
    /// would tell what is in it.
    async fn require_context(
        &self,
        rights: &PersonRights,
        context: &ContextId,
    ) -> Result<(), HubError> {
        let Some(visible) = VisibleTasks::of(&self.tasks, Some(rights.clone())) else {
            return Ok(());
        };
        let is_new = self.contexts.get(context, 0).await?.is_none();
        match is_new || visible.sees_context(context).await? {
            true => Ok(()),
            false => Err(A2aError::no_context(context).into()),
        }
    }

    /// Refuses a message to a task that the key may not answer, or that could answer a request for
    /// permission without the scope for it.
    async fn require_answer(
        &self,
        rights: &PersonRights,
        send: &SendMessage,
        task: &TaskId,
        facts: &TaskFacts,
    ) -> Result<(), HubError> {
        let may_approve = rights.require(KeyScope::Approve);
        if may_approve.is_ok() && rights.scopes.covers_tree(KeyScope::Approve, facts) {
            return Ok(rights.require_for(KeyScope::Answer, facts)?);
        }
        // A message that names no question answers the one that is open when it arrives.
        let named = question::answered(&send.message)?;
        let stored = self.tasks.get(task).await?.task;
        let open = Question::from_metadata(stored.metadata.as_ref());
        let open = open.filter(|open| named.as_ref() == Some(&open.id));
        let refused = match &open {
            Some(open) if open.kind != QuestionKind::Permission => {
                return Ok(rights.require_for(KeyScope::Answer, facts)?);
            }
            Some(open) => {
                let PersonRights { name, scopes, .. } = rights;
                let asking = match &open.task {
                    Some(asking) if self.tasks.find_head(asking).await?.is_some() => {
                        self.tasks.facts(asking, name, scopes.name_skills()).await?
                    }
                    Some(_) | None => facts.clone(),
                };
                may_approve.and_then(|()| rights.require_for(KeyScope::Approve, &asking))
            }
            None => may_approve.and_then(|()| rights.require_for(KeyScope::Approve, facts)),
        };
        match (refused, open) {
            (Ok(()), Some(_)) => Ok(()),
            (Err(why), _) => {
                let why = format!(
                    "{why}; it answers other questions by their ids, such as by `hub/questions/answer`"
                );
                Err(A2aError::new(ErrorKind::PermissionDenied, why).into())
            }
            (Ok(()), None) => {
                let why = format!(
                    "this key of {} may answer requests for permission of some agents only, so its messages name the question; \
                     it answers by ids, such as by `hub/questions/answer`",
                    rights.name
                );
                Err(A2aError::new(ErrorKind::PermissionDenied, why).into())
            }
        }
    }

    /// Refuses operations outside of the caller's tree of tasks, and on agents that its agent may
    /// not call.
    pub(super) async fn require_within(
        &self,
        caller: &Principal,
        operation: &Operation,
    ) -> Result<(), HubError> {
        let rights = self.rights_of(caller)?;
        let scopes = caller.card_scopes(rights.as_ref());
        if let Some(rights) = rights {
            // Boxed: requests of others do not carry its state.
            return Box::pin(async {
                self.require_persons_rights(&rights, operation).await?;
                self.require_card_scopes(&scopes, operation).await
            })
            .await;
        }
        if let Principal::Client(_) = caller {
            return Box::pin(self.require_card_scopes(&scopes, operation)).await;
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
        let names_skill = requirements.skill.is_some();
        if names_skill {
            requirements.write_to(message.metadata.get_or_insert_default());
        }
        // A message that names no agent goes to one with the skill that the message names.
        let agent = match agent {
            Some(agent) => agent.to_string(),
            None if names_skill => String::new(),
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

/// True for an operation that reads what belongs to no task: it is for keys that read everything.
fn is_about_all(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Topic(TopicRequest::Read(_) | TopicRequest::List)
            | Operation::Board(BoardRequest::Read { .. })
            | Operation::Permission(RuleRequest::List | RuleRequest::Suggest)
            | Operation::ListSchedules
            | Operation::Trigger(TriggerRequest::List)
            // The number of hits, and sums, would tell of tasks that the key does not read.
            | Operation::Search(_)
            | Operation::Usage(_)
    )
}
