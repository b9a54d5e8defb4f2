//! Rules as they apply to one run of an agent.

use super::scope::scope_of;
use crate::tasks::{
    Tasks,
    guest_port::{AnswerRequests, AnsweredRequest},
};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    permission::rules::{RuleVerdict, decide, describe, obscured},
    task::{metadata, unattended::UnattendedRun},
};
use a2a_hub_protocol::{
    id::{QuestionId, TaskId, TenantId},
    permission::{PermissionRequest, PermissionRule, RuleAnswer},
    task::Task,
};
use a2a_hub_runtime::port::tasks::RuleReply;
use a2a_hub_store::StorageError;
use a2a_hub_worktrees::is_sensitive_path;
use std::sync::Arc;

/// Rules of the tenant, for one run of an agent on a task.
pub(in crate::tasks) struct TaskRules {
    tasks: Tasks,
    task: TaskId,
    tenant: TenantId,
    /// Working directory that the task's client named.
    directory: Option<String>,
    agent: Arc<Agent>,
    /// True if nobody answers the run's questions: rules that allow are left out as well.
    only_denies: bool,
}

impl TaskRules {
    pub(in crate::tasks) fn new(tasks: Tasks, task: &Task, agent: &Arc<Agent>) -> Self {
        Self {
            tasks,
            task: task.id.clone(),
            tenant: task.context_id.tenant().clone(),
            directory: metadata::working_directory(task),
            agent: Arc::clone(agent),
            only_denies: UnattendedRun::for_task(task).is_some_and(|run| run.denies()),
        }
    }
}

#[async_trait::async_trait]
impl AnswerRequests for TaskRules {
    async fn answer(
        &self,
        request: &PermissionRequest,
        only_denials: bool,
    ) -> Result<Option<AnsweredRequest>, StorageError> {
        let rules = self.tasks.permissions.rules(&self.tenant).await?;
        if rules.is_empty() {
            return Ok(None);
        }
        // Read each time: others may have sent messages to the task.
        let directory = self.directory.clone();
        let scope = scope_of(&self.tasks, &self.task, directory, &self.agent).await?;
        let now = clock::now();
        let subject = scope.subject(request, &is_sensitive_path, &now);
        Ok(match decide(&rules, &subject) {
            Some(RuleVerdict::Allowed(_)) if only_denials || self.only_denies => None,
            Some(RuleVerdict::Allowed(rules)) => allowed(request, &rules),
            Some(RuleVerdict::Denied(rule)) => Some(denied(request, rule)),
            None if only_denials => obscured(&rules, &subject).map(|rule| unread(request, rule)),
            None => None,
        })
    }
}

fn allowed(request: &PermissionRequest, rules: &[&PermissionRule]) -> Option<AnsweredRequest> {
    let first = rules.first()?;
    let names: Vec<_> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let (names, action) = (names.join(", "), describe(&request.action));
    let text = format!("allowed by the standing permission {names}: {action}");
    Some(answered(request, first, RuleReply::Allowed(first.id.clone()), text))
}

fn denied(request: &PermissionRequest, rule: &PermissionRule) -> AnsweredRequest {
    let reason = match &rule.text {
        Some(text) => text.clone(),
        None => format!("a standing permission of the operator denies it ({})", rule.id),
    };
    let action = describe(&request.action);
    let text = format!("denied by the standing permission {}: {action}: {reason}", rule.id);
    answered(request, rule, RuleReply::Denied(reason), text)
}

/// Denial of a command that the hub cannot read, and that a rule may deny.
fn unread(request: &PermissionRequest, rule: &PermissionRule) -> AnsweredRequest {
    let id = &rule.id;
    let reason = format!(
        "the operator denies some commands always ({id}), and this one cannot be read exactly: run one \
         plain command at a time, without pipes, redirects, variables and `cd`"
    );
    let text = format!("denied by the standing permission {id}: {}", describe(&request.action));
    answered(request, rule, RuleReply::Denied(reason), text)
}

fn answered(
    request: &PermissionRequest,
    rule: &PermissionRule,
    reply: RuleReply,
    text: String,
) -> AnsweredRequest {
    let (id, request) = (QuestionId::fresh(), request.clone());
    let answer = RuleAnswer { id, rule: rule.id.clone(), effect: rule.effect, request };
    AnsweredRequest { reply, answer, text }
}
