//! Question of a task to its client, in metadata: `question = { id, kind }` of a waiting task, and
//! `question` of the message that answers, which is the id or an object with the id.

use crate::model::{
    error::A2aError,
    id::{AgentId, MAX_ID, QuestionId, TaskId},
    message::{Content, Message, Metadata},
    permission::PermissionRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum number of choices of a question that are offered to a user.
const MAX_CHOICES: usize = 10;

/// Metadata member that holds a task's open question, and in a message the question that it
/// answers.
pub const QUESTION: &str = "question";

/// Open question of a waiting task. It belongs to the status that asks, and ends when the task
/// resumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Id of the question, which an answer refers to.
    pub id: QuestionId,
    /// Kind of answer that is required.
    pub kind: QuestionKind,
    /// Kind of the agent's own question that this one replaces, because a restart of the hub ended
    /// the program that asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<QuestionKind>,
    /// Descendant task that asks, if this task relays its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Agent that asks, if another agent relays its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Agents that relay the question, ending with the agent that asks: `["reviewer", "codex"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<AgentId>,
    /// Request of the agent's program, of a question for permission that the agent posed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PermissionRequest>,
}

/// Kind of answer that a question requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// Further input for the work.
    Input,
    /// Permission for an action, or a refusal.
    Permission,
    /// Login that only the client can perform.
    Auth,
}

impl QuestionKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Input, Self::Permission, Self::Auth];
}

impl QuestionKind {
    /// Name of the kind, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Permission => "permission",
            Self::Auth => "auth",
        }
    }
}

impl Question {
    /// Creates a question with a fresh id.
    pub fn fresh(kind: QuestionKind) -> Self {
        let (replaces, task, agent, request) = Default::default();
        Self { id: QuestionId::fresh(), kind, replaces, task, agent, path: Vec::new(), request }
    }

    /// Reads the question from a task's metadata.
    pub fn from_metadata(metadata: Option<&Metadata>) -> Option<Self> {
        serde_json::from_value(metadata?.get(QUESTION)?.clone()).ok()
    }

    /// The question as a metadata member: name and value.
    pub fn member(&self) -> (String, Value) {
        (QUESTION.to_owned(), json!(self))
    }
}

/// Id of the question that a message answers, if the message names one.
pub fn answered(message: &Message) -> Result<Option<QuestionId>, A2aError> {
    match message.metadata.as_ref().and_then(|facts| facts.get(QUESTION)) {
        None | Some(Value::Null) => Ok(None),
        Some(named) => answered_by(named, "message.metadata.question").map(Some),
    }
}

/// Reads the id of an answered question: the id itself, or an object with the id. `at` is the path
/// of the value, for the error.
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

/// Data part of a prompt, for programs.
pub fn data(prompt: &Message) -> Option<&Value> {
    prompt.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
    })
}

/// Choices that an agent names in its prompt, at most 10.
pub fn named_choices(prompt: &Message) -> impl Iterator<Item = &str> {
    let named = data(prompt).and_then(|data| data["choices"].as_array()).into_iter().flatten();
    named.filter_map(Value::as_str).take(MAX_CHOICES)
}

/// True if an agent's prompt asks for permission: `question = { kind: permission }` in its
/// metadata.
pub fn asks_permission(prompt: &Message) -> bool {
    let kind = prompt.metadata.as_ref().and_then(|facts| facts.get(QUESTION)?.get("kind"));
    kind.is_some_and(|kind| *kind == json!(QuestionKind::Permission))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    #[test]
    fn question_round_trips_through_metadata() {
        for kind in QuestionKind::ALL {
            assert_eq!(json!(kind), kind.name());
            for replaces in [None, Some(kind)] {
                let question = Question { replaces, ..Question::fresh(kind) };
                let metadata = Metadata::from_iter([question.member()]);
                assert_eq!(Question::from_metadata(Some(&metadata)), Some(question));
            }
        }
        let other = Metadata::from_iter([(QUESTION.to_owned(), json!("what?"))]);
        assert_eq!(
            [Question::from_metadata(None), Question::from_metadata(Some(&other))],
            [None, None]
        );
    }

    #[test]
    fn only_kind_permission_asks_for_permission() {
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
    fn message_names_answered_question_by_id() {
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
