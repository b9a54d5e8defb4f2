//! Contract tests: one suite that every store passes.

#![allow(
    clippy::unwrap_used,
    reason = "a panic is how a test fails; with the feature, this is no test to the lint"
)]

mod automation;
mod changes;
mod context_memory;
mod events;
mod journals;
mod notices;
mod people;
mod permission_rules;
mod questions;
mod requests;
mod reviews;
mod search;
mod tenants;
mod topics;
mod trees;
mod usage;

pub use events::{agent, at, chunk, created, status};
use events::{push, said_in, working};

use super::{
    ContextFilter, DeliveryFailure, HeadFilter, Progress, PushFilter, Storage, StorageError, Tally,
    TaskCounts,
};
use a2a_hub_core::{
    access_control::Principal, plugin::installation::InstallationId, task::state::IllegalEvent,
};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{ContextId, PushConfigId, TaskId},
    message::{MAX_DEPTH, Message, Part, Role},
    operation::{TaskCursor, TaskPageQuery},
    push::{PushAuthentication, PushConfig, PushForm, Secret},
    task::TaskState,
};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Runs the suite; `make` creates an empty store each time.
pub async fn suite<S: Storage + 'static>(make: impl Fn() -> S) {
    changes::suite(&make).await;
    log_reads_as_written(&make()).await;
    deepest_json_is_readable(&make()).await;
    stale_append_is_refused(&make()).await;
    principal_is_stored_with_events(&make()).await;
    append_is_atomic(&make()).await;
    log_begins_with_creation(&make()).await;
    final_task_refuses_events(&make()).await;
    task_is_fold_of_its_log(&make()).await;
    concurrent_tasks_append_independently(Arc::new(make())).await;
    one_of_racing_appends_wins(Arc::new(make())).await;
    heads_match_filters(&make()).await;
    conversation_contains_final_tasks_messages(&make()).await;
    pages_follow_cursor(&make()).await;
    contexts_summarize_their_tasks(&make()).await;
    only_finished_tasks_are_deleted(&make()).await;
    push_configs_live_with_their_task(&make()).await;
    push_cursor_never_goes_back(&make()).await;
    memories_are_separate_by_owner(&make()).await;
    memory_stays_within_grant(&make()).await;
    racing_writes_stay_within_grant(Arc::new(make())).await;
    requests::requests_are_found_by_time(&make()).await;
    questions::questions_are_listed_once_closed(&make()).await;
    notices::ends_of_root_tasks_become_notices(&make()).await;
    notices::notices_are_read_once_within_tenant(&make()).await;
    notices::conflict_of_changes_is_noticed_once(&make()).await;
    notices::oldest_notices_are_dropped(Arc::new(make())).await;
    questions::replacing_question_stays_postponed(&make()).await;
    permission_rules::answered_requests_are_counted(&make()).await;
    reviews::reviews_belong_to_owner_and_task(&make()).await;
    people::people_are_replaced_by_name(&make()).await;
    people::removal_passes_automation_on(&make()).await;
    automation::schedule_states_are_replaced_by_name(&make()).await;
    automation::trigger_states_are_replaced_by_name(&make()).await;
    automation::notifier_states_are_replaced_by_name(&make()).await;
    tenants::tenants_are_isolated(&make()).await;
    tenants::logs_are_measured_by_tenant(&make()).await;
    search::words_are_found_in_visible_tasks(&make()).await;
    search::pages_of_results_follow_cursor(&make()).await;
    search::deleted_tasks_are_not_found(&make()).await;
    search::any_query_is_text(&make()).await;
    usage::usage_outlives_deleted_tasks(&make()).await;
    usage::usage_belongs_to_tenant_and_person(&make()).await;
    topics::topic_messages_are_read_in_order(&make()).await;
    topics::retention_reports_unread_messages(&make()).await;
    topics::topics_are_limited_in_number(&make()).await;
    topics::cursors_keep_their_positions(&make()).await;
    topics::greedy_agent_gets_its_share_of_topics(&make()).await;
    topics::flood_drops_messages_of_its_publisher(&make()).await;
    topics::tenants_do_not_see_topics_of_others(&make()).await;
    trees::descendants_of_live_task_are_kept(&make()).await;
    journals::journal_is_kept_until_task_ends(&make()).await;
    context_memory::context_memory_is_separate_by_place(&make()).await;
    context_memory::context_memory_change_is_atomic_within_limits(&make()).await;
    context_memory::holders_have_shares_of_memory(&make()).await;
    context_memory::items_are_found_by_words(&make()).await;
    context_memory::items_used_together_are_associated(&make()).await;
    context_memory::context_memory_is_deleted_with_context(&make()).await;
}

