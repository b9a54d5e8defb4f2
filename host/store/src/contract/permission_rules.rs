//! Contract tests for standing permissions.

use super::{at, created, status};
use crate::{ClosedQuestionFilter, RuleUse, Storage, TenantRule};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{QuestionId, TaskId, TenantId},
    message::Metadata,
    permission::{
        Action, ActionPattern, PermissionRequest, PermissionRule, RuleAnswer, RuleEffect,
    },
    task::TaskState,
};
use std::sync::Arc;

fn rule(id: &str, effect: RuleEffect) -> TenantRule {
    let words = ["cargo", "test", "'\"\n"].map(str::to_owned).to_vec();
    let rule = PermissionRule {
        id: id.to_owned(),
        effect,
        pattern: ActionPattern::Run { words, directory: String::new() },
        text: Some("use pnpm".to_owned()),
        agent: None,
        through: Vec::new(),
        vendor: Some("claude".to_owned()),
        outside_sandbox: false,
        repository: Some("/src".to_owned()),
        principal: None,
        trusts_workspace: true,
        created_at: at(0),
        created_by: "operator".to_owned(),
        expires_at: None,
        from_question: None,
    };
    TenantRule { tenant: TenantId::default(), rule }
}

/// Status that reports a request which a rule has answered.
fn answered(rule: &str, effect: RuleEffect, ms: u64) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(status(TaskState::Working, ms, Some("allowed")));
    let action = Action::Other { reason: "of a test".to_owned(), runs: false };
    let request = PermissionRequest { vendor: "claude".to_owned(), outside_sandbox: false, action };
    let id = QuestionId::new(format!("q{ms}"));
    if let TaskEvent::Status(update) = &mut event {
        let answer = RuleAnswer { id, rule: rule.to_owned(), effect, request };
        update.metadata = Some(Metadata::from_iter([answer.member()]));
    }
    Arc::new(event)
}

pub(super) async fn answered_requests_are_counted(storage: &impl Storage) {
    assert_eq!(storage.permission_rules().await, Ok(Vec::new()));
    let [one, two] = [rule("a", RuleEffect::Allow), rule("b", RuleEffect::Deny)];
    storage.set_permission_rule(&rule("a", RuleEffect::Never)).await.unwrap();
    storage.set_permission_rule(&one).await.unwrap();
    storage.set_permission_rule(&two).await.unwrap();
    let named = |rule: &TenantRule| (rule.rule.id.clone(), rule.clone());
    assert_eq!(storage.permission_rules().await.unwrap(), [named(&one), named(&two)]);
    storage.forget_permission_rule("b").await.unwrap();
    storage.forget_permission_rule("b").await.unwrap();
    assert_eq!(storage.permission_rules().await.unwrap(), [named(&one)]);

    let task = TaskId::fresh();
    let first = vec![created(&task, "c"), answered("a", RuleEffect::Allow, 1)];
    storage.append(&task, 0, first).await.unwrap();
    let more = [answered("b", RuleEffect::Deny, 3), answered("a", RuleEffect::Allow, 2)];
    storage.append(&task, 2, more.to_vec()).await.unwrap();
    let uses = storage.permission_rule_uses(&TenantId::default()).await.unwrap();
    let used = |rule: &str, uses, ms| RuleUse { rule: rule.to_owned(), uses, last_used_at: at(ms) };
    assert_eq!(uses, [used("a", 2, 2), used("b", 1, 3)]);
    let other = TenantId::parse("other").unwrap();
    assert_eq!(storage.permission_rule_uses(&other).await, Ok(Vec::new()));
    let all = ClosedQuestionFilter { limit: 10, ..ClosedQuestionFilter::default() };
    let mut closed = storage.closed_questions(all).await.unwrap();
    closed.sort_by_key(|question| question.opened);
    let closed = closed.into_iter().map(|it| (it.opened, it.outcome, it.rule));
    let listed = [(2, "allowed", "a"), (3, "denied", "b"), (4, "allowed", "a")];
    let listed = listed.map(|(opened, outcome, rule)| {
        (opened, format!("{outcome}-by-rule"), Some(rule.to_owned()))
    });
    assert_eq!(closed.collect::<Vec<_>>(), listed);
    storage.forget_tasks(vec![task]).await.unwrap();
}
