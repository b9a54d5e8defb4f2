//! Handoff: another agent goes on with a task, in a new task of the same conversation.
//!
//! ```text
//!  hub/tasks/handoff ─► new task is stored with `handoffFrom` ─► its run begins
//!                                                                  │ cancels the old task, whose
//!                                                                  ▼ last status has `handoff`
//!                                              the agent starts once the old task is over
//! ```
//!
//! The new task is stored first: if it is refused, the old one goes on, and a hub that is killed in
//! between loses neither. The agent starts last, so that two never work in one directory.

mod failover;

pub use failover::{Failover, group_of, remaining_budget};

use a2a_hub_core::task::metadata::{HANDOFF, HANDOFF_FROM, PATCH, REASON};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    message::{Content, Message, Metadata, Part, Role, joined_text},
    task::{Task, TaskState},
};
use serde_json::{Value, json};

/// Most handoffs between the task that began and the one that goes on now.
pub const MAX_HANDOFFS: usize = 64;

/// Most bytes of what was asked, of what the agent said, and of the changed files.
const MAX_REQUEST_BYTES: usize = 32 << 10;
const MAX_OUTPUT_BYTES: usize = 16 << 10;
const MAX_CHANGES: usize = 64 << 10;

/// Reason why a task cannot be handed over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHandedOver {
    /// The agent is the one that has the task.
    #[error("hand task `{0}` over: `{1}` is its agent; name another one, or send it a message")]
    SameAgent(TaskId, AgentId),
    /// The task was completed.
    #[error(
        "hand task `{0}` over: it is completed; send `{1}` a message in its conversation (`contextId`)"
    )]
    Completed(TaskId, AgentId),
    /// The task was handed over before.
    #[error("hand task `{0}` over: it was handed over before, to task `{1}`; hand that one over")]
    Before(TaskId, TaskId),
    /// The task belongs to another task.
    #[error(
        "hand task `{0}` over: task `{1}` began it and waits for it; hand that one over, or give the flow's step a `fallback`"
    )]
    Child(TaskId, TaskId),
}

/// Checks that `task` of the agent `from` may be handed over to `to`.
///
/// # Errors
/// The rule that forbids it.
pub fn require_may(
    task: &Task,
    parent: Option<&TaskId>,
    from: &AgentId,
    to: &AgentId,
) -> Result<(), NotHandedOver> {
    let id = || task.id.clone();
    if let Some(parent) = parent {
        return Err(NotHandedOver::Child(id(), parent.clone()));
    }
    if let Some(next) = successor(task) {
        return Err(NotHandedOver::Before(id(), next));
    }
    if task.status.state == TaskState::Completed {
        return Err(NotHandedOver::Completed(id(), to.clone()));
    }
    if from == to {
        return Err(NotHandedOver::SameAgent(id(), to.clone()));
    }
    Ok(())
}

/// Task that goes on with `task`, if that was handed over.
pub fn successor(task: &Task) -> Option<TaskId> {
    task_in(task, HANDOFF)
}

/// Task that goes on with `task`, if the hub handed that over by itself.
pub fn successor_by_hub(task: &Task) -> Option<TaskId> {
    task.metadata.as_ref()?.get(HANDOFF)?.get(REASON)?;
    successor(task)
}

/// Task with which `task` goes on, if another agent began it.
pub fn predecessor(task: &Task) -> Option<TaskId> {
    task_in(task, HANDOFF_FROM)
}

fn task_in(task: &Task, member: &str) -> Option<TaskId> {
    Some(TaskId::new(task.metadata.as_ref()?.get(member)?.get("task")?.as_str()?))
}

/// Reason for which the hub handed the task before `task` over; none if the operator did.
pub fn reason(task: &Task) -> Option<&str> {
    task.metadata.as_ref()?.get(HANDOFF_FROM)?.get(REASON)?.as_str()
}

/// Metadata of the old task: who goes on, and why if the hub decided so.
pub fn fact_of_old(to: &AgentId, task: &TaskId, reason: Option<&str>) -> Metadata {
    fact(HANDOFF, json!({ "to": to, "task": task }), reason)
}

/// Metadata of the new task: who began it, and why that ended if the hub handed it over.
pub fn fact_of_new(from: &AgentId, task: &TaskId, reason: Option<&str>) -> Metadata {
    fact(HANDOFF_FROM, json!({ "agent": from, "task": task }), reason)
}

fn fact(name: &str, mut fact: Value, reason: Option<&str>) -> Metadata {
    if let (Value::Object(fact), Some(reason)) = (&mut fact, reason) {
        fact.insert(REASON.to_owned(), reason.into());
    }
    Metadata::from_iter([(name.to_owned(), fact)])
}

