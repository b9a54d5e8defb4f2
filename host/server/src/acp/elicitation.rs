//! Conversion of a task's question to a form for the user (`elicitation/create`), and of the
//! filled-in form to an answer.

use a2a_hub_core::text::terminal;
use a2a_hub_protocol::task::Task;
use a2a_hub_rpc::question_view;
use serde_json::{Value, json};

/// Method that shows a form.
pub(super) const METHOD: &str = "elicitation/create";

/// Member of the form with the answer.
const ANSWER: &str = "answer";

/// Maximum length of a question in a form, in characters.
const MAX_PROMPT: usize = 4_000;

/// Parameters of a form with one member for the answer. The agent's choices, if it names any,
/// become the member's values.
pub(super) fn form(session: &str, task: &Task) -> Value {
    let mut answer = json!({ "type": "string", "title": "Answer" });
    let choices = question_view::named_choices(task);
    if let (false, Some(answer)) = (choices.is_empty(), answer.as_object_mut()) {
        answer.insert("enum".to_owned(), json!(choices));
    }
    let prompt: String = question_view::prompt(task).chars().take(MAX_PROMPT).collect();
    json!({
        "sessionId": session,
        "mode": "form",
        "message": terminal::clean(&prompt),
        "requestedSchema": {
            "type": "object",
            "properties": { ANSWER: answer },
            "required": [ANSWER],
        },
    })
}

/// Answer of an accepted form; `None` if the user declined or dismissed it, or left it empty.
pub(super) fn answer(filled: &Value) -> Option<&str> {
    let text = filled["content"][ANSWER].as_str()?;
    (filled["action"] == "accept" && !text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::json_shapes::reshaped;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        message::{Message, Part, Role},
        task::{TaskState, TaskStatus},
    };

    fn task(parts: Vec<Part>) -> Task {
        let message = Some(Message::new(Role::Agent, parts));
        let state = TaskState::InputRequired;
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message, timestamp: String::new() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        }
    }

    #[test]
    fn question_becomes_form_with_choices() {
        let plain = form("s", &task(vec![Part::text("which\u{1b}[2J one?")]));
        assert_eq!(plain["message"], "which\\u{1b}[2J one?");
        let schema = &plain["requestedSchema"];
        assert_eq!(schema["properties"]["answer"], json!({ "type": "string", "title": "Answer" }));
        assert_eq!((&plain["sessionId"], &schema["required"]), (&json!("s"), &json!(["answer"])));
        let choices = Part::data(json!({ "choices": ["red", 7, "blue"] }));
        let chosen = form("s", &task(vec![Part::text("which?"), choices]));
        let answer = &chosen["requestedSchema"]["properties"]["answer"];
        assert_eq!(answer["enum"], json!(["red", "blue"]));
    }

    #[test]
    fn only_accepted_form_answers() {
        let accepted = json!({ "action": "accept", "content": { "answer": "blue" } });
        assert_eq!(answer(&accepted), Some("blue"));
        for action in ["decline", "cancel", "_other"] {
            let other = json!({ "action": action, "content": { "answer": "blue" } });
            assert_eq!(answer(&other), None, "{action}");
        }
        assert_eq!(answer(&json!({ "action": "accept", "content": { "answer": " " } })), None);
        for other in reshaped(&accepted).iter().filter(|other| **other != accepted) {
            assert!(answer(other).is_none_or(|text| text != "blue" || other["action"] == "accept"));
        }
    }
}
