//! What a request says, whichever vendor's protocol it came in.

use super::marker::is_marked;
use serde_json::{Value, json};

/// How much of one tool result is repeated in the answer.
const MAX_RESULT_CHARS: usize = 1500;

/// What the CLIs put before the user's words, in user messages of their own.
const NOISE: [&str; 8] = [
    "<system-reminder",
    "<environment_context",
    "<session_context",
    "<user_instructions",
    "<permissions",
    "<INSTRUCTIONS",
    "<turn_aborted",
    "<hook",
];

/// What a request says, whoever's words it uses.
#[derive(Debug, Default)]
pub(super) struct ParsedRequest {
    /// The last thing the user said.
    pub(super) prompt: String,
    /// What tools gave since then, oldest first.
    pub(super) results: Vec<Value>,
    /// The tools on offer.
    pub(super) tools: Vec<Tool>,
    /// The answer that the request's schema asks for, whatever the prompt says.
    pub(super) dictated: Option<String>,
}

impl ParsedRequest {
    /// The user speaks; what tools gave before belongs to an earlier prompt.
    pub(super) fn user(&mut self, content: &Value) {
        if let Some(prompt) = spoken(&texts(content)) {
            self.prompt = prompt.to_owned();
            self.results.clear();
        }
    }

    /// A tool gave `text`.
    pub(super) fn tool(&mut self, text: &str, failed: bool) {
        let text: String = text.chars().take(MAX_RESULT_CHARS).collect();
        self.results.push(json!({"text": text, "is_error": failed}));
    }
}

/// A tool that the agent offers to the model.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The names of its arguments.
    pub(super) arguments: Vec<String>,
}

impl Tool {
    /// The tool `name`, whose arguments are the properties of a JSON schema.
    pub(super) fn new(name: &Value, schema: &Value) -> Self {
        let properties = schema["properties"].as_object();
        Self {
            name: name.as_str().unwrap_or_default().to_owned(),
            arguments: properties.map(|all| all.keys().cloned().collect()).unwrap_or_default(),
        }
    }

    pub(super) fn takes(&self, argument: &str) -> bool {
        self.arguments.iter().any(|name| name == argument)
    }
}

/// The items of a JSON array; none if it is something else.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a content: a string, or blocks of which some have text.
pub(super) fn texts(content: &Value) -> Vec<&str> {
    match content.as_str() {
        Some(text) => vec![text],
        None => list(content).iter().filter_map(|block| block["text"].as_str()).collect(),
    }
}

/// The user's own words among `texts`: the last that has a marker, or else the last.
pub(super) fn spoken<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let is_user_text = |text: &&&str| {
        let text = text.trim_start();
        !text.is_empty() && !NOISE.iter().any(|noise| text.starts_with(noise))
    };
    let marked = texts.iter().rev().filter(is_user_text).find(|text| is_marked(text));
    marked.or_else(|| texts.iter().rev().find(is_user_text)).copied()
}
