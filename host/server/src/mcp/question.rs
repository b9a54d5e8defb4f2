//! What a task asks, as a form for the user (elicitation), and what they filled in as the task's answer.

use crate::asked;
use a2a_hub_core::terminal;
use a2a_hub_protocol::{id::TaskId, question::QuestionKind, task::Task};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The name of the only request for input, where the client asks its user and then calls again.
pub(super) const INPUT: &str = "answer";

/// The longest question that a form shows, in characters.
const MAX_PROMPT: usize = 4_000;

/// What the call that comes back with an answer says of itself: whose question it was.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) task: TaskId,
    pub(super) question: Option<String>,
}

impl Asked {
    /// What the task asks.
    pub(super) fn by(task: &Task) -> Self {
        Self { task: task.id.clone(), question: asked::id(task) }
    }

    /// The state that a call came back with. It is the client's to tell: it says no more than `answer_task` could.
    pub(super) fn read(state: &str) -> Option<Self> {
        serde_json::from_str(state).ok()
    }

    pub(super) fn write(&self) -> String {
        json!(self).to_string()
    }
}

/// The form that puts the question to the user; none if the SDK has no such form.
pub(super) fn form(task: &Task, agent: &str) -> Option<ElicitRequestParams> {
    let member = match asked::kind(task) {
        QuestionKind::Permission => {
            json!({ "decision": { "type": "string", "title": "Decision", "enum": asked::choices(task) } })
        }
        QuestionKind::Input | QuestionKind::Auth => {
            json!({ "answer": { "type": "string", "title": "Answer" } })
        }
    };
    let required: Vec<_> = member.as_object()?.keys().cloned().collect();
    let schema = json!({ "type": "object", "properties": member, "required": required });
    let requested_schema = ElicitationSchema::from_json_schema(schema.as_object()?.clone()).ok()?;
    let prompt: String = asked::prompt(task).chars().take(MAX_PROMPT).collect();
    let message = format!("The agent `{agent}` asks: {}", terminal::clean(&prompt));
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// What the user answers with a filled-in form; none if they gave no answer. A permission that they refuse to talk about is
/// denied.
pub(super) fn answer(task: QuestionKind, filled: &ElicitResult) -> Option<String> {
    if filled.action == ElicitationAction::Accept {
        let content = filled.content.as_ref()?;
        let said = ["decision", "answer"].into_iter().find_map(|name| content[name].as_str());
        return said.map(str::to_owned);
    }
    let denies = filled.action == ElicitationAction::Decline && task == QuestionKind::Permission;
    denies.then(|| "deny".to_owned())
}

/// What a client that asked its user brings back.
pub(super) fn brought(responses: Option<&InputResponses>) -> Option<ElicitResult> {
    serde_json::from_value(responses?.get(INPUT)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::ContextId,
        message::{Message, Metadata, Part, Role},
        question::Question,
        task::{TaskState, TaskStatus},
    };
    use serde_json::Value;

    fn task(kind: QuestionKind, parts: Vec<Part>) -> Task {
        let message = Some(Message::new(Role::Agent, parts));
        let state = TaskState::InputRequired;
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message, timestamp: String::new() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Some(Metadata::from_iter([Question::fresh(kind).member()])),
        }
    }

    fn shown(task: &Task) -> Value {
        json!(form(task, "codex").unwrap())
    }

    #[test]
    fn a_permission_is_a_choice_and_anything_else_a_line() {
        let choices = json!({ "choices": ["allow", "allow-session", "deny"] });
        let permission = vec![Part::text("run\u{1b}[2J rm?"), Part::data(choices)];
        let form = shown(&task(QuestionKind::Permission, permission));
        assert_eq!(form["message"], "The agent `codex` asks: run\\u{1b}[2J rm?");
        let offered = &form["requestedSchema"]["properties"]["decision"]["enum"];
        assert_eq!(*offered, json!(["allow", "allow-session", "deny"]));
        let plain = shown(&task(QuestionKind::Permission, vec![Part::text("may I?")]));
        assert_eq!(
            plain["requestedSchema"]["properties"]["decision"]["enum"],
            json!(["allow", "deny"])
        );
        for kind in [QuestionKind::Input, QuestionKind::Auth] {
            let form = shown(&task(kind, vec![Part::text("which?")]));
            assert_eq!(form["requestedSchema"]["properties"]["answer"]["type"], "string");
            assert_eq!(form["requestedSchema"]["required"], json!(["answer"]));
        }
    }

    #[test]
    fn only_what_the_user_filled_in_is_an_answer() {
        use QuestionKind::{Auth, Input, Permission};
        let filled = |action, content: Value| ElicitResult::new(action).with_content(content);
        let accepted = |content| filled(ElicitationAction::Accept, content);
        assert_eq!(answer(Input, &accepted(json!({ "answer": "blue" }))).as_deref(), Some("blue"));
        assert_eq!(
            answer(Permission, &accepted(json!({ "decision": "allow" }))).as_deref(),
            Some("allow")
        );
        assert_eq!(answer(Input, &accepted(json!({}))), None);
        assert_eq!(answer(Input, &ElicitResult::new(ElicitationAction::Accept)), None);
        let declined = ElicitResult::new(ElicitationAction::Decline);
        assert_eq!(answer(Permission, &declined).as_deref(), Some("deny"));
        assert_eq!([answer(Input, &declined), answer(Auth, &declined)], [None, None]);
        let left = ElicitResult::new(ElicitationAction::Cancel);
        assert_eq!(answer(Permission, &left), None);
    }

    #[test]
    fn a_call_that_comes_back_says_whose_question_it_answers() {
        let asked = Asked::by(&task(QuestionKind::Input, Vec::new()));
        assert!(asked.question.is_some());
        assert_eq!(Asked::read(&asked.write()), Some(asked));
        assert_eq!(Asked::read("else"), None);
    }
}
