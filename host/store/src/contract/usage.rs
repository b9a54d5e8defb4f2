//! Contract tests for the usage of tasks.

use super::{agent, created, status};
use crate::Storage;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    budget::Budget,
    event::{Created, TaskEvent},
    id::{TaskId, TenantId},
    message::Metadata,
    operation::{UsageKey, UsageQuery, UsageReport},
    parent::Parent,
    task::TaskState,
};
use serde_json::json;
use std::sync::Arc;

fn by(key: UsageKey) -> UsageQuery {
    UsageQuery { by: key, since: None, tenant: None, limit: 100 }
}

fn changed(task: &TaskId, change: impl FnOnce(&mut Created)) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(created(task, "c"));
    if let TaskEvent::Created(created) = &mut event {
        change(created);
        created.task.context_id = created.task.context_id.clone().of_tenant(&created.tenant);
    }
    Arc::new(event)
}

/// Child of `parent`.
fn child_of(parent: &TaskId, task: &TaskId) -> Arc<TaskEvent> {
    let (root, budget) = (parent.clone(), Budget::default());
    let parent = Parent { task: parent.clone(), root, depth: 1, key: None, budget };
    changed(task, |created| {
        created.agent = agent("codex");
        created.parent = Some(parent);
    })
}

/// Status at this time that reports these tokens and dollars.
fn report(state: TaskState, ms: u64, tokens: u64, dollars: f64) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(status(state, ms, None));
    let facts = json!({ "model": "m", "cost_usd": dollars,
        "usage": { "input_tokens": tokens, "output_tokens": 1 } });
    if let TaskEvent::Status(update) = &mut event {
        update.metadata = facts.as_object().cloned().map(Metadata::from_iter);
    }
    Arc::new(event)
}

/// Groups of a report: key, tasks, input tokens, dollars.
fn groups(report: &UsageReport) -> Vec<(&str, u64, Option<u64>, Option<f64>)> {
    let groups = report.groups.iter().map(|group| {
        let of = &group.figures;
        (group.key.as_str(), of.tasks, of.input_tokens, of.cost_usd)
    });
    groups.collect()
}

pub(super) async fn usage_outlives_deleted_tasks(storage: &impl Storage) {
    let [root, child, plain, live] = [(); 4].map(|()| TaskId::fresh());
    let working = |ms| status(TaskState::Working, ms, None);
    let by_ci = Principal::Client("ci".to_owned());
    storage.append_by(&root, 0, vec![created(&root, "c"), working(1)], Some(&by_ci)).await.unwrap();
    let log = vec![child_of(&root, &child), working(1), report(TaskState::Working, 2, 10, 0.25)];
    storage.append(&child, 0, log).await.unwrap();
    let end = vec![report(TaskState::Completed, 501, 30, 0.5)];
    storage.append(&child, 3, end).await.unwrap();
    storage.append(&root, 2, vec![report(TaskState::Completed, 1_001, 5, 0.25)]).await.unwrap();
    let log = vec![created(&plain, "c"), working(1), status(TaskState::Failed, 3, None)];
    storage.append_by(&plain, 0, log, Some(&Principal::Operator)).await.unwrap();
    let log = vec![created(&live, "c"), working(1), report(TaskState::Working, 2, 7, 0.125)];
    storage.append_by(&live, 0, log, Some(&Principal::OperatorHttp)).await.unwrap();

    let all = UsageKey::ALL.into_iter().filter(|key| *key != UsageKey::Task);
    let mut before = Vec::new();
    for key in all.clone() {
        before.push(storage.usage(&by(key)).await.unwrap());
    }
    assert_eq!(groups(&before[0]), [("2026-01-01", 4, Some(42), Some(0.875))]);
    let agents = [("codex", 1, Some(30), Some(0.5)), ("echo", 3, Some(12), Some(0.375))];
    assert_eq!(groups(&before[1]), agents);
    let people = [("client:ci", 2, Some(35), Some(0.75)), ("operator", 2, Some(7), Some(0.125))];
    assert_eq!(groups(&before[4]), people);
    assert_eq!(groups(&before[5]), [("echo", 4, Some(42), Some(0.875))], "agent of the root");
    let total = &before[0].total;
    assert_eq!((total.work_ms, total.without_tokens, total.without_cost), (1_503, 1, 1));
    let of_tasks = storage.usage(&by(UsageKey::Task)).await.unwrap();
    assert_eq!(of_tasks.groups[0].key, child.as_str());
    assert_eq!(of_tasks.groups[0].agent_id.as_deref(), Some("codex"));

    super::search::followed(storage).await;
    // The root goes first, as retention deletes the oldest first.
    for few in [vec![root.clone(), live.clone()], vec![child], vec![plain]] {
        storage.forget_tasks(few).await.unwrap();
        for (key, before) in all.clone().zip(&before) {
            assert_eq!(storage.usage(&by(key)).await.as_ref(), Ok(before));
        }
    }
    let of_tasks = storage.usage(&by(UsageKey::Task)).await.unwrap();
    let remaining = [("", 3, Some(35), Some(0.75)), (live.as_str(), 1, Some(7), Some(0.125))];
    assert_eq!(groups(&of_tasks), remaining);
    let later =
        UsageQuery { since: Some("2026-01-02T00:00:00.000Z".to_owned()), ..by(UsageKey::Day) };
    assert_eq!(groups(&storage.usage(&later).await.unwrap()), []);
    let same =
        UsageQuery { since: Some("2026-01-01T23:00:00.000Z".to_owned()), ..by(UsageKey::Day) };
    assert_eq!(storage.usage(&same).await.unwrap(), before[0], "of the whole day");
}

pub(super) async fn usage_belongs_to_tenant_and_person(storage: &impl Storage) {
    for (tenant, tokens) in [("", 1), ("acme", 20), ("acme", 300)] {
        let (id, tenant) = (TaskId::fresh(), TenantId::try_from(tenant.to_owned()).unwrap());
        let begun = changed(&id, |created| created.tenant = tenant);
        let end = report(TaskState::Completed, 5, tokens, 1.0);
        storage
            .append(&id, 0, vec![begun, status(TaskState::Working, 1, None), end])
            .await
            .unwrap();
        if tokens == 300 {
            storage.forget_tasks(vec![id]).await.unwrap();
        }
    }
    let of_all = storage.usage(&by(UsageKey::Tenant)).await.unwrap();
    assert_eq!(groups(&of_all), [("acme", 2, Some(320), Some(2.0)), ("", 1, Some(1), Some(1.0))]);
    for (tenant, tokens) in [("", Some(1)), ("acme", Some(320)), ("other", None)] {
        let tenant = TenantId::try_from(tenant.to_owned()).ok();
        let query = UsageQuery { tenant, ..by(UsageKey::Model) };
        assert_eq!(storage.usage(&query).await.unwrap().total.input_tokens, tokens);
    }
}