async fn texts(storage: &impl Storage, context: &str, limit: usize) -> Vec<String> {
    let messages = storage.conversation(&ContextId::new(context), limit).await.unwrap();
    messages.iter().map(Message::joined_text).collect()
}

async fn log_reads_as_written(storage: &impl Storage) {
    let task = TaskId::fresh();
    assert_eq!(storage.events(&task, 0, 10).await, Ok(Vec::new()));
    let written = [created(&task, "c"), working(), chunk("one"), chunk("two \"\n\u{0}é")];
    assert_eq!(storage.append(&task, 0, written[..1].to_vec()).await, Ok(1));
    assert_eq!(storage.append(&task, 1, written[1..].to_vec()).await, Ok(4));
    assert_eq!(storage.append(&task, 4, Vec::new()).await, Ok(4));

    let read = storage.events(&task, 0, usize::MAX).await.unwrap();
    assert!(read.iter().all(|event| event.task == task && event.context.as_str() == "c"));
    assert!(read.iter().map(|event| event.seq).eq(1..=4));
    assert!(read.iter().map(|event| &event.event).eq(written.iter().map(Arc::as_ref)));

    let page = storage.events(&task, 1, 2).await.unwrap();
    assert!(page.iter().map(|event| event.seq).eq(2..=3));
    assert_eq!(storage.events(&task, 4, 10).await, Ok(Vec::new()));
    assert_eq!(storage.events(&task, u64::MAX, 10).await, Ok(Vec::new()));
}

async fn deepest_json_is_readable(storage: &impl Storage) {
    let task = TaskId::fresh();
    let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let part = Part::data(serde_json::from_str(&deepest).unwrap());
    let input = Arc::new(TaskEvent::Input(Message::new(Role::User, vec![part])));
    let log = vec![created(&task, "c"), working(), Arc::clone(&input)];
    storage.append(&task, 0, log).await.unwrap();
    assert_eq!(storage.events(&task, 2, 1).await.unwrap()[0].event, *input);
    assert_eq!(storage.task(&task).await.unwrap().unwrap().task.history.len(), 2);
}

async fn stale_append_is_refused(storage: &impl Storage) {
    let task = TaskId::fresh();
    let conflict =
        |expected, found| Err(StorageError::Conflict { task: task.clone(), expected, found });
    assert_eq!(storage.append(&task, 3, vec![working()]).await, conflict(3, 0));
    storage.append(&task, 0, vec![created(&task, "c"), working()]).await.unwrap();
    assert_eq!(storage.append(&task, 0, vec![created(&task, "c")]).await, conflict(0, 2));
    assert_eq!(storage.append(&task, 1, vec![chunk("x")]).await, conflict(1, 2));
    assert_eq!(storage.append(&task, u64::MAX, vec![chunk("x")]).await, conflict(u64::MAX, 2));
    assert_eq!(storage.events(&task, 0, 10).await.unwrap().len(), 2);
}

async fn principal_is_stored_with_events(storage: &impl Storage) {
    let task = TaskId::fresh();
    assert_eq!(storage.askers(&task).await, Ok(Vec::new()));
    let (operator, client) = (Principal::Operator, Principal::Client("a:/\u{e9}".to_owned()));
    let begins = vec![created(&task, "c"), working()];
    storage.append_by(&task, 0, begins, Some(&operator)).await.unwrap();
    let canceled = vec![chunk("x"), status(TaskState::Canceled, 3, None)];
    storage.append_by(&task, 2, canceled, Some(&client)).await.unwrap();
    let expected = vec![(1, operator), (3, client.clone()), (4, client)];
    assert_eq!(storage.askers(&task).await, Ok(expected));
    storage.forget_tasks(vec![task.clone()]).await.unwrap();
    assert_eq!(storage.askers(&task).await, Ok(Vec::new()));
}

