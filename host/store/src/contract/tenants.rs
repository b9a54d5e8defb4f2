//! Contract tests for tenants: conversations with the same id belong to their own tenants.

use super::events::{at, created, push, status, working};
use crate::{ContextFilter, HeadFilter, PushFilter, Storage};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{ContextId, TaskId, TenantId},
    message::Message,
    operation::TaskPageQuery,
    task::TaskState,
};
use std::sync::Arc;

fn of(name: &str) -> TenantId {
    TenantId::try_from(name.to_owned()).unwrap()
}

/// Creation of a task of this tenant, in the conversation `c`.
fn created_by(task: &TaskId, tenant: &str) -> Arc<TaskEvent> {
    let TaskEvent::Created(mut created) = TaskEvent::clone(&created(task, "c")) else {
        unreachable!("it is one")
    };
    created.tenant = of(tenant);
    created.task.context_id = created.task.context_id.of_tenant(&created.tenant);
    Arc::new(TaskEvent::Created(created))
}

pub(super) async fn tenants_are_isolated(storage: &impl Storage) {
    let ids: Vec<_> = (0..3).map(|_| TaskId::fresh()).collect();
    assert_eq!(storage.has_tenants().await, Ok(false));
    for (id, tenant) in ids.iter().zip(["", "acme", "other"]) {
        let log =
            vec![created_by(id, tenant), working(), status(TaskState::Completed, 2, Some(tenant))];
        storage.append(id, 0, log).await.unwrap();
        assert_eq!(storage.has_tenants().await, Ok(!tenant.is_empty()));
        storage.set_push(push(id, "a"), 0).await.unwrap();
    }
    for (id, name) in ids.iter().zip(["", "acme", "other"]) {
        let tenant = of(name);
        let context = ContextId::new("c").of_tenant(&tenant);
        let (own, other) = (Some(tenant.clone()), ContextId::new("d").of_tenant(&tenant));

        let stored = storage.task(id).await.unwrap().unwrap();
        assert_eq!((&stored.task.context_id, stored.task.context_id.tenant()), (&context, &tenant));
        assert_eq!(storage.head(id).await.unwrap().unwrap().context, context);
        let first = storage.events(id, 0, 1).await.unwrap().remove(0);
        let TaskEvent::Created(begun) = first.event else { unreachable!("a log begins so") };
        assert_eq!(
            (first.context, begun.task.context_id, begun.tenant),
            (context.clone(), context.clone(), tenant.clone())
        );

        let all = HeadFilter::default();
        for filter in [
            HeadFilter { tenant: own.clone(), ..all.clone() },
            HeadFilter { context: Some(context.clone()), ..all.clone() },
        ] {
            let heads = storage.heads(filter).await.unwrap();
            assert!(heads.iter().map(|head| &head.task).eq([id]), "{name}");
        }
        let page = |context: Option<ContextId>| TaskPageQuery {
            agent: None,
            context,
            tenant: own.clone(),
            state: None,
            since: None,
            after: None,
            size: 9,
            history_length: None,
            include_artifacts: false,
        };
        for context in [None, Some(context.clone())] {
            let page = storage.page(&page(context)).await.unwrap();
            assert!(page.total == 1 && page.heads.iter().map(|head| &head.task).eq([id]), "{name}");
        }
        let said = storage.conversation(&context, 9).await.unwrap();
        assert_eq!(said.last().map(Message::joined_text).as_deref(), Some(name));
        assert_eq!(said.len(), 2);
        for filter in [
            ContextFilter { tenant: own.clone(), ..ContextFilter::default() },
            ContextFilter { context: Some(context.clone()), ..ContextFilter::default() },
            ContextFilter {
                tenant: own.clone(),
                id_prefix: Some("c".to_owned()),
                ..ContextFilter::default()
            },
            ContextFilter {
                tenant: own.clone(),
                id_prefix: Some(String::new()),
                ..ContextFilter::default()
            },
        ] {
            let found = storage.contexts(filter).await.unwrap();
            assert!(
                found.iter().map(|info| (&info.id, info.task_count)).eq([(&context, 1)]),
                "{name}"
            );
        }
        for filter in [
            ContextFilter { context: Some(other), ..ContextFilter::default() },
            ContextFilter {
                tenant: own.clone(),
                id_prefix: Some("d".to_owned()),
                ..ContextFilter::default()
            },
        ] {
            assert_eq!(storage.contexts(filter).await, Ok(Vec::new()));
        }
        let sent =
            storage.pushes(PushFilter { tenant: own, ..PushFilter::default() }).await.unwrap();
        assert!(sent.iter().map(|push| &push.config.task).eq([id]), "{name}");
    }
    let idle = ContextFilter { idle_since: Some(at(9)), ..ContextFilter::default() };
    assert_eq!(storage.contexts(idle).await.unwrap().len(), 3, "the hub itself knows them all");
    storage.forget_tasks(vec![ids[1].clone()]).await.unwrap();
    let left = storage.contexts(ContextFilter::default()).await.unwrap();
    assert!(left.iter().map(|info| info.id.tenant().as_str()).eq(["other", ""]));
}

pub(super) async fn logs_are_measured_by_tenant(storage: &impl Storage) {
    assert_eq!(storage.log_sizes().await, Ok(Vec::new()));
    let ids: Vec<_> = (0..4).map(|_| TaskId::fresh()).collect();
    for (id, tenant) in ids.iter().zip(["", "acme", "acme", "acme"]) {
        storage.append(id, 0, vec![created_by(id, tenant), working()]).await.unwrap();
    }
    let sizes = async || {
        let mut sizes = storage.log_sizes().await.unwrap();
        sizes.sort_by(|one, other| one.tenant.cmp(&other.tenant));
        sizes
    };
    let before = sizes().await;
    let tasks: Vec<_> = before.iter().map(|size| (size.tenant.as_str(), size.tasks)).collect();
    assert_eq!(tasks, [("", 1), ("acme", 3)]);
    assert!(before[0].bytes > 100 && before[1].bytes > 2 * before[0].bytes);
    let end = || status(TaskState::Completed, 2, Some(&*"x".repeat(1_000)));
    for id in &ids[..3] {
        storage.append(id, 2, vec![end()]).await.unwrap();
    }
    let after = sizes().await;
    for (before, after, ends) in [(&before[0], &after[0], 1), (&before[1], &after[1], 2)] {
        let grown = after.bytes - before.bytes;
        assert!((ends * 1_000..ends * 2_000).contains(&grown), "{grown}");
    }
    assert_eq!(storage.finished_of_tenant(&of("acme"), 9).await.unwrap(), ids[1..3]);
    assert_eq!(storage.finished_of_tenant(&of("acme"), 1).await.unwrap(), ids[1..2]);
    assert_eq!(storage.finished_of_tenant(&of(""), 9).await.unwrap(), ids[..1]);
    assert_eq!(storage.finished_of_tenant(&of("none"), 9).await.unwrap(), []);
    storage.forget_tasks(ids[..3].to_vec()).await.unwrap();
    let rest = sizes().await;
    assert_eq!((rest.len(), rest[0].tasks), (1, 1));
    assert_eq!(rest[0].bytes, before[1].bytes / 3);
}
