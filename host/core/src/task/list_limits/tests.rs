//! Tests of the limits: what each update adds, and when a list is full.

use super::*;
use crate::task::fold::TaskFold;
use a2a_hub_protocol::{
    event::{ArtifactUpdate, TaskEvent},
    id::{ContextId, TaskId},
    message::Role,
    task::{TaskState, TaskStatus},
};
use proptest::prelude::*;
use serde_json::json;

const TINY: ListLimits = ListLimits {
    artifacts: 2,
    parts: 4,
    artifact_bytes: 2_000,
    members: 2,
    metadata_bytes: 500,
    messages: 4,
    message_bytes: 1_000,
    events: 12,
};

fn task() -> Task {
    Task {
        id: TaskId::new("t"),
        context_id: ContextId::new("c"),
        status: TaskStatus { state: TaskState::Working, message: None, timestamp: String::new() },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
    }
}

fn made(id: &str, parts: Vec<Part>) -> Artifact {
    Artifact::new(ArtifactId::new(id), parts)
}

fn facts(json: &Value) -> Metadata {
    json.as_object().cloned().unwrap()
}

/// Adds to the lists of a task.
type AddedUpdate = Box<dyn FnOnce(&mut TaskLists) -> Result<(), ListFull>>;

#[test]
fn each_list_refuses_at_its_limit() {
    let text = |length| Part::text("x".repeat(length));
    let data = || Part::data(json!(1));
    let artifact = |id: &'static str, parts, append| {
        move |lists: &mut TaskLists| lists.add([ListEntry::Artifact(&made(id, parts), append)])
    };
    let status = |json: Value| {
        move |lists: &mut TaskLists| lists.add([ListEntry::Status(Some(&facts(&json)))])
    };
    let steps: Vec<(AddedUpdate, &str)> = vec![
        (Box::new(artifact("a", vec![text(10)], false)), ""),
        (Box::new(artifact("b", vec![data()], false)), ""),
        (Box::new(artifact("c", vec![text(1)], false)), "has 2 artifacts"),
        // Text that continues text is no part.
        (Box::new(artifact("a", vec![text(1), text(1)], true)), ""),
        (Box::new(artifact("b", vec![data(), data(), data()], true)), "more than 4 parts"),
        (Box::new(artifact("b", vec![data(), data()], true)), ""),
        (Box::new(artifact("a", vec![text(2_000)], true)), "more than 2000 bytes"),
        (Box::new(artifact("a", vec![text(1_000)], false)), ""),
        (Box::new(artifact("a", vec![text(10)], false)), ""),
        (Box::new(status(json!({ "one": 1, "two": 2 }))), ""),
        (Box::new(status(json!({ "three": 3 }))), "has 2 members"),
        (Box::new(status(json!({ "alpha": 3, "one": null }))), ""),
        (Box::new(status(json!({ "two": "x".repeat(500) }))), "more than 500 bytes"),
        (Box::new(status(json!({ "two": "x" }))), ""),
        (Box::new(status(json!({}))), ""),
        (Box::new(status(json!({}))), ""),
        (Box::new(status(json!({}))), ""),
        (Box::new(status(json!({}))), "has 12 events"),
    ];
    let mut lists = TaskLists::new(&task(), 0, TINY);
    for (number, (add, refusal)) in steps.into_iter().enumerate() {
        match add(&mut lists) {
            Ok(()) => assert_eq!(refusal, "", "step {number} is accepted"),
            Err(full) => {
                let full = full.to_string();
                assert!(!refusal.is_empty() && full.contains(refusal), "step {number}: {full}");
            }
        }
    }
}

#[test]
fn refused_batch_changes_no_list() {
    let mut lists = TaskLists::new(&task(), 0, TINY);
    let (a, b, c) = (made("a", vec![]), made("b", vec![]), made("c", vec![]));
    let members = facts(&json!({ "one": 1, "two": 2 }));
    let batch = [
        ListEntry::Status(Some(&members)),
        ListEntry::Artifact(&a, false),
        ListEntry::Artifact(&a, true),
        ListEntry::Artifact(&b, false),
        ListEntry::Artifact(&c, false),
    ];
    assert!(lists.add(batch).is_err());
    let empty = TaskLists::new(&task(), 0, TINY);
    assert_eq!(format!("{lists:?}"), format!("{empty:?}"));
    lists.add([ListEntry::Artifact(&b, false), ListEntry::Artifact(&c, false)]).unwrap();
}

#[test]
fn question_needs_room_for_its_answer() {
    let mut size = HistorySize::default();
    let mut history: Vec<_> = (0..2).map(|_| Message::text(Role::Agent, "?")).collect();
    size.update(&history);
    size.require_capacity(&TINY).unwrap();
    history.push(Message::text(Role::User, "!"));
    size.update(&history);
    let full = size.require_capacity(&TINY).unwrap_err();
    assert!(full.to_string().starts_with("the task has 3 messages of "), "{full}");
    let mut long = HistorySize::default();
    long.update(&[Message::text(Role::Agent, "x".repeat(1_000))]);
    assert!(long.require_capacity(&TINY).is_err());
}

/// A task of an older version, which had no limits.
#[test]
fn longer_task_accepts_what_adds_nothing() {
    let mut old = task();
    old.artifacts = ["a", "b", "c"].map(|id| made(id, vec![Part::data(json!(1)); 2])).to_vec();
    old.metadata = Some(facts(&json!({ "one": 1, "two": 2, "three": 3 })));
    let mut lists = TaskLists::new(&old, 0, TINY);
    let (same, member) = (made("a", vec![Part::data(json!(2)); 2]), facts(&json!({ "one": 2 })));
    lists.add([ListEntry::Artifact(&same, false), ListEntry::Status(Some(&member))]).unwrap();
    lists.add([ListEntry::Artifact(&made("d", vec![]), false)]).unwrap_err();
}

proptest! {
    /// The lists count what the fold of the events has, for any order of them.
    #[test]
    fn lists_count_what_the_fold_has(
        steps in proptest::collection::vec((0_usize..6, 0_usize..4, any::<bool>()), 0..60),
    ) {
        let limits = ListLimits::default();
        let mut fold = TaskFold::new(task());
        let mut lists = TaskLists::new(fold.task(), 0, limits);
        for (kind, id, append) in steps {
            let named = || Part { filename: Some("f".to_owned()), ..Part::text("named") };
            let parts = match kind {
                0 => vec![Part::text("abc")],
                1 => vec![Part::text("a"), Part::text("b")],
                2 => vec![Part::data(json!({ "a": [1, "two"] }))],
                3 => vec![named(), Part::text("c")],
                4 => vec![Part::text("d"), named()],
                _ => vec![],
            };
            let artifact = made(["a", "b", "c", "d"][id], parts);
            lists.add([ListEntry::Artifact(&artifact, append)]).unwrap();
            let update = ArtifactUpdate { artifact, append, last_chunk: false };
            fold.apply(&TaskEvent::Artifact(update)).unwrap();
        }
        let counted = TaskLists::new(fold.task(), 0, limits);
        let totals = |lists: &TaskLists| (lists.artifacts.len(), lists.parts, lists.artifact_bytes);
        prop_assert_eq!(totals(&lists), totals(&counted));
    }
}
