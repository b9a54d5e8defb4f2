//! Contract tests for the order of all changes.

use super::{chunk, created, status};
use crate::{ChangeCursor, ChangePage, ChangesAfter, CursorLoss, Moves, Storage, TaskChange};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{TaskId, TenantId},
    task::TaskState,
};
use std::sync::Arc;
use tokio::task::JoinSet;

async fn page(
    storage: &impl Storage,
    after: &ChangeCursor,
    tenant: Option<&TenantId>,
    limit: usize,
) -> ChangePage {
    match storage.changes(after, tenant, limit).await.unwrap() {
        ChangesAfter::Page(page) => page,
        ChangesAfter::Lost(_) => panic!("changes are lost"),
    }
}

async fn all(storage: &impl Storage, after: &ChangeCursor) -> Vec<TaskChange> {
    page(storage, after, None, usize::MAX >> 1).await.changes
}

/// Runs the tests of changes; `make` creates an empty store each time.
pub(super) async fn suite<S: Storage + 'static>(make: impl Fn() -> S) {
    appends_are_listed_in_order(&make()).await;
    refused_append_is_no_change(&make()).await;
    deleted_task_leaves_no_change(&make()).await;
    changes_belong_to_their_tenant(&make()).await;
    racing_appends_are_listed_once(Arc::new(make())).await;
    foreign_cursor_is_refused(&make(), &make()).await;
    askers_of_part_are_found(&make()).await;
}

async fn appends_are_listed_in_order(storage: &impl Storage) {
    let (one, other) = (TaskId::fresh(), TaskId::fresh());
    let start = storage.latest_change().await.unwrap();
    assert_eq!(all(storage, &start).await, []);
    let begins = vec![created(&one, "c"), status(TaskState::Working, 1, None)];
    storage.append(&one, 0, begins).await.unwrap();
    storage.append(&other, 0, vec![created(&other, "d")]).await.unwrap();
    storage.append(&one, 2, vec![chunk("x"), chunk("y")]).await.unwrap();
    storage.append(&one, 4, Vec::new()).await.unwrap();
    storage.append(&one, 4, vec![status(TaskState::Completed, 2, None)]).await.unwrap();

    let listed = all(storage, &start).await;
    let moves = |is_new, states: &[TaskState]| Moves { is_new, states: states.to_vec() };
    let seen = |change: &TaskChange| (change.task.clone(), change.seq, change.moves.clone());
    let wanted = [
        (one.clone(), 2, moves(true, &[TaskState::Working])),
        (other, 1, moves(true, &[])),
        (one.clone(), 4, moves(false, &[])),
        (one, 5, moves(false, &[TaskState::Completed])),
    ];
    assert_eq!(listed.iter().map(seen).collect::<Vec<_>>(), wanted);
    assert!(listed.is_sorted_by(|one, other| one.number < other.number));
    assert!(listed.is_sorted_by(|one, other| 0 < one.at_ms && one.at_ms <= other.at_ms));
    assert_eq!((listed[1].context.as_str(), listed[1].agent.as_str()), ("d", "echo"));

    let mut paged = Vec::new();
    let mut cursor = start.clone();
    loop {
        let next = page(storage, &cursor, None, 3).await;
        paged.extend(next.changes);
        cursor = next.next;
        if next.is_last {
            break;
        }
    }
    assert_eq!(paged, listed);
    assert_eq!(cursor, storage.latest_change().await.unwrap());
    assert_eq!(all(storage, &cursor).await, []);
    assert_eq!(all(storage, &start.at(listed[1].number)).await, listed[2..]);
    let text = cursor.to_string();
    assert_eq!(text.parse(), Ok(cursor));
}

async fn refused_append_is_no_change(storage: &impl Storage) {
    let task = TaskId::fresh();
    storage.append(&task, 0, vec![created(&task, "c")]).await.unwrap();
    let before = storage.latest_change().await.unwrap();
    assert!(storage.append(&task, 7, vec![chunk("x")]).await.is_err());
    assert!(storage.append(&task, 1, vec![created(&task, "c")]).await.is_err());
    assert_eq!(storage.latest_change().await.unwrap(), before);
}