async fn append_is_atomic(storage: &impl Storage) {
    let task = TaskId::fresh();
    storage.append(&task, 0, vec![created(&task, "c"), working()]).await.unwrap();
    let over = Err(StorageError::Illegal(IllegalEvent::Over(TaskState::Completed)));
    let done = status(TaskState::Completed, 2, None);
    assert_eq!(storage.append(&task, 2, vec![chunk("x"), done, chunk("y")]).await, over);
    let back = IllegalEvent::Transition { from: TaskState::Working, to: TaskState::Submitted };
    let submitted = status(TaskState::Submitted, 2, None);
    assert_eq!(
        storage.append(&task, 2, vec![chunk("x"), submitted]).await,
        Err(StorageError::Illegal(back))
    );
    assert_eq!(storage.events(&task, 2, 10).await, Ok(Vec::new()));
    let stored = storage.task(&task).await.unwrap().unwrap();
    assert_eq!((stored.seq, stored.task.status.state), (2, TaskState::Working));
    assert_eq!(storage.append(&task, 2, vec![chunk("x")]).await, Ok(3));
}

async fn log_begins_with_creation(storage: &impl Storage) {
    let (task, other) = (TaskId::fresh(), TaskId::fresh());
    let uncreated = Err(StorageError::Uncreated(task.clone()));
    assert_eq!(storage.append(&task, 0, vec![working()]).await, uncreated);
    assert_eq!(storage.append(&task, 0, vec![created(&other, "c")]).await, uncreated);
    assert_eq!(storage.append(&task, 0, Vec::new()).await, uncreated);
    let twice = Err(StorageError::Illegal(IllegalEvent::CreatedTwice));
    let begin = || created(&task, "c");
    assert_eq!(storage.append(&task, 0, vec![begin(), begin()]).await, twice);
    storage.append(&task, 0, vec![begin()]).await.unwrap();
    assert_eq!(storage.append(&task, 1, vec![begin()]).await, twice);
    assert_eq!(storage.counts().await, Ok(TaskCounts { live: 1, total: 1 }));
}

async fn final_task_refuses_events(storage: &impl Storage) {
    let reply = Arc::new(TaskEvent::Reply(Message::text(Role::Agent, "done")));
    let ends = TaskState::ALL.into_iter().filter(|state| state.is_final());
    for end in ends.map(|state| status(state, 5, Some("done"))).chain([reply]) {
        let task = TaskId::fresh();
        storage.append(&task, 0, vec![created(&task, "c"), working(), end]).await.unwrap();
        let before = storage.task(&task).await.unwrap().unwrap();
        let state = before.task.status.state;
        let input = Arc::new(TaskEvent::Input(Message::text(Role::User, "more")));
        for event in [working(), chunk("x"), input, status(state, 9, None)] {
            let refused = storage.append(&task, 3, vec![event]).await;
            assert_eq!(refused, Err(StorageError::Illegal(IllegalEvent::Over(state))));
        }
        assert_eq!(storage.task(&task).await.unwrap().unwrap(), before);
        assert_eq!(storage.events(&task, 0, 10).await.unwrap().len(), 3);
    }
    assert_eq!(storage.counts().await, Ok(TaskCounts { live: 0, total: 5 }));
}

async fn task_is_fold_of_its_log(storage: &impl Storage) {
    let task = TaskId::fresh();
    assert_eq!(storage.task(&task).await, Ok(None));
    let mut log = vec![created(&task, "c"), working()];
    log.extend((0..100).map(|n| chunk(&format!("{n} "))));
    log.push(status(TaskState::InputRequired, 2, Some("which?")));
    log.push(Arc::new(TaskEvent::Input(Message::text(Role::User, "both"))));
    log.push(working());
    log.extend((0..20).map(|n| chunk(&format!("{n} "))));
    log.push(status(TaskState::Completed, 3, Some("done")));
    for (seq, event) in (0_u64..).zip(&log) {
        storage.append(&task, seq, vec![Arc::clone(event)]).await.unwrap();
        if [103, 104].contains(&(seq + 1)) {
            // Read while the task waits, and again once it continues: both must be complete.
            let stored = storage.task(&task).await.unwrap().unwrap();
            assert_eq!(stored.seq, seq + 1);
        }
    }
    let folded = super::log::fold(&task, None, log.iter().map(Arc::as_ref)).unwrap();
    for _ in 0..3 {
        let stored = storage.task(&task).await.unwrap().unwrap();
        assert_eq!((&stored.agent, stored.seq), (&agent("echo"), log.len() as u64));
        assert_eq!(stored.task, folded);
    }
}

