//! Questions of the program: approval of a tool, or the model's own questions as a form.

use serde_json::{Map, Value, json};

use crate::Message;
use crate::cli::{ChoiceKind, Decision, Kind, Question, VendorOption, answer_text};

/// Form in which the program expects the answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AnswerForm {
    /// Answer by the id of an option.
    Leave {
        /// Option ids for "allow once", "allow for the session", and "reject".
        once: Option<String>,
        session: Option<String>,
        no: Option<String>,
    },
    /// Answer by the values of a form's fields.
    Form(Vec<Field>),
}

/// Field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    name: String,
    question: String,
    /// True if the field takes several answers.
    several: bool,
}

impl AnswerForm {
    /// Reads a question for approval. Options are distinguished by their kind: their ids are the
    /// vendor's own.
    /// With `shows_options`, clients also see the program's options and may choose one.
    pub(super) fn approval(
        params: &Value,
        mut question: Question,
        shows_options: bool,
    ) -> (Self, Question) {
        let option = |kind: &str| {
            let mut options = params["options"].as_array().into_iter().flatten();
            // The first option of a kind has the smallest scope: "this session" comes before
            // "always".
            let option = options.find(|option| option["kind"] == kind);
            option.and_then(|option| option["optionId"].as_str()).map(ToOwned::to_owned)
        };
        if shows_options {
            let options = params["options"].as_array().into_iter().flatten();
            let to_vendor_option = |option: &Value| {
                let id = option["optionId"].as_str()?.to_owned();
                let name = option["name"].as_str().unwrap_or(&id).to_owned();
                let kind = ChoiceKind::new(option["kind"].as_str());
                Some(VendorOption { id, name, kind })
            };
            question.vendor_options = options.filter_map(to_vendor_option).collect();
        }
        let session = option("allow_always");
        question.for_session = session.is_some();
        (Self::Leave { once: option("allow_once"), session, no: option("reject_once") }, question)
    }

    /// Converts a form into one question to the client.
    pub(super) fn form(params: &Value) -> (Self, Question) {
        let schema = &params["requestedSchema"];
        let mut fields = Vec::new();
        let mut lines = Vec::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let question =
                ["description", "title"].iter().find_map(|member| field[*member].as_str());
            let question = question.unwrap_or(name).to_owned();
            let several = field["type"] == "array";
            let one_of = if several { &field["items"]["anyOf"] } else { &field["oneOf"] };
            let choices = one_of.as_array().into_iter().flatten();
            let choices: Vec<&str> =
                choices.filter_map(|choice| choice["const"].as_str()).collect();
            lines.push(match choices.as_slice() {
                [] => question.clone(),
                choices => format!("{question} ({})", choices.join(", ")),
            });
            fields.push(Field { name: name.clone(), question, several });
        }
        let question = Question {
            id: Value::Null,
            kind: Kind::Open,
            tool: "question".into(),
            input: schema.clone(),
            description: Some(lines.join("\n")),
            changes: Vec::new(),
            directory: None,
            for_session: false,
            vendor_options: Vec::new(),
            tool_call: None,
            facts: None,
        };
        (Self::Form(fields), question)
    }

    /// Result for the program.
    pub(super) fn answer(&self, decision: &Decision) -> Value {
        match (self, decision) {
            (Self::Leave { .. }, Decision::Chosen(id)) => {
                json!({ "outcome": { "outcome": "selected", "optionId": id } })
            }
            (Self::Leave { once: Some(id), .. }, Decision::Allow)
            | (Self::Leave { session: Some(id), .. }, Decision::AllowForSession)
            | (Self::Leave { no: Some(id), .. }, Decision::Deny(_) | Decision::Answer(_)) => {
                json!({ "outcome": { "outcome": "selected", "optionId": id } })
            }
            // Also the answer to "no" where the program offers no such choice.
            (Self::Leave { .. }, _) => json!({ "outcome": { "outcome": "cancelled" } }),
            (Self::Form(fields), Decision::Answer(message)) => {
                let content: Map<_, _> = fields.iter().map(|field| field.answer(message)).collect();
                json!({ "action": "accept", "content": content })
            }
            (Self::Form(_), _) => json!({ "action": "decline" }),
        }
    }

    /// Result for the program whose turn is cancelled.
    pub(super) fn cancelled(&self) -> Value {
        match self {
            Self::Leave { .. } => json!({ "outcome": { "outcome": "cancelled" } }),
            Self::Form(_) => json!({ "action": "cancel" }),
        }
    }
}

impl Field {
    /// Value of the field: from data by the field's name or its question; a text answers every
    /// field.
    fn answer(&self, message: &Message) -> (String, Value) {
        let data = message.data().unwrap_or_default();
        let found = [&self.name, &self.question].into_iter().find_map(|key| data.get(key));
        let value = found.cloned().unwrap_or_else(|| answer_text(message).into());
        let value = if self.several && !value.is_array() { json!([value]) } else { value };
        (self.name.clone(), value)
    }
}