async fn deleted_task_leaves_no_change(storage: &impl Storage) {
    let (deleted, stays) = (TaskId::fresh(), TaskId::fresh());
    let start = storage.latest_change().await.unwrap();
    let end = status(TaskState::Completed, 2, None);
    storage
        .append(&deleted, 0, vec![created(&deleted, "c"), status(TaskState::Working, 1, None), end])
        .await
        .unwrap();
    storage.append(&stays, 0, vec![created(&stays, "c")]).await.unwrap();
    let latest = storage.latest_change().await.unwrap();
    assert_eq!(storage.forget_tasks(vec![deleted]).await, Ok(1));
    assert_eq!(storage.latest_change().await.unwrap(), latest, "numbers are not used again");
    let listed = all(storage, &start).await;
    assert_eq!(listed.iter().map(|change| &change.task).collect::<Vec<_>>(), [&stays]);
}

async fn changes_belong_to_their_tenant(storage: &impl Storage) {
    let acme = TenantId::parse("acme").unwrap();
    let start = storage.latest_change().await.unwrap();
    let (ours, theirs) = (TaskId::fresh(), TaskId::fresh());
    storage.append(&ours, 0, vec![created(&ours, "c")]).await.unwrap();
    let mut of_acme = Arc::unwrap_or_clone(created(&theirs, "c"));
    if let TaskEvent::Created(created) = &mut of_acme {
        created.tenant = acme.clone();
    }
    storage.append(&theirs, 0, vec![Arc::new(of_acme)]).await.unwrap();
    for (tenant, task) in [(TenantId::default(), &ours), (acme, &theirs)] {
        let page = page(storage, &start, Some(&tenant), 10).await;
        assert_eq!(page.changes.iter().map(|it| &it.task).collect::<Vec<_>>(), [task]);
        assert!(page.changes.iter().all(|it| *it.context.tenant() == tenant));
        assert_eq!(page.next, storage.latest_change().await.unwrap());
    }
    assert_eq!(all(storage, &start).await.len(), 2);
}

async fn racing_appends_are_listed_once(storage: Arc<impl Storage + 'static>) {
    let start = storage.latest_change().await.unwrap();
    let mut writers = JoinSet::new();
    for _ in 0..16 {
        let storage = Arc::clone(&storage);
        writers.spawn(async move {
            let id = TaskId::fresh();
            storage.append(&id, 0, vec![created(&id, "c")]).await.unwrap();
            for seq in 1..6 {
                storage.append(&id, seq, vec![chunk("x")]).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let listed = all(&*storage, &start).await;
    assert_eq!(listed.len(), 96);
    let tasks: std::collections::BTreeSet<_> = listed.iter().map(|it| it.task.clone()).collect();
    for task in tasks {
        let seqs = listed.iter().filter(|it| it.task == task).map(|it| it.seq);
        assert!(seqs.eq(1..=6), "{task}");
    }
}

async fn foreign_cursor_is_refused(storage: &impl Storage, other: &impl Storage) {
    let foreign = other.latest_change().await.unwrap();
    let read = storage.changes(&foreign, None, 1).await;
    assert_eq!(read, Ok(ChangesAfter::Lost(CursorLoss::Foreign)));
    let ours = storage.latest_change().await.unwrap().to_string();
    let (history, number) = ours.rsplit_once('-').unwrap();
    let ahead = number.parse::<u64>().unwrap() + 1;
    let ahead = format!("{history}-{ahead}").parse().unwrap();
    let read = storage.changes(&ahead, None, 1).await;
    assert_eq!(read, Ok(ChangesAfter::Lost(CursorLoss::Foreign)));
}

/// Principals of a part of a log are those of the whole log in that part.
async fn askers_of_part_are_found(storage: &impl Storage) {
    let task = TaskId::fresh();
    storage
        .append_by(&task, 0, vec![created(&task, "c"), chunk("x")], Some(&Principal::Operator))
        .await
        .unwrap();
    let others = [None, Some(&Principal::Anonymous), None, Some(&Principal::OperatorToken)];
    for (seq, by) in (1..).map(|append| append * 2).zip(others) {
        storage.append_by(&task, seq, vec![chunk("x"), chunk("y")], by).await.unwrap();
    }
    let all = storage.askers(&task).await.unwrap();
    assert_eq!(all.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 5, 6, 9, 10]);
    for start in 0..12 {
        for end in 0..12 {
            let within = storage.askers_within(&task, start..=end).await.unwrap();
            let wanted = all.iter().filter(|(seq, _)| (start..=end).contains(seq));
            assert!(within.iter().eq(wanted), "{start} to {end}");
        }
    }
}