async fn concurrent_tasks_append_independently<S: Storage + 'static>(storage: Arc<S>) {
    let mut writers = JoinSet::new();
    for n in 0..100 {
        let storage = Arc::clone(&storage);
        writers.spawn(async move {
            let task = TaskId::fresh();
            storage.append(&task, 0, vec![created(&task, "c")]).await.unwrap();
            storage.append(&task, 1, vec![working()]).await.unwrap();
            for seq in 2..10 {
                storage.append(&task, seq, vec![chunk(&format!("{n}.{seq}"))]).await.unwrap();
                // Shares a transaction with the others, and must not make them fail.
                storage.append(&task, seq, vec![chunk("late")]).await.unwrap_err();
            }
            task
        });
    }
    for task in writers.join_all().await {
        let read = storage.events(&task, 0, 100).await.unwrap();
        assert!(read.iter().map(|event| event.seq).eq(1..=10));
    }
    assert_eq!(storage.counts().await, Ok(TaskCounts { live: 100, total: 100 }));
    let working = Tally { agent: agent("echo"), state: TaskState::Working, tasks: 100 };
    assert_eq!(storage.tally().await, Ok(vec![working]));
}

async fn one_of_racing_appends_wins<S: Storage + 'static>(storage: Arc<S>) {
    let task = TaskId::fresh();
    storage.append(&task, 0, vec![created(&task, "c"), working()]).await.unwrap();
    for seq in 2..12 {
        let mut racers = JoinSet::new();
        for n in 0..8 {
            let (storage, task) = (Arc::clone(&storage), task.clone());
            racers.spawn(
                async move { storage.append(&task, seq, vec![chunk(&n.to_string())]).await },
            );
        }
        let won = racers.join_all().await.into_iter().filter(Result::is_ok).count();
        assert_eq!(won, 1);
    }
}

async fn heads_match_filters(storage: &impl Storage) {
    let ids: Vec<_> = (0..6).map(|_| TaskId::fresh()).collect();
    for (n, id) in ids.iter().enumerate() {
        let context = if n < 4 { "left" } else { "right" };
        storage.append(id, 0, vec![created(id, context), working()]).await.unwrap();
    }
    storage.append(&ids[1], 2, vec![status(TaskState::Completed, 7, None)]).await.unwrap();
    storage.append(&ids[2], 2, vec![status(TaskState::Failed, 8, None)]).await.unwrap();
    storage.append(&ids[5], 2, vec![status(TaskState::InputRequired, 9, None)]).await.unwrap();
    // Longer than any path, so it is not indexed.
    let long = "/d".repeat(4_000);
    for (id, directory) in [(3, "/src"), (4, "/src"), (4, "/other"), (5, "/src"), (0, &long)] {
        let seq = storage.head(&ids[id]).await.unwrap().unwrap().seq;
        storage.append(&ids[id], seq, vec![said_in(directory)]).await.unwrap();
    }

    let all = HeadFilter::default();
    let in_context = HeadFilter { context: Some(ContextId::new("left")), ..all.clone() };
    let in_state = |state| HeadFilter { state: Some(state), ..all.clone() };
    let prefix = |prefix: &str| HeadFilter { id_prefix: Some(prefix.to_owned()), ..all.clone() };
    let of = |name| HeadFilter { agent: Some(agent(name)), ..all.clone() };
    let within = |dir: &str| HeadFilter { directory: Some(dir.to_owned()), ..all.clone() };
    let cases: [(HeadFilter, &[usize]); 20] = [
        (within("/src"), &[5, 3]),
        (within("/other"), &[4]),
        (within(&long), &[]),
        (HeadFilter { agent: Some(agent("nobody")), ..within("/src") }, &[]),
        (prefix(""), &[5, 4, 3, 2, 1, 0]),
        (prefix(ids[3].as_str()), &[3]),
        (prefix(&ids[3].as_str()[..35]), &[3]),
        (prefix("%"), &[]),
        (of("echo"), &[5, 4, 3, 2, 1, 0]),
        (of("nobody"), &[]),
        (HeadFilter { since: Some(at(8)), ..all.clone() }, &[5, 2]),
        (all.clone(), &[5, 4, 3, 2, 1, 0]),
        (HeadFilter { limit: 2, offset: 1, ..all.clone() }, &[4, 3]),
        (HeadFilter { limit: 0, ..all.clone() }, &[]),
        (in_context.clone(), &[3, 2, 1, 0]),
        (HeadFilter { live_only: true, limit: 1, offset: 1, ..in_context }, &[0]),
        (HeadFilter { live_only: true, ..all.clone() }, &[5, 4, 3, 0]),
        (in_state(TaskState::Working), &[4, 3, 0]),
        (in_state(TaskState::Failed), &[2]),
        (HeadFilter { live_only: true, ..in_state(TaskState::Failed) }, &[]),
    ];
    for (filter, expected) in cases {
        let found = storage.heads(filter.clone()).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|&n| &ids[n]).collect();
        assert_eq!(found.iter().map(|head| &head.task).collect::<Vec<_>>(), expected, "{filter:?}");
    }

    let failed = storage.heads(in_state(TaskState::Failed)).await.unwrap().remove(0);
    assert_eq!((failed.seq, failed.agent, failed.context.as_str()), (3, agent("echo"), "left"));
    assert_eq!((failed.created, failed.updated), (at(0), at(8)));
}

