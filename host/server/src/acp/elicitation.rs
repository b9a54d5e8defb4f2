//! Conversion of a task's question to a form for the user (`elicitation/create`), and of the
//! filled-in form to an answer.

use crate::agent_form::agent_form;
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

/// Parameters of the agent's own form, or else of one with one member for the answer. The agent's
/// choices, if it names any, become the member's values.
pub(super) fn form(session: &str, task: &Task) -> Value {
    let prompt: String = question_view::prompt(task).chars().take(MAX_PROMPT).collect();
    json!({
        "sessionId": session,
        "mode": "form",
        "message": terminal::clean(&prompt),
        "requestedSchema": agent_form(task).map_or_else(|| plain(task), |form| json!(form)),
    })
}

/// Schema of a form with one member.
fn plain(task: &Task) -> Value {
    let mut answer = json!({ "type": "string", "title": "Answer" });
    let choices = question_view::named_choices(task);
    if let (false, Some(answer)) = (choices.is_empty(), answer.as_object_mut()) {
        answer.insert("enum".to_owned(), json!(choices));
    }
    json!({ "type": "object", "properties": { ANSWER: answer }, "required": [ANSWER] })
}

/// Answer of an accepted form: the text, or the members of the agent's own form as JSON. `None` if
/// the user declined or dismissed it, or left it empty.
pub(super) fn answer(task: &Task, filled: &Value) -> Option<String> {
    let content = filled["content"].as_object().filter(|_| filled["action"] == "accept")?;
    if agent_form(task).is_some() {
        return Some(filled["content"].to_string());
    }
    let text = content.get(ANSWER)?.as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{acp_schema::AcpSchema, json_shapes::reshaped};
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
        let asked = task(vec![Part::text("which?")]);
        let accepted = json!({ "action": "accept", "content": { "answer": "blue" } });
        assert_eq!(answer(&asked, &accepted).as_deref(), Some("blue"));
        for action in ["decline", "cancel", "_other"] {
            let other = json!({ "action": action, "content": { "answer": "blue" } });
            assert_eq!(answer(&asked, &other), None, "{action}");
        }
        let empty = json!({ "action": "accept", "content": { "answer": " " } });
        assert_eq!(answer(&asked, &empty), None);
        for other in reshaped(&accepted).iter().filter(|other| **other != accepted) {
            let is_read = answer(&asked, other).is_some_and(|text| text == "blue");
            assert!(!is_read || other["action"] == "accept");
        }
    }

    #[test]
    fn own_form_is_shown_and_answered_whole() {
        let schema = json!({
            "type": "object",
            "properties": {
                "age": { "type": "integer", "default": 30 },
                "one": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }] },
                "many": { "type": "array", "items": { "type": "string", "enum": ["p", "q"] } },
            },
            "required": ["age"],
        });
        let asked = task(vec![Part::text("Who?"), Part::data(json!({ "form": schema.clone() }))]);
        let shown = form("s", &asked);
        assert_eq!((&shown["message"], &shown["requestedSchema"]), (&json!("Who?"), &schema));
        AcpSchema::default().check(&json!({ "jsonrpc": "2.0", "method": METHOD, "params": shown }));
        let filled = json!({ "action": "accept", "content": { "age": 7, "many": ["p"] } });
        assert_eq!(answer(&asked, &filled), Some(filled["content"].to_string()));
        for odd in [json!({ "action": "decline", "content": {} }), json!({ "action": "accept" })] {
            assert_eq!(answer(&asked, &odd), None, "{odd}");
        }
        let odd = json!({ "type": "object", "properties": { "a": { "type": "object" } } });
        let plain = form("s", &task(vec![Part::data(json!({ "form": odd }))]));
        assert_eq!(plain["requestedSchema"]["required"], json!(["answer"]));
    }
}
