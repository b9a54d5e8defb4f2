//! Refusals of operations on tasks. Each says what was asked, why not, and what to do instead.

use a2a_hub_core::task::{lifecycle::MAX_PENDING_MESSAGES, question::QuestionClosed};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    message::Message,
    question::Question,
    task::{Task, TaskState},
};
use serde_json::json;

/// Refuses to resume after an event that has not happened: a task has had only `seq` events, and
/// the wait would be in vain.
///
/// # Errors
///
/// If the event has not happened.
pub fn require_past_event(after: Option<u64>, seq: u64) -> Result<(), A2aError> {
    if after.is_some_and(|after| after > seq) {
        let why = format!("the task has had {seq} events so far");
        return Err(A2aError::invalid("lastEventId", why));
    }
    Ok(())
}

/// Refuses a message to a task that is over, or whose message queue is full.
pub fn not_waiting(id: &TaskId, state: TaskState) -> A2aError {
    let hint = if state.is_final() {
        "send the message without `taskId`".to_owned()
    } else {
        format!(
            "{MAX_PENDING_MESSAGES} messages wait for its agent already; wait until it has heard them"
        )
    };
    let why = format!("task `{id}` is {}, and takes no message; {hint}", state.name());
    A2aError::new(ErrorKind::UnsupportedOperation, why).with(json!({ "state": state.name() }))
}

/// Refuses an answer to a question that is not the open one.
pub fn question_not_open(
    task: &Task,
    open_question: Option<&Question>,
    error: &QuestionClosed,
) -> A2aError {
    let (id, state) = (&task.id, task.status.state.name());
    let text = prompt(task);
    let way_out = match open_question {
        Some(open_question) => answer_that_one(task, open_question),
        None => "leave out `metadata.question`".to_owned(),
    };
    let asks = if task.status.state.is_interrupted() {
        format!("asks now: “{text}”")
    } else {
        "asks nothing now".to_owned()
    };
    let why = format!("{error}; task `{id}` is {state} and {asks}; {way_out}");
    let details = json!({ "state": state, "question": open_question, "text": text });
    A2aError::new(ErrorKind::UnsupportedOperation, why).with(details)
}

/// Text of the question that a task asks now.
fn prompt(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

/// Way to answer the open question of a task.
fn answer_that_one(task: &Task, open_question: &Question) -> String {
    format!(
        "answer that one with `metadata.question` = `{1}` (`a2a-hub send AGENT --task {0} --question {1} ...`)",
        task.id, open_question.id
    )
}

/// Refuses an answer that names no question, for another question was closed a moment ago.
pub fn name_the_question(task: &Task, open_question: &Question) -> A2aError {
    let (text, way_out) = (prompt(task), answer_that_one(task, open_question));
    let why = format!(
        "the question before was closed a moment ago, and this answer names none; task `{}` asks now: “{text}”; {way_out}, or \
         send the answer again in two seconds",
        task.id
    );
    let details =
        json!({ "state": task.status.state.name(), "question": open_question, "text": text });
    A2aError::new(ErrorKind::UnsupportedOperation, why).with(details)
}

/// Refuses an answer to a queued question while the agent still gets another answer.
pub fn gets_an_answer(task: &Task) -> A2aError {
    let why = format!(
        "task `{}` waits for its turn with another answer; send this one again once it goes on",
        task.id
    );
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

/// Refuses a further message to a task that asks a question: it would be the answer.
pub fn asks_now(task: &Task) -> A2aError {
    let why = format!(
        "task `{}` asks a question; send the message again once it has the answer",
        task.id
    );
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

/// Refuses to cancel a task that is over.
pub fn not_cancelable(id: &TaskId, state: TaskState) -> A2aError {
    let why = format!("task `{id}` is {} and cannot be cancelled", state.name());
    A2aError::new(ErrorKind::TaskNotCancelable, why).with(json!({ "state": state.name() }))
}