async fn conversation_contains_final_tasks_messages(storage: &impl Storage) {
    let ids: Vec<_> = (0..4).map(|_| TaskId::fresh()).collect();
    for (id, context) in ids.iter().zip(["ours", "ours", "theirs", "ours"]) {
        storage.append(id, 0, vec![created(id, context), working()]).await.unwrap();
    }
    // Ended in another order than begun; the last one is not over.
    for n in [1, 2, 0] {
        let text = format!("did {}", ids[n]);
        let mut end = vec![chunk("x"); 20];
        end.push(status(TaskState::Completed, 3, Some(&text)));
        storage.append(&ids[n], 2, end).await.unwrap();
    }
    let expected = [0, 1].map(|n| [format!("do {}", ids[n]), format!("did {}", ids[n])]).concat();
    for limit in [0, 1, 3, 4, 100] {
        let latest = expected.len().saturating_sub(limit);
        assert_eq!(texts(storage, "ours", limit).await, expected[latest..]);
    }
    assert_eq!(texts(storage, "nobody's", 10).await, [""; 0]);
}

async fn pages_follow_cursor(storage: &impl Storage) {
    let ids: Vec<_> = (0..7).map(|_| TaskId::fresh()).collect();
    for (n, id) in ids.iter().enumerate() {
        storage
            .append(id, 0, vec![created(id, if n < 4 { "left" } else { "right" }), working()])
            .await
            .unwrap();
    }
    // Ended in another order than begun, two of them in the same millisecond.
    for (n, ms) in [(5, 3), (0, 5), (3, 5), (6, 9)] {
        let end = status(TaskState::Completed, ms, None);
        storage.append(&ids[n], 2, vec![end]).await.unwrap();
    }
    let all = TaskPageQuery {
        agent: None,
        context: None,
        tenant: None,
        state: None,
        since: None,
        after: None,
        size: 3,
        history_length: None,
        include_artifacts: false,
    };
    let mut paged = Vec::new();
    let mut query = all.clone();
    loop {
        let page = storage.page(&query).await.unwrap();
        assert_eq!(page.total, 7, "before paging");
        let Some(last) = page.heads.last() else { break };
        query.after = Some(TaskCursor { updated: last.updated.clone(), id: last.task.clone() });
        paged.extend(page.heads.into_iter().map(|head| head.task));
    }
    let wanted = [6, 3, 0, 5, 4, 2, 1].map(|n| ids[n].clone());
    assert_eq!(paged, wanted);

    let found = |query: TaskPageQuery| async move {
        let page = storage.page(&query).await.unwrap();
        (page.heads.into_iter().map(|head| head.task).collect::<Vec<_>>(), page.total)
    };
    let since = TaskPageQuery { since: Some(at(5)), ..all.clone() };
    assert_eq!(found(since).await, (wanted[..3].to_vec(), 3));
    let context = Some(ContextId::new("left"));
    let done = Some(TaskState::Completed);
    let both = TaskPageQuery { context, state: done, ..all.clone() };
    assert_eq!(found(both).await, (vec![ids[3].clone(), ids[0].clone()], 2));
    let working = TaskPageQuery { state: Some(TaskState::Working), size: 1, ..all.clone() };
    assert_eq!(found(working).await, (vec![ids[4].clone()], 3));
    let nobody = TaskPageQuery { agent: Some(agent("nobody")), ..all };
    assert_eq!(found(nobody).await, (vec![], 0));
    let head = storage.head(&ids[0]).await.unwrap().unwrap();
    assert_eq!((head.agent, head.updated, head.seq), (agent("echo"), at(5), 3));
    assert_eq!(storage.head(&TaskId::fresh()).await, Ok(None));
}

