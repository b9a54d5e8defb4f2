//! Notices of task events: people should see these although they need no answer.

use super::{
    metadata::{CONFLICTS, PATCH, REASON, WAITS_UNTIL, WORKTREE, has},
    open_questions,
};
use crate::{access_control::Principal, failure_reason::FailureReason, text::plain_text::line};
use a2a_hub_protocol::{
    event::{ArtifactUpdate, Created, StatusUpdate, TaskEvent},
    message::{Message, Metadata},
    operation::NoticeKind,
    task::TaskState,
};
use serde_json::Value;

/// Longest text of a notice, in characters.
const MAX_TEXT: usize = 400;

/// Most tasks that the text of a conflict names.
const MAX_CONFLICTS: usize = 3;

/// Notice of an event, before its task's beginning is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotice {
    /// Kind.
    pub kind: NoticeKind,
    /// Reason of the failure, result or conflict, in one line; it may be empty.
    pub text: String,
    /// Time of the event (RFC 3339), if the event has one.
    pub at: Option<String>,
}

impl NewNotice {
    /// Notice of this event, if its task's beginning allows it, which [`NewNotice::fits`] decides.
    /// `is_root` is true for a task without a parent task. A task that was handed over is canceled:
    /// the task that goes on with it has the notice. `begun_by` finds the principal that began the
    /// task.
    ///
    /// An awaited end has no notice, and its text is not read: most tasks end so, while the store's
    /// only writer waits.
    pub fn of_event(
        event: &TaskEvent,
        is_root: bool,
        begun_by: impl FnOnce() -> Option<Principal>,
    ) -> Option<Self> {
        match event {
            TaskEvent::Status(update) if is_root => of_end(update, begun_by),
            TaskEvent::Reply(message) if is_root && !is_awaited(NoticeKind::Finished, begun_by) => {
                let text = line(&message.joined_text(), MAX_TEXT);
                Some(Self { kind: NoticeKind::Finished, text, at: None })
            }
            TaskEvent::Artifact(update) => of_changes(update),
            TaskEvent::Status(_)
            | TaskEvent::Reply(_)
            | TaskEvent::Created(_)
            | TaskEvent::Input(_) => None,
        }
    }

    /// True if the notice fits a task that began so: only a task in a worktree has changes that the
    /// hub wrote. `None` stands for an unreadable beginning.
    pub fn fits(&self, created: Option<&Created>) -> bool {
        match self.kind {
            NoticeKind::Conflict => created.is_some_and(|created| has(&created.task, WORKTREE)),
            NoticeKind::Failed | NoticeKind::Quota | NoticeKind::Finished => true,
        }
    }
}

/// Request of a task that began so, in one line; empty for an unreadable beginning.
pub fn title(created: Option<&Created>) -> String {
    created.map(|created| open_questions::request(&created.task)).unwrap_or_default()
}

/// True if somebody waits for the event, so that a notice would only repeat it: the end of a task
/// that no schedule or trigger began.
fn is_awaited(kind: NoticeKind, begun_by: impl FnOnce() -> Option<Principal>) -> bool {
    match kind {
        NoticeKind::Finished => begun_by().is_none_or(|by| by.automation().is_none()),
        NoticeKind::Failed | NoticeKind::Quota | NoticeKind::Conflict => false,
    }
}

/// Notice of the end of a task without a parent task.
fn of_end(
    update: &StatusUpdate,
    begun_by: impl FnOnce() -> Option<Principal>,
) -> Option<NewNotice> {
    let facts = update.metadata.as_ref();
    let reason = facts.and_then(|facts| facts.get(REASON)).and_then(Value::as_str);
    let kind = match update.status.state {
        TaskState::Failed | TaskState::Rejected => {
            let is_of_quota = reason.is_some_and(FailureReason::is_of_quota);
            if is_of_quota { NoticeKind::Quota } else { NoticeKind::Failed }
        }
        TaskState::Completed => NoticeKind::Finished,
        // The task waits for its quota; a person may try now, hand it over, or cancel it.
        TaskState::Working if facts.is_some_and(waits) => NoticeKind::Quota,
        TaskState::Canceled
        | TaskState::Submitted
        | TaskState::Working
        | TaskState::InputRequired
        | TaskState::AuthRequired
        | TaskState::Unknown => return None,
    };
    if is_awaited(kind, begun_by) {
        return None;
    }
    let message = update.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    let mut text = line(&message, MAX_TEXT);
    if text.is_empty() && kind != NoticeKind::Finished {
        text = line(reason.unwrap_or_default(), MAX_TEXT);
    }
    Some(NewNotice { kind, text, at: Some(update.status.timestamp.clone()) })
}

