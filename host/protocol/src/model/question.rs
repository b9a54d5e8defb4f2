//! What a task asks its client, in the terms of its metadata: `question = { id, kind }` of a task that waits, and
//! `question` of a message that answers it, which is the id or an object that has it.

use crate::model::{
    error::A2aError,
    id::{AgentId, MAX_ID, QuestionId, TaskId},
    message::{Message, Metadata},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The member of a task's metadata that holds its open question, and of a message's that says which question it answers.
pub const QUESTION: &str = "question";

/// A question that a task waits with. It goes with the status that asks, and is over once the task goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question's name, by which an answer says what it answers.
    pub id: QuestionId,
    /// What kind of answer is wanted.
    pub kind: QuestionKind,
    /// The kind of the agent's own question that this one stands for: a restart of the hub ended who had asked that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<QuestionKind>,
    /// The task below this one that asks, if this one only hands the question on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The agent that asks, if another one hands the question on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// By whom it was handed on, the agent that asks last: `["reviewer", "codex"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<AgentId>,
}

/// What kind of answer a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// More of what is to be done.
    Input,
    /// Leave to do something, or a refusal.
    Permission,
    /// A login that only the client can make.
    Auth,
}

impl QuestionKind {
    /// Every kind of question.
    pub const ALL: [Self; 3] = [Self::Input, Self::Permission, Self::Auth];
}

impl Question {
    /// A question with a fresh name.
    pub fn fresh(kind: QuestionKind) -> Self {
        let (id, replaces, task, agent, path) = (QuestionId::fresh(), None, None, None, Vec::new());
        Self { id, kind, replaces, task, agent, path }
    }

    /// The question that a task's metadata holds.
    pub fn of(metadata: Option<&Metadata>) -> Option<Self> {
        serde_json::from_value(metadata?.get(QUESTION)?.clone()).ok()
    }

    /// The question as a member of a task's metadata.
    pub fn member(&self) -> (String, Value) {
        (QUESTION.to_owned(), json!(self))
    }
}

/// The question that a message says it answers, if it says so.
pub fn answered(message: &Message) -> Result<Option<QuestionId>, A2aError> {
    match message.metadata.as_ref().and_then(|facts| facts.get(QUESTION)) {
        None | Some(Value::Null) => Ok(None),
        Some(named) => answered_by(named, "message.metadata.question").map(Some),
    }
}

/// Reads which question a message answers: its id, or an object that has the id. `at` is its place, for the error.
pub fn answered_by(named: &Value, at: &str) -> Result<QuestionId, A2aError> {
    let id = if named.is_object() { named.get("id") } else { Some(named) };
    match id.and_then(Value::as_str) {
        Some(id) if !id.is_empty() && id.len() <= MAX_ID => Ok(QuestionId::new(id)),
        Some(_) | None => {
            let why = "must be the id of the question that the message answers, or an object with that `id`";
            Err(A2aError::invalid(at, why))
        }
    }
}

/// Whether an agent's prompt says that it asks for leave to do something: `question = { kind: permission }` in its metadata.
pub fn asks_permission(prompt: &Message) -> bool {
    let told = prompt.metadata.as_ref().and_then(|facts| facts.get(QUESTION)?.get("kind"));
    told.is_some_and(|kind| *kind == json!(QuestionKind::Permission))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    #[test]
    fn a_question_is_read_as_it_is_written() {
        for kind in QuestionKind::ALL {
            for replaces in [None, Some(kind)] {
                let question = Question { replaces, ..Question::fresh(kind) };
                let metadata = Metadata::from_iter([question.member()]);
                assert_eq!(Question::of(Some(&metadata)), Some(question));
            }
        }
        let other = Metadata::from_iter([(QUESTION.to_owned(), json!("what?"))]);
        assert_eq!([Question::of(None), Question::of(Some(&other))], [None, None]);
    }

    #[test]
    fn an_agent_says_that_it_asks_for_permission() {
        let asks = |question: Value| {
            let metadata = Metadata::from_iter([(QUESTION.to_owned(), question)]);
            let prompt = Message::text(Role::Agent, "may I?");
            asks_permission(&Message { metadata: Some(metadata), ..prompt })
        };
        assert!(asks(json!({ "kind": "permission" })));
        for other in [json!({ "kind": "input" }), json!("permission"), json!({}), Value::Null] {
            assert!(!asks(other.clone()), "{other}");
        }
        assert!(!asks_permission(&Message::text(Role::Agent, "may I?")));
    }

    #[test]
    fn a_message_names_the_question_by_its_id() {
        let named = |question: Value| {
            let metadata = Metadata::from_iter([(QUESTION.to_owned(), question)]);
            answered(&Message { metadata: Some(metadata), ..Message::text(Role::User, "yes") })
        };
        let id = Some(QuestionId::new("q"));
        assert_eq!(answered(&Message::text(Role::User, "yes")), Ok(None));
        assert_eq!(named(Value::Null), Ok(None));
        assert_eq!(named(json!("q")), Ok(id.clone()));
        assert_eq!(named(json!({ "id": "q", "kind": "input" })), Ok(id));
        for wrong in [json!(""), json!(1), json!({}), json!(["q"]), json!("q".repeat(MAX_ID + 1))] {
            assert!(named(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