async fn contexts_summarize_their_tasks(storage: &impl Storage) {
    let ids: Vec<_> = (0..5).map(|_| TaskId::fresh()).collect();
    for (id, context) in ids.iter().zip(["a", "b", "a", "c", "b"]) {
        storage.append(id, 0, vec![created(id, context), working()]).await.unwrap();
    }
    for (n, ms) in [(0, 9), (2, 5), (3, 7)] {
        let end = status(TaskState::Completed, ms, None);
        storage.append(&ids[n], 2, vec![end]).await.unwrap();
    }
    let names = |filter| async {
        let found = storage.contexts(filter).await.unwrap();
        found.into_iter().map(|info| info.id.to_string()).collect::<Vec<_>>()
    };
    let all = ContextFilter::default();
    let idle_since = |ms| ContextFilter { idle_since: Some(at(ms)), ..all.clone() };
    assert_eq!(names(all.clone()).await, ["b", "c", "a"]);
    assert_eq!(names(ContextFilter { limit: 1, offset: 1, ..all.clone() }).await, ["c"]);
    let prefix = |prefix: &str| ContextFilter { id_prefix: Some(prefix.to_owned()), ..all.clone() };
    assert_eq!(names(prefix("")).await, ["b", "c", "a"]);
    assert_eq!(names(prefix("a")).await, ["a"]);
    assert_eq!(names(prefix("aa")).await, Vec::<String>::new());
    assert_eq!(names(idle_since(8)).await, ["c"], "a is newer, and b goes on");
    assert_eq!(names(idle_since(10)).await, ["c", "a"]);

    let one = |name| ContextFilter { context: Some(ContextId::new(name)), ..all.clone() };
    let info = storage.contexts(one("a")).await.unwrap().remove(0);
    assert_eq!((info.task_count, info.agents), (2, vec![agent("echo")]));
    assert_eq!((info.created_at, info.updated_at), (at(0), at(9)));
    assert_eq!(info.last_state, TaskState::Completed);
    assert_eq!(storage.contexts(one("nobody's")).await, Ok(Vec::new()));

    assert_eq!((info.last_task_id, info.working_directory), (ids[2].clone(), None));
    let after = |id: &TaskId| ContextFilter { after: Some(id.clone()), ..all.clone() };
    assert_eq!(names(after(&ids[4])).await, ["c", "a"]);
    assert_eq!(names(ContextFilter { limit: 1, ..after(&ids[4]) }).await, ["c"]);
    assert_eq!(names(after(&ids[2])).await, Vec::<String>::new());
    storage.append(&ids[4], 2, vec![said_in("/src")]).await.unwrap();
    storage.append(&ids[1], 2, vec![said_in("/old")]).await.unwrap();
    let within = |it: &str| ContextFilter { directory: Some(it.to_owned()), ..all.clone() };
    assert_eq!(names(within("/src")).await, ["b"]);
    assert_eq!(names(within("/old")).await, Vec::<String>::new(), "it is not the newest task's");
    let info = storage.contexts(one("b")).await.unwrap().remove(0);
    assert_eq!(info.working_directory.as_deref(), Some("/src"));
}