/// True if these facts of a status say that the task waits for its quota.
fn waits(facts: &Metadata) -> bool {
    facts.get(WAITS_UNTIL).is_some_and(Value::is_string)
}

/// Notice of changes that conflict with those of other tasks.
fn of_changes(update: &ArtifactUpdate) -> Option<NewNotice> {
    let artifact = &update.artifact;
    if artifact.artifact_id.as_str() != PATCH {
        return None;
    }
    let conflicts = artifact.metadata.as_ref()?.get(CONFLICTS)?.as_array()?;
    let named = conflicts.iter().take(MAX_CONFLICTS).filter_map(|conflict| {
        let task = conflict.get("taskId")?.as_str()?;
        let paths = conflict.get("paths").and_then(Value::as_array).into_iter().flatten();
        let paths = paths.filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        let paths = if paths.is_empty() { paths } else { format!(" in {paths}") };
        Some(format!("with task {task}{paths}"))
    });
    let named = named.collect::<Vec<_>>().join("; ");
    let more = conflicts.len().saturating_sub(MAX_CONFLICTS);
    let more = if more > 0 { format!("; with {more} more") } else { String::new() };
    let text = line(&format!("{named}{more}"), MAX_TEXT);
    (!named.is_empty()).then_some(NewNotice { kind: NoticeKind::Conflict, text, at: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure_reason::FailureReason;
    use a2a_hub_protocol::{
        id::{AgentId, ArtifactId, ContextId, TaskId},
        message::Role,
        task::{Artifact, Task, TaskStatus},
    };
    use serde_json::json;

    fn ended(state: TaskState, reason: Option<&str>, text: Option<&str>) -> TaskEvent {
        let message = text.map(|text| Message::text(Role::Agent, text));
        let status = TaskStatus { state, message, timestamp: "2026".to_owned() };
        let metadata = reason.map(|it| Metadata::from_iter([(REASON.to_owned(), it.into())]));
        TaskEvent::Status(StatusUpdate { status, metadata })
    }

    fn changes(id: &str, conflicts: Value) -> TaskEvent {
        let mut artifact = Artifact::new(ArtifactId::new(id), Vec::new());
        artifact.metadata = Some(Metadata::from_iter([(CONFLICTS.to_owned(), conflicts)]));
        TaskEvent::Artifact(ArtifactUpdate { artifact, append: false, last_chunk: true })
    }

    fn beginning(has_worktree: bool) -> Created {
        let fact = || Metadata::from_iter([(WORKTREE.to_owned(), json!({ "path": "/w" }))]);
        let task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus {
                state: TaskState::Submitted,
                message: None,
                timestamp: String::new(),
            },
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, "fix\nthe \u{1b}[2Jparser")],
            metadata: has_worktree.then(fact),
        };
        Created::new(AgentId::parse("echo").unwrap(), task)
    }

    /// Kind and text of the notice of an event; none without one.
    fn notice(
        event: &TaskEvent,
        is_root: bool,
        by: Option<&Principal>,
        has_worktree: bool,
    ) -> Option<(&'static str, String)> {
        let notice = NewNotice::of_event(event, is_root, || by.cloned())?;
        let is_reported = notice.fits(Some(&beginning(has_worktree)));
        is_reported.then(|| (notice.kind.name(), notice.text))
    }

    #[test]
    fn end_of_task_notice_table() {
        let nightly = Principal::Automation { name: "nightly".to_owned() };
        let client = Principal::Client("ci".to_owned());
        let all = [Some(&Principal::Operator), Some(&client), Some(&nightly), None];
        let automated = [None, None, Some("finished"), None];
        let reply = TaskEvent::Reply(Message::text(Role::Agent, "why"));
        let limited = ended(TaskState::Failed, Some("rate_limited"), Some("why"));
        // event, kind for: operator, client, schedule, unknown
        for (event, expected) in [
            (ended(TaskState::Failed, Some("agent_error"), Some("why")), [Some("failed"); 4]),
            (ended(TaskState::Failed, None, Some("why")), [Some("failed"); 4]),
            (ended(TaskState::Rejected, None, Some("why")), [Some("failed"); 4]),
            (limited, [Some("quota"); 4]),
            (ended(TaskState::Completed, None, Some("why")), automated),
            (reply, automated),
            (ended(TaskState::Canceled, None, Some("why")), [None; 4]),
            (ended(TaskState::Working, Some("rate_limited"), Some("why")), [None; 4]),
            (ended(TaskState::InputRequired, Some("recovery"), Some("why")), [None; 4]),
            (ended(TaskState::AuthRequired, None, Some("why")), [None; 4]),
            (TaskEvent::Input(Message::text(Role::User, "why")), [None; 4]),
            (TaskEvent::Created(Box::new(beginning(true))), [None; 4]),
        ] {
            for (by, expected) in all.into_iter().zip(expected) {
                let found = notice(&event, true, by, false);
                assert_eq!(found, expected.map(|kind| (kind, "why".to_owned())), "{event:?}");
                assert_eq!(notice(&event, false, by, false), None, "of a child: {event:?}");
            }
        }
    }

    #[test]
    fn waiting_for_quota_is_quota_notice() {
        let mut event = ended(TaskState::Working, Some("rate_limited"), Some("Resets at 3 pm"));
        let expect = |event: &TaskEvent, expected: Option<&str>| {
            let found = notice(event, true, None, false);
            assert_eq!(found, expected.map(|text| ("quota", text.to_owned())));
        };
        expect(&event, None);
        for (until, expected) in
            [(json!("2026-01-01T15:00:00.000Z"), Some("Resets at 3 pm")), (json!(null), None)]
        {
            if let TaskEvent::Status(update) = &mut event {
                update.metadata.get_or_insert_default().insert(WAITS_UNTIL.to_owned(), until);
            }
            expect(&event, expected);
        }
    }

    #[test]
    fn only_used_up_quota_is_quota_notice() {
        let others = FailureReason::ALL.map(FailureReason::name);
        for reason in others.into_iter().chain(["not_logged_in", "overloaded", "max_tokens"]) {
            let event = ended(TaskState::Failed, Some(reason), None);
            let expected = Some(("failed", reason.to_owned()));
            assert_eq!(notice(&event, true, None, false), expected, "the reason in place of words");
        }
        let hidden = ended(TaskState::Failed, Some("rate_limited"), Some("\u{1b}[2J\n no\n quota"));
        let expected = Some(("quota", "[2J no quota".to_owned()));
        assert_eq!(notice(&hidden, true, None, false), expected);
        let long = "x".repeat(100_000);
        let (_, text) =
            notice(&ended(TaskState::Failed, None, Some(&long)), true, None, false).unwrap();
        assert_eq!(text.chars().count(), MAX_TEXT);
        assert_eq!(title(Some(&beginning(false))), "fix the [2Jparser");
        assert_eq!(title(None), "");
    }

    #[test]
    fn only_changes_of_worktree_conflict() {
        let one = |task: &str| json!({ "taskId": task, "paths": ["a", "src/b"], "more": 0 });
        let found = changes(PATCH, json!([one("t2")]));
        let expected = Some(("conflict", "with task t2 in a, src/b".to_owned()));
        for is_root in [true, false] {
            assert_eq!(notice(&found, is_root, None, true), expected);
            assert_eq!(notice(&found, is_root, None, false), None, "its agent wrote it");
        }
        let many = changes(PATCH, json!([one("1"), one("2"), one("3"), one("4"), one("5")]));
        let (_, text) = notice(&many, true, None, true).unwrap();
        assert!(text.ends_with("; with task 3 in a, src/b; with 2 more"), "{text}");
        assert_eq!(notice(&changes("answer", json!([one("t2")])), true, None, true), None);
        for odd in [json!([]), json!({}), json!(null), json!([7, {}, { "taskId": 1 }])] {
            assert_eq!(notice(&changes(PATCH, odd.clone()), true, None, true), None, "{odd}");
        }
        let bare = changes(PATCH, json!([{ "taskId": "t2" }]));
        assert!(notice(&bare, true, None, true).is_some());
        assert!(!NewNotice::of_event(&found, true, || None).unwrap().fits(None));
    }
}
