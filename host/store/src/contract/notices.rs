//! Contract tests for notices.

use super::{agent, at, chunk, created, status};
use crate::{MAX_NOTICES, NoticeFilter, NoticePage, Storage};
use a2a_hub_core::{
    access_control::Principal,
    task::metadata::{CONFLICTS, PATCH, REASON, WORKTREE},
};
use a2a_hub_protocol::{
    budget::Budget,
    event::{ArtifactUpdate, Created, TaskEvent},
    id::{ArtifactId, TaskId, TenantId},
    message::{Message, Metadata, Role},
    operation::{NoticeKind, ReadNotices},
    parent::Parent,
    task::{Artifact, TaskState},
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::task::JoinSet;

/// End of a task that failed, for this reason.
fn failed(ms: u64, reason: &str, text: &str) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(status(TaskState::Failed, ms, Some(text)));
    if let TaskEvent::Status(update) = &mut event {
        update.metadata = Some(Metadata::from_iter([(REASON.to_owned(), reason.into())]));
    }
    Arc::new(event)
}

/// Changes that conflict with those of this task.
fn conflict(with: &str) -> Arc<TaskEvent> {
    let mut artifact = Artifact::new(ArtifactId::new(PATCH), Vec::new());
    let conflicts = json!([{ "taskId": with, "paths": ["a.rs"], "more": 0 }]);
    artifact.metadata = Some(Metadata::from_iter([(CONFLICTS.to_owned(), conflicts)]));
    Arc::new(TaskEvent::Artifact(ArtifactUpdate { artifact, append: false, last_chunk: true }))
}

/// Creation of a task that this changes.
fn created_as(task: &TaskId, change: impl FnOnce(&mut Created)) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(created(task, "c"));
    if let TaskEvent::Created(created) = &mut event {
        change(created);
    }
    Arc::new(event)
}

fn working(ms: u64) -> Arc<TaskEvent> {
    status(TaskState::Working, ms, None)
}

fn unread() -> NoticeFilter {
    NoticeFilter { limit: 2_000, ..NoticeFilter::default() }
}

fn all() -> NoticeFilter {
    NoticeFilter { includes_read: true, ..unread() }
}

/// Kinds and texts of the notices of a page.
fn texts(page: &NoticePage) -> Vec<(&str, &str)> {
    page.notices.iter().map(|notice| (notice.kind.name(), notice.text.as_str())).collect()
}

