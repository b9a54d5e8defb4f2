//! State machine of a task, from submission to one of four final states.
//!
//! ```text
//!          ┌───────────┐        ┌─────────┐  ask   ┌───────────────┐
//! submit ─►│ Submitted ├───────►│ Working ├───────►│ InputRequired │
//!          └─────┬─────┘        └────┬────┘◄───────┤ AuthRequired  │
//!                ▼                   ▼     answer  └───────────────┘
//!            Rejected    Completed, Failed, Rejected
//!
//!          any live state: Failed, Canceled
//! ```

use crate::task::{metadata, tree_budget::Usage};
use a2a_hub_protocol::{
    event::{ArtifactUpdate, StatusUpdate, TaskEvent},
    message::{Content, Message, Metadata, Part},
    permission::ANSWERED_BY_RULE,
    question::QUESTION,
    task::{Artifact, Task, TaskState},
};

/// Error for an event that the task's state does not allow. The task is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalEvent {
    /// The task has a final state.
    #[error("change a task that is {}: it is over", .0.name())]
    Over(TaskState),
    /// The transition does not exist.
    #[error("move a task from {} to {}", .from.name(), .to.name())]
    Transition {
        /// Current state.
        from: TaskState,
        /// Requested state.
        to: TaskState,
    },
    /// The task exists already: a log has exactly one creation, its first event.
    #[error("create a task that exists")]
    CreatedTwice,
}

/// True if a task may go from one state to the other. A new status message in the same state counts
/// as a transition as well.
pub fn allows(from: TaskState, to: TaskState) -> bool {
    use TaskState as S;
    match from {
        S::Submitted => matches!(to, S::Working | S::Rejected | S::Failed | S::Canceled),
        S::Working => !matches!(to, S::Submitted | S::Unknown),
        S::InputRequired | S::AuthRequired => {
            to == from || matches!(to, S::Working | S::Failed | S::Canceled)
        }
        // An unknown state allows no transition.
        S::Completed | S::Failed | S::Canceled | S::Rejected | S::Unknown => false,
    }
}

/// Applies one event. It searches the task's artifacts, so several events belong in a
/// [`TaskFold`](super::fold::TaskFold).
///
/// # Errors
///
/// If the state of the task does not allow the event; the task is unchanged.
pub fn apply(task: &mut Task, event: &TaskEvent) -> Result<(), IllegalEvent> {
    let known = match event {
        TaskEvent::Artifact(update) => {
            let id = &update.artifact.artifact_id;
            task.artifacts.iter().position(|known| known.artifact_id == *id)
        }
        TaskEvent::Created(_)
        | TaskEvent::Status(_)
        | TaskEvent::Input(_)
        | TaskEvent::Reply(_) => None,
    };
    apply_at(task, known, event)
}

/// Applies an event; `known` is the position of its artifact, if the task has that artifact.
pub(super) fn apply_at(
    task: &mut Task,
    known: Option<usize>,
    event: &TaskEvent,
) -> Result<(), IllegalEvent> {
    let from = task.status.state;
    if from.is_final() {
        return Err(IllegalEvent::Over(from));
    }
    match event {
        TaskEvent::Created(_) => return Err(IllegalEvent::CreatedTwice),
        TaskEvent::Status(update) => {
            let to = update.status.state;
            if !allows(from, to) {
                return Err(IllegalEvent::Transition { from, to });
            }
            take_status(task, update);
        }
        TaskEvent::Artifact(update) => take_artifact(&mut task.artifacts, known, update),
        TaskEvent::Input(message) => {
            keep_question(task);
            task.history.push(message.clone());
        }
        TaskEvent::Reply(message) => {
            if !allows(from, TaskState::Completed) {
                return Err(IllegalEvent::Transition { from, to: TaskState::Completed });
            }
            task.status.state = TaskState::Completed;
            task.status.message = Some(message.clone());
        }
    }
    Ok(())
}

fn take_status(task: &mut Task, update: &StatusUpdate) {
    // A question that is repeated word for word stays one question.
    if update.status.message != task.status.message {
        keep_question(task);
    }
    task.status = update.status.clone();
    if let Some(facts) = &update.metadata {
        merge(task.metadata.get_or_insert_with(Metadata::new), facts);
        // A fact about this event, and none about the task.
        task.metadata.take_if(|facts| facts.remove(ANSWERED_BY_RULE).is_some() && facts.is_empty());
    }
    if metadata::ends_run(update)
        && let Some(known) = &mut task.metadata
    {
        Usage::carry_over(known);
    }
    // A question is open only while the task waits, even if an agent's metadata says otherwise.
    if !task.status.state.is_interrupted() {
        task.metadata.take_if(|facts| facts.remove(QUESTION).is_some() && facts.is_empty());
    }
}