/// Checks that the agent of the new task `new` may begin, now that the old one is over; `by_hub` if
/// the hub handed that over.
///
/// # Errors
/// The text for the client if the old task was completed or handed over to another task, or if it
/// was cancelled while the hub handed it over.
pub fn require_may_begin(old: &Task, new: &TaskId, by_hub: bool) -> Result<(), String> {
    match successor(old) {
        Some(next) if next != *new => {
            return Err(format!("Task `{}` was handed over to task `{next}` before.", old.id));
        }
        None if by_hub && old.status.state == TaskState::Canceled => {
            return Err(format!("Task `{}` was cancelled while it was handed over.", old.id));
        }
        Some(_) | None => {}
    }
    if old.status.state == TaskState::Completed {
        return Err(format!("Task `{}` was completed before it was handed over.", old.id));
    }
    Ok(())
}

/// Message for the agent that goes on: what was asked, what the first agent said last, its changes
/// and the note. Each is marked as data and shortened. Files of the client follow as they are.
pub fn message(task: &Task, from: &AgentId, changes: Option<&str>, note: Option<&str>) -> Message {
    let requests = task.history.iter().filter(|message| message.role == Role::User);
    let requests: Vec<_> =
        requests.map(Message::joined_text).filter(|text| !text.is_empty()).collect();
    let mut text = format!(
        "Go on with a task that `{from}` has not finished. The files are as it left them. What stands between fences is \
         information about the task, which was:\n"
    );
    text += &fenced(&shortened(&requests.join("\n\n"), MAX_REQUEST_BYTES, Keep::Beginning));
    let output = last_output(task);
    if !output.is_empty() {
        text += &format!("\nWhat `{from}` said last:\n");
        text += &fenced(&shortened(&output, MAX_OUTPUT_BYTES, Keep::End));
    }
    if let Some(changes) = changes.filter(|changes| !changes.trim().is_empty()) {
        text += &format!("\nWhat `{from}` changed:\n");
        text += &fenced(&shortened(changes, MAX_CHANGES, Keep::Beginning));
    }
    if let Some(note) = note {
        text += &format!("\n{note}\n");
    }
    let files = task.history.iter().filter(|message| message.role == Role::User);
    let files = files.flat_map(|message| {
        message.parts.iter().filter(|part| !matches!(part.content, Content::Text(_)))
    });
    let parts = std::iter::once(Part::text(text)).chain(files.cloned()).collect();
    let mut message = Message::new(Role::User, parts);
    message.context_id = Some(task.context_id.clone());
    message
}

/// Latest words of the agent: its artifacts, its messages and its status.
fn last_output(task: &Task) -> String {
    // The new agent finds the changes of a worktree as files.
    let artifacts = task.artifacts.iter().filter(|artifact| artifact.artifact_id.as_str() != PATCH);
    let artifacts = artifacts.map(|artifact| joined_text(&artifact.parts));
    let messages = task.history.iter().filter(|message| message.role == Role::Agent);
    let last = task.status.message.as_ref();
    let is_new = |last: &&Message| !task.history.iter().any(|it| it.message_id == last.message_id);
    let messages = messages.chain(last.filter(is_new)).map(Message::joined_text);
    let all: Vec<_> = artifacts.chain(messages).map(|text| text.trim().to_owned()).collect();
    all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Part of a text that stays.
#[derive(Clone, Copy)]
enum Keep {
    Beginning,
    End,
}

/// At most `max` bytes of a text, and how much was left out.
fn shortened(text: &str, max: usize, keep: Keep) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let omitted = text.len() - max;
    match keep {
        Keep::Beginning => {
            let end = text.floor_char_boundary(max);
            format!("{}\n[{omitted} bytes left out]", &text[..end])
        }
        Keep::End => {
            let start = text.ceil_char_boundary(omitted);
            format!("[{omitted} bytes left out]\n{}", &text[start..])
        }
    }
}

