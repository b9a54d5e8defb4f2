//! Conversion of a task's question to a form for the user (elicitation), and of the filled-in form
//! to an answer.

use crate::agent_form::agent_form;
use a2a_hub_core::text::terminal;
use a2a_hub_protocol::{id::TaskId, question::QuestionKind, task::Task};
use a2a_hub_rpc::question_view;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Name of the input request, for clients that ask their user and repeat the call.
pub(super) const INPUT: &str = "answer";

/// Maximum length of a question in a form, in characters.
const MAX_PROMPT: usize = 4_000;

/// State of a repeated call: the task and question that it answers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CallState {
    pub(super) task: TaskId,
    pub(super) question: Option<String>,
}

impl CallState {
    /// Creates the state for the question of a task.
    pub(super) fn by(task: &Task) -> Self {
        Self { task: task.id.clone(), question: question_view::id(task) }
    }

    /// Parses the state of a repeated call. It comes from the client and allows no more than
    /// `answer_task` does.
    pub(super) fn read(state: &str) -> Option<Self> {
        serde_json::from_str(state).ok()
    }

    pub(super) fn write(&self) -> String {
        json!(self).to_string()
    }
}

/// Form for the question; `None` if the SDK does not support its schema.
pub(super) fn form(task: &Task, agent: Option<&str>) -> Option<ElicitRequestParams> {
    let member = match question_view::kind(task) {
        QuestionKind::Permission => {
            json!({ "decision": { "type": "string", "title": "Decision", "enum": question_view::choices(task) } })
        }
        QuestionKind::Input | QuestionKind::Auth => {
            json!({ "answer": { "type": "string", "title": "Answer" } })
        }
    };
    let required: Vec<_> = member.as_object()?.keys().cloned().collect();
    let schema = json!({ "type": "object", "properties": member, "required": required });
    let plain = || ElicitationSchema::from_json_schema(schema.as_object()?.clone()).ok();
    let requested_schema = agent_form(task).or_else(plain)?;
    let prompt: String = question_view::prompt(task).chars().take(MAX_PROMPT).collect();
    let agent = agent.map(|agent| format!(" `{agent}`")).unwrap_or_default();
    let message = format!("The agent{agent} asks: {}", terminal::clean(&prompt));
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Answer from a filled-in form: the text, or the members of the agent's own form as JSON. `None`
/// without an answer. Declining a permission counts as a denial.
pub(super) fn answer(task: &Task, filled: &ElicitResult) -> Option<String> {
    if filled.action == ElicitationAction::Accept {
        let content = filled.content.as_ref()?;
        if agent_form(task).is_some() {
            return content.is_object().then(|| content.to_string());
        }
        let text = ["decision", "answer"].into_iter().find_map(|name| content[name].as_str());
        return text.map(str::to_owned);
    }
    let denies = filled.action == ElicitationAction::Decline
        && question_view::kind(task) == QuestionKind::Permission;
    denies.then(|| "deny".to_owned())
}

/// Form result in a repeated call.
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
        json!(form(task, Some("codex")).unwrap())
    }

    #[test]
    fn permission_form_offers_choices() {
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
    fn only_accepted_form_yields_answer() {
        use QuestionKind::{Auth, Input, Permission};
        let filled = |action, content: Value| ElicitResult::new(action).with_content(content);
        let accepted = |content| filled(ElicitationAction::Accept, content);
        let answer = |kind, filled: &ElicitResult| answer(&task(kind, Vec::new()), filled);
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
    fn own_form_is_shown_and_answered_whole() {
        let schema = json!({
            "type": "object",
            "properties": {
                "age": { "type": "integer", "default": 30 },
                "one": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }] },
                "old": { "type": "string", "enum": ["x"], "enumNames": ["X"] },
                "many": { "type": "array", "items": { "type": "string", "enum": ["p", "q"] } },
            },
            "required": ["age"],
        });
        let asks = |kind, form: &Value| task(kind, vec![Part::data(json!({ "form": form }))]);
        let asked = asks(QuestionKind::Input, &schema);
        assert_eq!(shown(&asked)["requestedSchema"], schema);
        let content = json!({ "age": 7, "many": ["p"] });
        let filled = ElicitResult::new(ElicitationAction::Accept).with_content(content.clone());
        assert_eq!(answer(&asked, &filled), Some(content.to_string()));
        let permission = shown(&asks(QuestionKind::Permission, &schema));
        assert!(permission["requestedSchema"]["properties"]["decision"].is_object());
        let many: serde_json::Map<_, _> =
            (0..30).map(|n| (n.to_string(), json!({ "type": "boolean" }))).collect();
        for odd in [
            json!({ "type": "object", "properties": {} }),
            json!({ "type": "object", "properties": many }),
            json!({ "type": "object", "properties": { "a": { "type": "object" } } }),
            json!({ "type": "object", "properties": { "a": { "type": "string", "title": "x".repeat(20_000) } } }),
            json!("form"),
        ] {
            let plain = shown(&asks(QuestionKind::Input, &odd));
            assert_eq!(plain["requestedSchema"]["required"], json!(["answer"]), "{odd}");
        }
    }

    #[test]
    fn repeated_call_state_round_trips() {
        let asked = CallState::by(&task(QuestionKind::Input, Vec::new()));
        assert!(asked.question.is_some());
        assert_eq!(CallState::read(&asked.write()), Some(asked));
        assert_eq!(CallState::read("else"), None);
    }
}