/// Merges metadata; a `null` removes the member, as in RFC 7396.
fn merge(known: &mut Metadata, facts: &Metadata) {
    for (name, fact) in facts {
        if fact.is_null() {
            known.remove(name);
        } else {
            known.insert(name.clone(), fact.clone());
        }
    }
}

/// Number of latest messages among which a repeated question is searched: the answers to 32 queued
/// questions, with the questions.
const REPEATED_WITHIN: usize = 64;

/// Moves the agent's question into the history; progress messages are not part of it.
fn keep_question(task: &mut Task) {
    if task.status.state.is_interrupted() {
        // A repeated question may be in the history already.
        let question = task.status.message.take();
        let is_known = |question: &Message| {
            let last = task.history.last().map(|message| &message.message_id);
            last == Some(&question.message_id)
                || task.history.iter().rev().take(REPEATED_WITHIN).any(|known| known == question)
        };
        let question = question.filter(|question| !is_known(question));
        task.history.extend(question);
    }
}

fn take_artifact(artifacts: &mut Vec<Artifact>, known: Option<usize>, update: &ArtifactUpdate) {
    let new = &update.artifact;
    match known.and_then(|known| artifacts.get_mut(known)) {
        Some(known) if update.append => append_parts(&mut known.parts, &new.parts),
        Some(known) => known.clone_from(new),
        None => artifacts.push(new.clone()),
    }
}

/// Appends parts, and joins a text chunk to the text before it: a thousand deltas are not a
/// thousand parts.
fn append_parts(parts: &mut Vec<Part>, more: &[Part]) {
    for part in more {
        if let Some(Part { content: Content::Text(text), metadata: None, .. }) = parts.last_mut()
            && let Part { content: Content::Text(new), filename: None, metadata: None, .. } = part
        {
            text.push_str(new);
        } else {
            parts.push(part.clone());
        }
    }
}

/// Update that brings clients up to date that know the artifact as it was `before`: `None`, the
/// added parts, or the whole artifact if it was replaced or is new. `last_chunk` says that the
/// artifact is complete; an incomplete one with less than the known parts changes nothing, because
/// some agents repeat a task without its latest pieces.
pub fn catch_up(
    before: Option<&Artifact>,
    now: Artifact,
    last_chunk: bool,
) -> Option<ArtifactUpdate> {
    if !last_chunk && before.is_some_and(|before| added(&now.parts, &before.parts).is_some()) {
        return None;
    }
    let added = before.map(|before| added(&before.parts, &now.parts));
    let (append, parts) = match added {
        Some(Some(parts)) if parts.is_empty() => return None,
        Some(Some(parts)) => (true, parts),
        Some(None) | None => (false, now.parts),
    };
    Some(ArtifactUpdate { artifact: Artifact { parts, ..now }, append, last_chunk })
}