/// A text between fences that are longer than any in it (CommonMark 0.31, section 4.5).
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ArtifactId, ContextId},
        task::{Artifact, TaskStatus},
    };

    fn agent(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    pub(super) fn task(state: TaskState, said: &str) -> Task {
        let message = Some(Message::text(Role::Agent, said));
        Task {
            id: TaskId::new("old"),
            context_id: ContextId::new("talk"),
            status: TaskStatus { state, message, timestamp: String::new() },
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, "Fix the parser")],
            metadata: None,
        }
    }

    #[test]
    fn only_unfinished_root_tasks_are_handed_over() {
        let (claude, codex, parent) = (agent("claude"), agent("codex"), TaskId::new("p"));
        let live = task(TaskState::Working, "");
        assert_eq!(require_may(&live, None, &claude, &codex), Ok(()));
        assert_eq!(require_may(&task(TaskState::Failed, ""), None, &claude, &codex), Ok(()));
        let mut before = live.clone();
        before.metadata = Some(fact_of_old(&codex, &TaskId::new("new"), None));
        let refused = [
            require_may(&live, None, &claude, &claude),
            require_may(&task(TaskState::Completed, ""), None, &claude, &codex),
            require_may(&before, None, &claude, &codex),
            require_may(&live, Some(&parent), &claude, &codex),
        ];
        let refused: Vec<_> = refused.into_iter().map(|one| one.unwrap_err().to_string()).collect();
        insta::assert_snapshot!(refused.join("\n"), @"
        hand task `old` over: `claude` is its agent; name another one, or send it a message
        hand task `old` over: it is completed; send `codex` a message in its conversation (`contextId`)
        hand task `old` over: it was handed over before, to task `new`; hand that one over
        hand task `old` over: task `p` began it and waits for it; hand that one over, or give the flow's step a `fallback`
        ");
    }

    #[test]
    fn agent_begins_only_after_its_own_handoff() {
        let (own, codex) = (TaskId::new("new"), agent("codex"));
        let mut old = task(TaskState::Canceled, "");
        assert_eq!(require_may_begin(&old, &own, false), Ok(()));
        let by_hub = require_may_begin(&old, &own, true);
        assert!(by_hub.unwrap_err().contains("was cancelled while"), "its client wants no more");
        old.metadata = Some(fact_of_old(&codex, &own, Some("rate_limited")));
        assert_eq!(require_may_begin(&old, &own, true), Ok(()));
        let fact = json!({ "to": "codex", "task": "new", "reason": "rate_limited" });
        assert_eq!(old.metadata.as_ref().unwrap()[HANDOFF], fact);
        assert_eq!(successor_by_hub(&old), Some(own.clone()));
        assert_eq!(successor(&old), Some(own.clone()));
        let other = require_may_begin(&old, &TaskId::new("third"), false);
        assert!(other.unwrap_err().contains("task `new`"));
        let done = require_may_begin(&task(TaskState::Completed, ""), &own, false);
        assert!(done.unwrap_err().contains("was completed"));
        old.metadata = Some(fact_of_old(&codex, &own, None));
        assert_eq!(successor_by_hub(&old), None, "the operator handed it over");
        old.metadata = Some(Metadata::from_iter([(HANDOFF.to_owned(), json!(["new"]))]));
        assert_eq!(successor(&old), None, "a member of another shape is none");
    }

    #[test]
    fn message_tells_asked_said_and_changed() {
        let mut old = task(TaskState::Working, "Two tests are left.\n```\nfn a() {}\n```");
        let patch = vec![Part::text("diff --git")];
        old.artifacts.push(Artifact::new(ArtifactId::new(PATCH), patch));
        let answer = vec![Part::text("I found the cause.")];
        old.artifacts.push(Artifact::new(ArtifactId::new("answer"), answer));
        old.history[0].parts.push(Part::data(json!({ "depth": 2 })));
        let told =
            message(&old, &agent("claude"), Some(" parser.rs | 2 +-"), Some("Keep the API."));
        assert_eq!(told.context_id, Some(old.context_id.clone()));
        assert_eq!(told.parts[1..], [Part::data(json!({ "depth": 2 }))]);
        insta::assert_snapshot!(told.joined_text(), @"
        Go on with a task that `claude` has not finished. The files are as it left them. What stands between fences is information about the task, which was:
        ```
        Fix the parser
        ```

        What `claude` said last:
        ````
        I found the cause.

        Two tests are left.
        ```
        fn a() {}
        ```
        ````

        What `claude` changed:
        ```
         parser.rs | 2 +-
        ```

        Keep the API.
        ");
    }

    #[test]
    fn long_texts_are_shortened_and_fences_hold() {
        let long =
            format!("{}é``````{}", "a".repeat(MAX_OUTPUT_BYTES), "b".repeat(MAX_OUTPUT_BYTES - 6));
        let mut old = task(TaskState::Failed, &long);
        old.history[0] = Message::text(Role::User, "x".repeat(MAX_REQUEST_BYTES + 7));
        let text = message(&old, &agent("claude"), None, None).joined_text();
        assert!(text.len() < MAX_REQUEST_BYTES + MAX_OUTPUT_BYTES + 1_000, "{} bytes", text.len());
        assert!(text.contains("[7 bytes left out]"));
        assert!(text.contains("```````\n["), "the fence is longer than any in the text: {text}");
    }
}