async fn only_finished_tasks_are_deleted(storage: &impl Storage) {
    let ids: Vec<_> = (0..30).map(|_| TaskId::fresh()).collect();
    for (n, id) in ids.iter().enumerate() {
        storage.append(id, 0, vec![created(id, "c"), working()]).await.unwrap();
        if n > 0 {
            let mut end = vec![chunk(&"x".repeat(500)); 20];
            end.push(status(TaskState::Completed, n as u64, Some("done")));
            storage.append(id, 2, end).await.unwrap();
            // A read stores the folded task.
            storage.task(id).await.unwrap().unwrap();
        }
    }
    assert_eq!(storage.finished(None, 2).await.unwrap(), ids[1..3]);
    assert_eq!(storage.finished(Some(&at(3)), 100).await.unwrap(), ids[1..3]);
    let full = storage.size().await.unwrap();
    assert_eq!(storage.forget_tasks(ids.clone()).await, Ok(29));
    assert_eq!(storage.forget_tasks(ids.clone()).await, Ok(0));
    assert!(storage.size().await.unwrap() < full / 2);
    assert_eq!(storage.counts().await, Ok(TaskCounts { live: 1, total: 1 }));
    assert_eq!(storage.task(&ids[1]).await, Ok(None));
    assert_eq!(storage.events(&ids[1], 0, 10).await, Ok(Vec::new()));
    assert_eq!(storage.append(&ids[0], 2, vec![chunk("y")]).await, Ok(3));
}

async fn pushes(storage: &impl Storage, filter: PushFilter) -> Vec<(String, u64)> {
    let found = storage.pushes(filter).await.unwrap();
    found.into_iter().map(|push| (push.config.id.to_string(), push.progress.sent)).collect()
}

async fn push_configs_live_with_their_task(storage: &impl Storage) {
    let (task, other) = (TaskId::fresh(), TaskId::fresh());
    assert_eq!(storage.set_push(push(&task, "a"), 0).await, Ok(false), "there is no task yet");
    for id in [&task, &other] {
        storage.append(id, 0, vec![created(id, "c"), working()]).await.unwrap();
    }
    let full = PushConfig {
        token: Some(Secret::new("t")),
        authentication: Some(PushAuthentication {
            scheme: "Bearer".into(),
            credentials: Some(Secret::new("s")),
        }),
        form: PushForm::V03,
        ..push(&task, "b")
    };
    for config in [full.clone(), push(&task, "a"), push(&other, "a")] {
        assert_eq!(storage.set_push(config, 1).await, Ok(true));
    }
    let its = PushFilter { task: Some(task.clone()), ..PushFilter::default() };
    let found = storage.pushes(its.clone()).await.unwrap();
    assert_eq!(found[0].config, full, "the first that was set comes first");
    assert_eq!((found.len(), &found[1].config, found[1].last), (2, &push(&task, "a"), 2));

    storage.delete_push(&task, &PushConfigId::new("b")).await.unwrap();
    storage.delete_push(&task, &PushConfigId::new("never set")).await.unwrap();
    assert_eq!(pushes(storage, its.clone()).await, [("a".to_owned(), 1)]);
    storage.append(&task, 2, vec![status(TaskState::Completed, 2, None)]).await.unwrap();
    storage.forget_tasks(vec![task.clone(), other.clone()]).await.unwrap();
    assert_eq!(pushes(storage, its).await, []);
    assert_eq!(pushes(storage, PushFilter::default()).await.len(), 1, "the other is not over");
    assert_eq!(storage.set_push(push(&task, "a"), 0).await, Ok(false));
}