/// Parts that were added to an artifact, independent of the chunk boundaries; `None` if the
/// artifact changed in another way than growing.
fn added(before: &[Part], now: &[Part]) -> Option<Vec<Part>> {
    let joined = |parts| {
        let mut joined = Vec::new();
        append_parts(&mut joined, parts);
        joined
    };
    let (before, now) = (joined(before), joined(now));
    let Some((last, begin)) = before.split_last() else { return Some(now) };
    let mut rest = now.strip_prefix(begin)?.to_vec();
    let first = rest.first_mut()?;
    if first == last {
        rest.remove(0);
        return Some(rest);
    }
    let (Content::Text(long), Content::Text(short)) = (&first.content, &last.content) else {
        return None;
    };
    *first = Part { content: Content::Text(long.strip_prefix(short)?.to_owned()), ..first.clone() };
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ArtifactId, ContextId, TaskId},
        message::Role,
        task::TaskStatus,
    };
    use proptest::prelude::*;
    use serde_json::json;
    use std::fmt::Write as _;

    fn task(state: TaskState) -> Task {
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message: None, timestamp: String::new() },
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, "hello")],
            metadata: None,
        }
    }

    fn status(state: TaskState, text: Option<&str>) -> TaskEvent {
        let message = text.map(|text| Message::text(Role::Agent, text));
        let status = TaskStatus { state, message, timestamp: String::new() };
        TaskEvent::Status(StatusUpdate { status, metadata: None })
    }

    fn chunk(text: &str, append: bool) -> TaskEvent {
        TaskEvent::Artifact(ArtifactUpdate {
            artifact: Artifact::new(ArtifactId::new("a"), vec![Part::text(text)]),
            append,
            last_chunk: false,
        })
    }

    /// The whole state machine as one snapshot: any change shows as a changed cell.
    #[test]
    fn transition_table() {
        let mut table = String::new();
        for from in TaskState::ALL {
            let row: Vec<_> = TaskState::ALL
                .into_iter()
                .filter(|&to| apply(&mut task(from), &status(to, None)).is_ok())
                .map(TaskState::name)
                .collect();
            writeln!(table, "{}: {}", from.name(), row.join(" ")).unwrap();
        }
        insta::assert_snapshot!(table, @r"
        submitted: working failed canceled rejected
        working: working input-required auth-required completed failed canceled rejected
        input-required: working input-required failed canceled
        auth-required: working auth-required failed canceled
        completed: 
        failed: 
        canceled: 
        rejected: 
        unknown:
        ");
    }

    #[test]
    fn final_states_are_final() {
        for state in TaskState::ALL.into_iter().filter(|state| state.is_final()) {
            let input = TaskEvent::Input(Message::text(Role::User, "more"));
            for event in [status(TaskState::Working, None), chunk("x", true), input] {
                let mut task = task(state);
                assert_eq!(apply(&mut task, &event), Err(IllegalEvent::Over(state)));
                assert_eq!(task.status.state, state);
            }
        }
    }

    #[test]
    fn question_and_answer_enter_history_in_order() {
        let mut task = task(TaskState::Working);
        let events = [
            status(TaskState::Working, Some("thinking")),
            status(TaskState::InputRequired, Some("which one?")),
            TaskEvent::Input(Message::text(Role::User, "the left one")),
            status(TaskState::Working, None),
            status(TaskState::Completed, Some("done")),
        ];
        for event in &events {
            apply(&mut task, event).unwrap();
        }
        let said: Vec<_> = task.history.iter().map(Message::joined_text).collect();
        assert_eq!(said, ["hello", "which one?", "the left one"]);
    }

    #[test]
    fn repeated_question_enters_history_once() {
        let mut task = task(TaskState::Working);
        let asked = status(TaskState::InputRequired, Some("which one?"));
        for event in [&asked, &asked, &TaskEvent::Input(Message::text(Role::User, "this"))] {
            apply(&mut task, event).unwrap();
        }
        let said: Vec<_> = task.history.iter().map(Message::joined_text).collect();
        assert_eq!(said, ["hello", "which one?", "this"]);
    }

    #[test]
    fn question_is_open_only_while_task_waits() {
        use TaskState::{Completed, InputRequired, Working};
        let mut task = task(Working);
        let mut is_open = |state| {
            let TaskEvent::Status(mut update) = status(state, None) else { panic!("it is one") };
            update.metadata = Some(Metadata::from_iter([(QUESTION.to_owned(), "q".into())]));
            apply(&mut task, &TaskEvent::Status(update)).unwrap();
            task.metadata.as_ref().is_some_and(|facts| facts.contains_key(QUESTION))
        };
        assert_eq!([InputRequired, Working, Completed].map(&mut is_open), [true, false, false]);
    }

    #[test]
    fn null_metadata_member_is_removed() {
        let mut task = task(TaskState::Working);
        for facts in ["one", "two"].map(|name| [(name.to_owned(), true.into())].into_iter()) {
            let TaskEvent::Status(mut update) = status(TaskState::Working, None) else { return };
            update.metadata = Some(facts.collect());
            apply(&mut task, &TaskEvent::Status(update.clone())).unwrap();
            update.metadata = Some(Metadata::from_iter([("one".to_owned(), ().into())]));
            apply(&mut task, &TaskEvent::Status(update)).unwrap();
        }
        assert_eq!(task.metadata, Some(Metadata::from_iter([("two".to_owned(), true.into())])));
    }

    #[test]
    fn usage_of_runs_adds_up() {
        let mut task = task(TaskState::Working);
        let totals = [
            (TaskState::Working, json!({"usage": {"output_tokens": 30}})),
            // The run ends, and the next one begins.
            (
                TaskState::Working,
                json!({"usage": {"output_tokens": 50}, "cost_usd": 0.5, "unheard": null}),
            ),
            (TaskState::Working, json!({"usage": {"output_tokens": 50}})),
            // The run is lost, and the next one replaces it.
            (TaskState::InputRequired, json!({"reason": "recovery"})),
            (TaskState::Working, json!({"usage": {"output_tokens": 40}, "cost_usd": 0.25})),
            // The task ends.
            (TaskState::Completed, json!({"usage": {"output_tokens": 45}, "unheard": ["m"]})),
        ]
        .map(|(state, facts)| {
            let TaskEvent::Status(mut update) = status(state, None) else { panic!("it is one") };
            update.metadata = facts.as_object().cloned();
            apply(&mut task, &TaskEvent::Status(update)).unwrap();
            Usage::from_metadata(task.metadata.as_ref())
        });
        let used = |tokens, cost_usd| Usage { tokens, cost_usd };
        let [by_and_by, over] = [used(30, 0.0), used(50, 0.5)];
        let [next, gone] = [used(100, 0.5), used(100, 0.5)];
        assert_eq!(totals, [by_and_by, over, next, gone, used(140, 0.75), used(145, 0.75)]);
        let known = task.metadata.unwrap();
        assert_eq!(known["usage"], json!({"output_tokens": 45}));
        assert_eq!(known["earlierUsage"], json!({"tokens": 100, "costUsd": 0.5}));
    }

    #[test]
    fn text_chunks_grow_into_one_part() {
        let mut task = task(TaskState::Working);
        for event in [chunk("a", false), chunk("b", true), chunk("c", true)] {
            apply(&mut task, &event).unwrap();
        }
        assert_eq!(task.artifacts[0].parts, [Part::text("abc")]);
        apply(&mut task, &chunk("all", false)).unwrap();
        assert_eq!(task.artifacts[0].parts, [Part::text("all")]);
    }

    #[test]
    fn catch_up_sends_only_added_parts() {
        let artifact = |parts: &[Part]| {
            let TaskEvent::Artifact(update) = chunk("", false) else { panic!("it is one") };
            Artifact { parts: parts.to_vec(), ..update.artifact }
        };
        let data = Part { content: Content::Data(1.into()), ..Part::text("") };
        let text = Part::text;
        let cases = [
            (vec![text("ab")], vec![text("ab")]),
            (vec![text("ab")], vec![text("a"), text("b"), text("c")]),
            (vec![text("ab")], vec![text("ab"), data.clone(), text("c")]),
            (vec![text("a"), data.clone()], vec![text("a"), data.clone(), text("c")]),
            (vec![], vec![text("a")]),
            (vec![text("ab")], vec![text("b")]),
            (vec![text("ab")], vec![text("a")]),
            (vec![text("ab")], vec![]),
            (vec![data], vec![text("a")]),
        ];
        let mut table = String::new();
        for (known, now) in cases {
            let told = catch_up(Some(&artifact(&known)), artifact(&now), false);
            let told = told.map_or_else(
                || "nothing".to_owned(),
                |told| {
                    let parts = told.artifact.parts.iter().map(|part| match &part.content {
                        Content::Text(text) => text,
                        Content::Raw(_) | Content::Url(_) | Content::Data(_) => "data",
                    });
                    let how = if told.append { "more" } else { "anew" };
                    format!("{how} {:?}", parts.collect::<Vec<_>>())
                },
            );
            writeln!(table, "{told}").unwrap();
        }
        insta::assert_snapshot!(table, @r#"
        nothing
        more ["c"]
        more ["data", "c"]
        more ["c"]
        more ["a"]
        anew ["b"]
        nothing
        nothing
        anew ["a"]
        "#);
        let first = catch_up(None, artifact(&[text("a")]), true).unwrap();
        assert!(!first.append && first.last_chunk);
        let last = catch_up(Some(&artifact(&[text("ab")])), artifact(&[text("a")]), true).unwrap();
        assert!(!last.append, "the last state of an artifact counts");
    }

    proptest! {
        /// A client that catches up in the middle has the whole artifact in the end, for any chunk
        /// boundaries.
        #[test]
        fn catching_up_yields_whole_artifact(pieces in proptest::collection::vec("[ab]{0,3}", 1..8), at in 0_usize..8) {
            let grown = |pieces: &[String]| {
                let mut grown = task(TaskState::Working);
                for piece in pieces {
                    apply(&mut grown, &chunk(piece, true)).unwrap();
                }
                grown
            };
            let (mut behind, whole) = (grown(&pieces[..at.min(pieces.len())]), grown(&pieces));
            for now in whole.artifacts.clone() {
                if let Some(told) = catch_up(behind.artifacts.first(), now, false) {
                    apply(&mut behind, &TaskEvent::Artifact(told)).unwrap();
                }
            }
            prop_assert_eq!(behind.artifacts, whole.artifacts);
        }

        /// For any order of events, a final state is never left, and a replay of the accepted
        /// events gives the same task.
        #[test]
        fn replay_gives_the_same_task(steps in proptest::collection::vec(0_usize..11, 0..40)) {
            let mut live = task(TaskState::Submitted);
            let mut taken = Vec::new();
            for step in steps {
                let event = match step {
                    9 => chunk("x", true),
                    10 => TaskEvent::Input(Message::text(Role::User, "more")),
                    state => status(TaskState::ALL[state], Some("said")),
                };
                let before = live.status.state;
                if apply(&mut live, &event).is_ok() {
                    prop_assert!(!before.is_final());
                    taken.push(event);
                }
            }
            let mut replayed = Task { history: vec![live.history[0].clone()], ..task(TaskState::Submitted) };
            for event in &taken {
                apply(&mut replayed, event).unwrap();
            }
            prop_assert_eq!(live, replayed);
        }
    }
}
