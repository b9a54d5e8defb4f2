//! Questions that tasks asked, with what became of them: derived from the tasks' logs.

use crate::StorageError;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{AgentId, QuestionId, TaskId, TenantId},
    permission::{ANSWERED_BY_RULE, RuleAnswer},
    question::{self, Question, QuestionKind},
};
use std::sync::Arc;

/// Outcome of a question that somebody answered.
pub(super) const ANSWERED: &str = "answered";

/// Outcome of a question that its agent withdrew, or that nobody answered in time.
pub(super) const EXPIRED: &str = "expired";

/// Outcome of a question in whose place the task asks another one.
pub(super) const REPLACED: &str = "replaced";

/// Question that is not open any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedQuestion {
    /// Number in the order of opening.
    pub number: u64,
    /// Id.
    pub id: QuestionId,
    /// Kind of answer that was required.
    pub kind: QuestionKind,
    /// Task that asked.
    pub task: TaskId,
    /// Agent of the task.
    pub agent: AgentId,
    /// Number of the event that asked.
    pub opened: u64,
    /// Time of that event (RFC 3339).
    pub opened_at: String,
    /// Number of the event with the answer; none if nobody answered.
    pub answered: Option<u64>,
    /// Principal that answered.
    pub by: Option<Principal>,
    /// Time of the answer, or of the end without one (RFC 3339).
    pub closed_at: String,
    /// Outcome, as in [`PastQuestion`](a2a_hub_protocol::operation::PastQuestion).
    pub outcome: String,
    /// Id of the rule that answered a request for permission, so that nobody was asked.
    pub rule: Option<String>,
}

/// Filter for questions that are not open any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedQuestionFilter {
    /// Tenant.
    pub tenant: TenantId,
    /// Id of the question.
    pub id: Option<QuestionId>,
    /// Only questions with a lower number.
    pub before: Option<u64>,
    /// Limit of results.
    pub limit: usize,
}

/// Times until which persons set open questions aside. They are no events: the clients of a task
/// need not see them.
#[async_trait::async_trait]
pub trait QuestionPostponements: Send + Sync {
    /// Stores durably the time (RFC 3339) until which the open question of a task is set aside, in
    /// place of an earlier one. Returns false if the task does not ask it, or if its log is older
    /// than the records of questions.
    ///
    /// A question that replaces this one before anybody has answered takes the time over, by the
    /// very append that asks it.
    async fn postpone_question(
        &self,
        task: &TaskId,
        id: &QuestionId,
        until: &str,
    ) -> Result<bool, StorageError>;

    /// Time (RFC 3339) until which the open question of a task is set aside; none if nobody set it
    /// aside, or the task does not ask it.
    async fn postponed_until(
        &self,
        task: &TaskId,
        id: &QuestionId,
    ) -> Result<Option<String>, StorageError>;
}

/// Change of a task's questions by one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuestionChange {
    /// Another question is open. If it `replaces` one that its agent cannot ask any more, it takes
    /// over the time until which that one was set aside.
    Opened { seq: u64, id: QuestionId, kind: QuestionKind, at: String, replaces: bool },
    /// The open question, if any, has this answer.
    Answered { seq: u64 },
    /// A rule has answered a request for permission.
    Ruled { seq: u64, answer: RuleAnswer, at: String },
    /// No question is open any more; `at` is the time, if the event has one.
    Closed { at: Option<String>, outcome: &'static str },
}

/// True if the event may open a question, or reports one that a rule has answered.
pub(super) fn asks(event: &TaskEvent) -> bool {
    let TaskEvent::Status(update) = event else { return false };
    update.status.state.is_interrupted()
        || update.metadata.as_ref().is_some_and(|facts| facts.contains_key(ANSWERED_BY_RULE))
}

/// Changes by events that follow event number `after`. Questions that a task relays for another one
/// are that task's.
pub(super) fn changes(after: u64, events: &[Arc<TaskEvent>]) -> Vec<QuestionChange> {
    let numbered = (1..).zip(events);
    let changes = numbered.flat_map(|(number, event)| {
        let seq = after.saturating_add(number);
        [ruled(seq, event), change(seq, event)]
    });
    changes.flatten().collect()
}

/// Request that a rule has answered, if the event reports one.
fn ruled(seq: u64, event: &TaskEvent) -> Option<QuestionChange> {
    let TaskEvent::Status(update) = event else { return None };
    let answer = RuleAnswer::from_metadata(update.metadata.as_ref())?;
    Some(QuestionChange::Ruled { seq, answer, at: update.status.timestamp.clone() })
}

fn change(seq: u64, event: &TaskEvent) -> Option<QuestionChange> {
    let update = match event {
        TaskEvent::Input(message) => {
            // A message that names no question answers the open one.
            return question::answered(message).is_ok().then_some(QuestionChange::Answered { seq });
        }
        TaskEvent::Reply(_) => {
            return Some(QuestionChange::Closed { at: None, outcome: "completed" });
        }
        TaskEvent::Status(update) => update,
        TaskEvent::Created(_) | TaskEvent::Artifact(_) => return None,
    };
    let (state, at) = (update.status.state, update.status.timestamp.clone());
    if !state.is_interrupted() {
        let outcome = if state.is_final() { state.name() } else { EXPIRED };
        return Some(QuestionChange::Closed { at: Some(at), outcome });
    }
    let question = Question::from_metadata(update.metadata.as_ref())?;
    let Question { id, kind, task, replaces, .. } = question;
    match task {
        None => Some(QuestionChange::Opened { seq, id, kind, at, replaces: replaces.is_some() }),
        Some(_) => Some(QuestionChange::Closed { at: Some(at), outcome: REPLACED }),
    }
}
