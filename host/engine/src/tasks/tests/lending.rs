//! Permissions that an agent passes on to the agents that it calls.

use crate::tests::scripted_agent::Fake;
use a2a_hub_agents::Agent;
use a2a_hub_config::{AgentConfig, Permissions};
use a2a_hub_core::grant::{
    Grant,
    delegate::{Callee, DelegateGrants},
};
use a2a_hub_protocol::{
    id::{ContextId, TaskId},
    message::{Message, Metadata, Role},
    question::{Question, QuestionKind},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::Ended;
use serde_json::{Value, json};
use std::sync::Arc;

fn agent(delegate: Value) -> Arc<Agent> {
    let delegate: DelegateGrants = serde_json::from_value(delegate).unwrap();
    let grant = Some(Grant { delegate, ..Grant::default() });
    let fake = Fake::new(|_| async { Ended::Reply(Message::text(Role::Agent, "")) });
    fake.calling_others().agent(AgentConfig { grant, ..AgentConfig::default() })
}

fn task(facts: Value) -> Task {
    let Value::Object(facts) = facts else { panic!("{facts}") };
    let status = TaskStatus { state: TaskState::Working, message: None, timestamp: String::new() };
    Task {
        id: TaskId::fresh(),
        context_id: ContextId::fresh(),
        status,
        artifacts: Vec::new(),
        history: vec![Message::text(Role::User, "hi")],
        metadata: Some(facts.into_iter().collect::<Metadata>()),
    }
}

#[test]
fn child_permissions_are_limited_by_caller() {
    let codex = Callee::parse("codex").unwrap();
    let [listed, edit] =
        [json!(["codex"]), json!({ "codex": { "permissions": "edit" } })].map(agent);
    let of_client = task(json!({}));
    assert_eq!(listed.lends(&codex, &of_client), Permissions::Ask);
    assert_eq!(edit.lends(&codex, &of_client), Permissions::Edit);
    // An agent called by another one must ask itself, unless the operator granted it more.
    let below = task(json!({ "parentTaskId": "t" }));
    assert_eq!(edit.lends(&codex, &below), Permissions::Ask);
    let granted = task(json!({ "parentTaskId": "t", "grantedPermissions": "full" }));
    assert_eq!(edit.lends(&codex, &granted), Permissions::Edit);
    assert_eq!(edit.lends(&Callee::parse("echo").unwrap(), &granted), Permissions::Ask);
}

#[test]
fn agent_answers_permission_only_with_approve() {
    let codex = Callee::parse("codex").unwrap();
    let [listed, approving] =
        [json!(["codex"]), json!({ "codex": { "approve": true } })].map(agent);
    for (kind, by_listed, by_approving) in [
        (QuestionKind::Input, true, true),
        (QuestionKind::Permission, false, true),
        (QuestionKind::Auth, false, false),
    ] {
        let asked = Question::fresh(kind);
        assert_eq!(listed.answers(&codex, &asked), by_listed, "{kind:?}");
        assert_eq!(approving.answers(&codex, &asked), by_approving, "{kind:?}");
    }
    let further_down =
        Question { task: Some(TaskId::fresh()), ..Question::fresh(QuestionKind::Permission) };
    assert!(!approving.answers(&codex, &further_down));
}