fn counted(storage: &impl Storage) -> Arc<AtomicUsize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    storage.set_notice_listener(Arc::new(move |tenant: &TenantId| {
        assert!(tenant.is_default());
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    calls
}

pub(super) async fn ends_of_root_tasks_become_notices(storage: &impl Storage) {
    let calls = counted(storage);
    let [one, two, three, four, five, six] = [(); 6].map(|()| TaskId::fresh());
    let by = Principal::Operator;
    // The beginning and the end are in different appends.
    storage.append_by(&one, 0, vec![created(&one, "c"), working(1)], Some(&by)).await.unwrap();
    storage.append(&one, 2, vec![chunk("x")]).await.unwrap();
    assert_eq!(storage.notices(all()).await, Ok(NoticePage::default()));
    storage.append(&one, 3, vec![failed(2, "agent_error", "no\n\u{1b}[2Jluck")]).await.unwrap();
    // They are in one.
    let limited = failed(3, "rate_limited", "wait until 3pm");
    storage
        .append_by(&two, 0, vec![created(&two, "c"), working(1), limited], Some(&by))
        .await
        .unwrap();
    // Somebody waits for the one, and nobody for the other.
    let done = |ms| status(TaskState::Completed, ms, Some("done"));
    storage.append_by(&three, 0, vec![created(&three, "c"), working(1)], Some(&by)).await.unwrap();
    storage.append(&three, 2, vec![done(4)]).await.unwrap();
    let nightly = Principal::Automation { name: "nightly".to_owned() };
    let begins = vec![created(&four, "c"), working(1)];
    storage.append_by(&four, 0, begins, Some(&nightly)).await.unwrap();
    let reply = Arc::new(TaskEvent::Reply(Message::text(Role::Agent, "3 issues")));
    storage.append_by(&four, 2, vec![reply], Some(&by)).await.unwrap();
    // A child's failure is its parent's business, and a canceled task was ended by somebody.
    let (key, budget) = (None, Budget::default());
    let parent = Parent { task: one.clone(), root: one.clone(), depth: 1, key, budget };
    let child = created_as(&five, |created| created.parent = Some(parent));
    storage.append(&five, 0, vec![child, working(1), failed(5, "x", "y")]).await.unwrap();
    let canceled = vec![created(&six, "c"), status(TaskState::Canceled, 6, None)];
    storage.append_by(&six, 0, canceled, Some(&nightly)).await.unwrap();

    let page = storage.notices(all()).await.unwrap();
    let expected =
        [("finished", "3 issues"), ("quota", "wait until 3pm"), ("failed", "no [2Jluck")];
    assert_eq!((texts(&page), page.unread), (expected.to_vec(), 3));
    assert_eq!(calls.load(Ordering::Relaxed), 3, "one call for each");
    let first = &page.notices[2];
    assert_eq!((&first.task, &first.agent, first.context.as_str()), (&one, &agent("echo"), "c"));
    assert_eq!((&first.title, &first.at), (&format!("do {one}"), &at(2)));
    assert_eq!((&first.read_at, &first.read_by), (&None, &None));
    let numbers: Vec<_> = page.notices.iter().map(|notice| notice.number).collect();
    assert!(numbers.is_sorted_by(|newer, older| newer > older));

    let kinds = vec![NoticeKind::Failed, NoticeKind::Finished];
    let found = storage.notices(NoticeFilter { kinds, ..unread() }).await.unwrap();
    assert_eq!((texts(&found), found.unread), (vec![expected[0], expected[2]], 3));
    let page = NoticeFilter { before: Some(numbers[0]), limit: 1, ..unread() };
    assert_eq!(texts(&storage.notices(page).await.unwrap()), [expected[1]]);
    let before_all = NoticeFilter { before: Some(0), ..unread() };
    assert_eq!(texts(&storage.notices(before_all).await.unwrap()), []);
    let ever = NoticeFilter { before: Some(u64::MAX), ..unread() };
    assert_eq!(storage.notices(ever).await.unwrap().notices.len(), 3);
    // The task that is asked for takes its notice with it, and numbers are never used again.
    storage.forget_tasks(vec![four, one]).await.unwrap();
    assert_eq!(texts(&storage.notices(all()).await.unwrap()), [expected[1]]);
    let seven = TaskId::fresh();
    storage.append(&seven, 0, vec![created(&seven, "c"), failed(7, "x", "y")]).await.unwrap();
    assert!(storage.notices(all()).await.unwrap().notices[0].number > numbers[0]);
}

pub(super) async fn notices_are_read_once_within_tenant(storage: &impl Storage) {
    for ms in 0..4 {
        let task = TaskId::fresh();
        let ended = vec![created(&task, "c"), failed(ms, "x", &ms.to_string())];
        storage.append(&task, 0, ended).await.unwrap();
    }
    let calls = counted(storage);
    let all_of = async |filter| storage.notices(filter).await.unwrap();
    let ids: Vec<_> = all_of(all()).await.notices.iter().map(|notice| notice.number).collect();
    let (ours, theirs) = (TenantId::default(), TenantId::parse("other").unwrap());
    let mark_read = async |of: &TenantId, which| {
        storage.mark_notices_read(of, which, &Principal::Operator).await.unwrap()
    };
    let everything = || ReadNotices::All { until: None };
    for which in [everything(), ReadNotices::Ids(ids.clone())] {
        assert_eq!(mark_read(&theirs, which).await, 0, "they are another tenant's");
    }
    let of_others = NoticeFilter { tenant: theirs, ..all() };
    assert_eq!(all_of(of_others).await, NoticePage::default());
    assert_eq!((all_of(unread()).await.unread, calls.load(Ordering::Relaxed)), (4, 0));

    let named = || ReadNotices::Ids(vec![ids[1], ids[1], 0, u64::MAX]);
    assert_eq!((mark_read(&ours, named()).await, mark_read(&ours, named()).await), (1, 0));
    assert_eq!(texts(&all_of(unread()).await), [("failed", "3"), ("failed", "1"), ("failed", "0")]);
    let page = all_of(all()).await;
    assert_eq!((page.notices.len(), page.unread), (4, 3));
    let read = &page.notices[1];
    assert!(read.read_at.is_some());
    assert_eq!(read.read_by, Some(Principal::Operator));
    assert_eq!(mark_read(&ours, ReadNotices::All { until: Some(ids[2]) }).await, 2);
    assert_eq!(texts(&all_of(unread()).await), [("failed", "3")], "it arrived later");
    assert_eq!(
        (mark_read(&ours, everything()).await, mark_read(&ours, everything()).await),
        (1, 0)
    );
    assert_eq!(all_of(unread()).await, NoticePage::default());
    assert_eq!(calls.load(Ordering::Relaxed), 3, "one call for each change");
}

pub(super) async fn conflict_of_changes_is_noticed_once(storage: &impl Storage) {
    let [one, other] = [(); 2].map(|()| TaskId::fresh());
    let fact = Metadata::from_iter([(WORKTREE.to_owned(), json!({ "path": "/w" }))]);
    let begins = created_as(&one, |created| created.task.metadata = Some(fact));
    storage.append(&one, 0, vec![begins, working(1), conflict("t2")]).await.unwrap();
    storage.append(&one, 3, vec![conflict("t2")]).await.unwrap();
    // An agent without a worktree may call its artifact like that.
    storage.append(&other, 0, vec![created(&other, "c"), working(1)]).await.unwrap();
    storage.append(&other, 2, vec![conflict("t2")]).await.unwrap();
    let before = storage.notices(all()).await.unwrap();
    assert_eq!(texts(&before), [("conflict", "with task t2 in a.rs")]);
    let which = ReadNotices::All { until: None };
    storage.mark_notices_read(&TenantId::default(), which, &Principal::Operator).await.unwrap();
    storage.append(&one, 4, vec![conflict("t2")]).await.unwrap();
    assert_eq!(storage.notices(unread()).await.unwrap().notices, [], "it was read");
    storage.append(&one, 5, vec![conflict("t3"), failed(2, "x", "y")]).await.unwrap();
    let page = storage.notices(all()).await.unwrap();
    assert_eq!(texts(&page), [("failed", "y"), ("conflict", "with task t3 in a.rs")]);
    assert_eq!(page.unread, 2, "another conflict is new");
}

pub(super) async fn oldest_notices_are_dropped<S: Storage + 'static>(storage: Arc<S>) {
    let fail = |name: &str, task: TaskId| {
        let (storage, tenant) =
            (Arc::clone(&storage), TenantId::try_from(name.to_owned()).unwrap());
        let begins = created_as(&task, |created| created.tenant = tenant);
        async move {
            storage.append(&task, 0, vec![begins, failed(1, "x", task.as_str())]).await.unwrap();
        }
    };
    let [oldest, newest, theirs] = [(); 3].map(|()| TaskId::fresh());
    fail("", oldest.clone()).await;
    fail("other", theirs.clone()).await;
    let mut all_of = JoinSet::new();
    for _ in 1..MAX_NOTICES {
        all_of.spawn(fail("", TaskId::fresh()));
    }
    all_of.join_all().await;
    let page = storage.notices(unread()).await.unwrap();
    assert_eq!((page.notices.len(), page.unread), (MAX_NOTICES, MAX_NOTICES as u64));
    assert_eq!(page.notices[MAX_NOTICES - 1].task, oldest);
    fail("", newest.clone()).await;
    let page = storage.notices(unread()).await.unwrap();
    assert_eq!((page.notices.len(), page.unread), (MAX_NOTICES, MAX_NOTICES as u64));
    assert_eq!(page.notices[0].task, newest);
    assert!(page.notices.iter().all(|notice| notice.task != oldest));
    let tenant = TenantId::parse("other").unwrap();
    let of_others = storage.notices(NoticeFilter { tenant, ..unread() }).await.unwrap();
    assert_eq!(of_others.notices.len(), 1, "another tenant's stay");
    assert_eq!(of_others.notices[0].task, theirs);
}
