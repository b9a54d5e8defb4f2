//! Answers that people gave to requests for permission, and the rules that they suggest.

use super::scope::scope_of_task;
use crate::tasks::Tasks;
use a2a_hub_clock as clock;
use a2a_hub_core::permission::{
    rules::{RequestScope, warning},
    suggest::{PastRequest, suggest},
};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{TaskId, TenantId},
    message::Message,
    operation::{SuggestedRule, SuggestedRules},
    permission::{PermissionRequest, PermissionRule},
    question::{Question, QuestionKind},
};
use a2a_hub_store::{ClosedQuestion, ClosedQuestionFilter, StorageError};
use a2a_hub_worktrees::is_sensitive_path;
use std::collections::HashMap;

/// Number of the latest questions that are read.
const MAX_READ: usize = 1_000;

/// Scopes of tasks; none if the task or its agent is gone.
type Scopes = HashMap<TaskId, Option<RequestScope>>;

/// Rules that would have answered the latest requests of a tenant's tasks as people did.
pub(super) async fn suggested(
    tasks: &Tasks,
    tenant: &TenantId,
) -> Result<SuggestedRules, StorageError> {
    let filter =
        ClosedQuestionFilter { tenant: tenant.clone(), id: None, before: None, limit: MAX_READ };
    let (mut scopes, mut past) = (Scopes::new(), Vec::new());
    for closed in tasks.storage.closed_questions(filter).await? {
        past.extend(past_request(tasks, &closed, &mut scopes).await?);
    }
    let (rules, now) = (tasks.permissions.rules(tenant).await?, clock::now());
    let suggestions = suggest(&past, &rules, &is_sensitive_path, &now);
    let rule = |(rule, answers): (PermissionRule, usize)| SuggestedRule {
        warning: warning(&rule.pattern),
        pattern: rule.pattern,
        agent: rule.agent,
        through: rule.through,
        vendor: rule.vendor,
        outside_sandbox: rule.outside_sandbox,
        repository: rule.repository,
        principal: rule.principal,
        trusts_workspace: rule.trusts_workspace,
        answers,
    };
    Ok(SuggestedRules {
        rules: suggestions.rules.into_iter().map(rule).collect(),
        requests: past.len(),
        answered: suggestions.answered,
    })
}

/// Request of a closed question that a person answered; none for other questions.
async fn past_request(
    tasks: &Tasks,
    closed: &ClosedQuestion,
    scopes: &mut Scopes,
) -> Result<Option<PastRequest>, StorageError> {
    let Some(answered) = closed.answered.filter(|_| closed.kind == QuestionKind::Permission) else {
        return Ok(None);
    };
    let task = &closed.task;
    let posed = tasks.storage.events(task, closed.opened.saturating_sub(1), 1).await?;
    let posed = posed.into_iter().next().and_then(|event| request_of(event.event));
    let Some(request) = posed else { return Ok(None) };
    let answer = tasks.storage.events(task, answered.saturating_sub(1), 1).await?;
    let Some(TaskEvent::Input(answer)) = answer.into_iter().next().map(|event| event.event) else {
        return Ok(None);
    };
    if !scopes.contains_key(task) {
        let stored = tasks.storage.task(task).await?;
        let scope = match stored.zip(tasks.directory.agent(&closed.agent)) {
            Some((stored, agent)) => Some(scope_of_task(tasks, &stored.task, &agent).await?),
            None => None,
        };
        scopes.insert(task.clone(), scope);
    }
    let Some(Some(scope)) = scopes.get(task) else { return Ok(None) };
    Ok(Some(PastRequest { request, scope: scope.clone(), allowed: is_yes(&answer) }))
}

fn request_of(event: TaskEvent) -> Option<PermissionRequest> {
    let TaskEvent::Status(update) = event else { return None };
    Question::from_metadata(update.metadata.as_ref())?.request
}

/// True for the clear words that allow.
fn is_yes(answer: &Message) -> bool {
    let text = answer.joined_text();
    let word = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    ["yes", "y", "allow", "allow-session", "always"].contains(&word.as_str())
}
