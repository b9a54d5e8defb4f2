//! The CLI's questions: may I use this tool, and which of these do you want?
//!
//! Everything that is no clear yes is a no.

use a2a_hub_sdk::{Message, Part};
use serde_json::{Map, Value, json};

/// The tool by which the model asks people something. Its permission is the answer.
const ASKING_TOOL: &str = "AskUserQuestion";

/// A question that the CLI waits on.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    request_id: String,
    tool: String,
    input: Value,
    description: Option<String>,
    directory: Option<String>,
}

impl Question {
    /// The question in a control request. Of a kind that this version does not know, it is the line that refuses it,
    /// for the CLI would wait for ever.
    pub fn new(
        request_id: String,
        mut request: Value,
        directory: Option<String>,
    ) -> Result<Self, String> {
        match (request["subtype"].as_str(), request["tool_name"].as_str()) {
            (Some("can_use_tool"), Some(tool)) => Ok(Self {
                tool: tool.to_owned(),
                description: request["description"].as_str().map(ToOwned::to_owned),
                input: request["input"].take(),
                request_id,
                directory,
            }),
            (subtype, _) => {
                let error = format!("{} is not supported here", subtype.unwrap_or("this request"));
                let response =
                    json!({ "subtype": "error", "request_id": request_id, "error": error });
                Err(json!({ "type": "control_response", "response": response }).to_string())
            }
        }
    }

    /// What the client is asked: a text for people, data for programs.
    pub fn prompt(&self) -> Message {
        let text = if self.tool == ASKING_TOOL { self.questions() } else { self.request() };
        let mut data = json!({ "tool": self.tool, "input": self.input });
        if self.tool != ASKING_TOOL {
            data["choices"] = json!(["allow", "deny"]);
        }
        if let Some(directory) = &self.directory {
            data["directory"] = directory.as_str().into();
        }
        Message::from(text).with(Part::data(&data))
    }

    /// The line that tells the CLI the client's answer, or that there was none.
    pub fn answer(&self, answer: Option<&Message>) -> String {
        let decision = match answer {
            None => Err("nobody answered in time".to_owned()),
            Some(answer) if self.tool == ASKING_TOOL => Ok(self.answered(answer)),
            Some(answer) => decide(answer).map(|()| self.input.clone()),
        };
        let response = match decision {
            Ok(input) => json!({ "behavior": "allow", "updatedInput": input }),
            Err(why) => json!({ "behavior": "deny", "message": why, "interrupt": false }),
        };
        let response =
            json!({ "subtype": "success", "request_id": self.request_id, "response": response });
        json!({ "type": "control_response", "response": response }).to_string()
    }

    fn request(&self) -> String {
        let what = match (self.input["command"].as_str(), &self.description) {
            (Some(command), _) => command.to_owned(),
            (None, Some(description)) => description.clone(),
            (None, None) => self.input.to_string(),
        };
        let place = self.directory.as_ref().map(|place| format!(" in {place}")).unwrap_or_default();
        format!("Claude Code wants to use {}{place}:\n{what}\nAllow it? (yes or no)", self.tool)
    }

    fn questions(&self) -> String {
        let lines = self.each_question().map(|(question, asked)| {
            let options = asked["options"].as_array().into_iter().flatten();
            let labels: Vec<&str> = options.filter_map(|option| option["label"].as_str()).collect();
            format!("{question} ({})", labels.join(", "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The input with its answers: data `{"answers": {question: answer}}`, or one text for all.
    fn answered(&self, answer: &Message) -> Value {
        let answers = answer.data().map(|mut data| data["answers"].take());
        let answers = answers.filter(Value::is_object).unwrap_or_else(|| {
            let text = answer.text();
            self.each_question()
                .map(|(question, _)| (question.to_owned(), text.as_str().into()))
                .collect::<Map<_, _>>()
                .into()
        });
        let mut input = self.input.clone();
        input["answers"] = answers;
        input
    }

    fn each_question(&self) -> impl Iterator<Item = (&str, &Value)> {
        let questions = self.input["questions"].as_array().into_iter().flatten();
        questions.filter_map(|asked| Some((asked["question"].as_str()?, asked)))
    }
}

/// Data `{"decision": "allow"}` or the text "yes" or "allow" allows; the model is told why not.
fn decide(answer: &Message) -> Result<(), String> {
    let data = answer.data();
    let text = answer.text();
    let word = match data.as_ref().map(|data| data["decision"].as_str().unwrap_or_default()) {
        Some(decision) => decision.to_owned(),
        None => text.trim().trim_end_matches(['.', '!']).to_lowercase(),
    };
    match word.as_str() {
        "yes" | "allow" => Ok(()),
        _ if text.trim().is_empty() => Err("the client denied it".into()),
        _ => Err(format!("the client denied it and says: {text}")),
    }
}