async fn push_cursor_never_goes_back(storage: &impl Storage) {
    let (task, id) = (TaskId::fresh(), PushConfigId::new("a"));
    storage.append(&task, 0, vec![created(&task, "c"), working()]).await.unwrap();
    storage.set_push(push(&task, "a"), 0).await.unwrap();
    let went = |sent, failure| storage.push_went(&task, &id, Progress { sent, failure });
    let delivery_failure = |dead: bool| {
        let again = (!dead).then(|| at(2));
        Some(DeliveryFailure { attempts: 3, since: at(1), error: "refused".into(), again, dead })
    };
    went(2, None).await.unwrap();
    went(1, delivery_failure(false)).await.unwrap();
    let known = async || storage.pushes(PushFilter::default()).await.unwrap().remove(0).progress;
    assert_eq!(known().await, Progress { sent: 2, failure: delivery_failure(false) });

    let open = PushFilter { open_only: true, ..PushFilter::default() };
    let dead = PushFilter { dead_only: true, ..PushFilter::default() };
    assert_eq!(pushes(storage, open.clone()).await.len(), 1, "its task is not over");
    storage.append(&task, 2, vec![status(TaskState::Completed, 2, None)]).await.unwrap();
    assert_eq!(pushes(storage, open.clone()).await.len(), 1, "it was not told that it is");
    assert_eq!(pushes(storage, dead.clone()).await, []);
    went(2, delivery_failure(true)).await.unwrap();
    assert_eq!(pushes(storage, dead.clone()).await.len(), 1);
    // Replacing the config keeps its cursor.
    storage.set_push(push(&task, "a"), 0).await.unwrap();
    assert_eq!(known().await, Progress { sent: 2, failure: None });
    went(3, None).await.unwrap();
    assert_eq!(pushes(storage, open).await, []);
    storage.push_went(&task, &PushConfigId::new("gone"), Progress::default()).await.unwrap();
    assert_eq!(pushes(storage, PushFilter::default()).await.len(), 1);
}

async fn memories_are_separate_by_owner(storage: &impl Storage) {
    let [one, two] = ["one", "two"].map(|name| InstallationId::from(&agent(name)));
    assert_eq!(storage.recall(&one, "k").await, Ok(None));
    for key in ["b", "a/2", "a", "a/1", "é", "a0"] {
        storage.remember(&one, key, key.into(), 100).await.unwrap();
    }
    storage.remember(&two, "a", b"\0\xff".to_vec(), 100).await.unwrap();
    storage.remember(&one, "a", Vec::new(), 100).await.unwrap();
    assert_eq!(storage.recall(&one, "a").await, Ok(Some(Vec::new())));
    assert_eq!(storage.recall(&two, "a").await, Ok(Some(b"\0\xff".to_vec())));
    assert_eq!(storage.keys(&one, "").await.unwrap(), ["a", "a/1", "a/2", "a0", "b", "é"]);
    assert_eq!(storage.keys(&one, "a/").await.unwrap(), ["a/1", "a/2"]);
    assert_eq!(storage.keys(&two, "b").await.unwrap(), [""; 0]);

    storage.forget(&one, "a").await.unwrap();
    storage.forget(&one, "never known").await.unwrap();
    assert_eq!(storage.recall(&one, "a").await, Ok(None));
    assert_eq!(storage.recall(&two, "a").await, Ok(Some(b"\0\xff".to_vec())));
}

async fn memory_stays_within_grant(storage: &impl Storage) {
    let owner = InstallationId::from(&agent("one"));
    let full =
        |would_hold| Err(StorageError::Full { owner: owner.clone(), would_hold, max_bytes: 10 });
    let remember = |key, bytes| storage.remember(&owner, key, vec![0; bytes], 10);
    assert_eq!(remember("a", 9).await, Ok(()));
    assert_eq!(remember("b", 0).await, full(11));
    assert_eq!(remember("a", 10).await, full(11));
    assert_eq!(remember("a", 8).await, Ok(()));
    assert_eq!(remember("b", 0).await, Ok(()));
    storage.forget(&owner, "a").await.unwrap();
    storage.forget(&owner, "a").await.unwrap();
    assert_eq!(remember("é", 7).await, Ok(()));
    assert_eq!(remember("é", 8).await, full(11));
    assert_eq!(storage.keys(&owner, "").await.unwrap(), ["b", "é"]);
}

async fn racing_writes_stay_within_grant<S: Storage + 'static>(storage: Arc<S>) {
    let mut racers = JoinSet::new();
    for n in 10..60 {
        let (storage, one) = (Arc::clone(&storage), InstallationId::from(&agent("one")));
        racers.spawn(async move { storage.remember(&one, &n.to_string(), vec![0; 8], 100).await });
    }
    let won = racers.join_all().await.into_iter().filter(Result::is_ok).count();
    assert_eq!(won, 10);
}
