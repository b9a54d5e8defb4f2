//! What the vendors' protocols have in common: a prompt comes in, and a turn goes out.

use super::{plan::Plan, script::Script};
use serde_json::{Value, json};
use uuid::Uuid;

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

/// One vendor's protocol.
pub(super) trait Dialect: Sync {
    /// What the request says.
    fn hear(&self, request: &Value) -> Heard;
    /// The turn as one JSON document.
    fn whole(&self, turn: &Turn) -> Value;
    /// The turn as a stream of events.
    fn script(&self, turn: &Turn) -> Script;
    /// The body of an HTTP error.
    fn refusal(&self, status: u16, message: &str) -> Value;
}

/// What a request says, whoever's words it uses.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The last thing the user said.
    pub(super) prompt: String,
    /// What tools gave since then, oldest first.
    pub(super) results: Vec<Value>,
    /// The tools on offer.
    pub(super) tools: Vec<Tool>,
    /// The answer that the request's schema asks for, whatever the prompt says.
    pub(super) dictated: Option<String>,
}

impl Heard {
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

/// What is said in answer to one request.
#[derive(Debug)]
pub(super) struct Turn {
    /// Part of every id in it.
    pub(super) id: String,
    /// The model that the client asked for.
    pub(super) model: String,
    pub(super) input_tokens: usize,
    pub(super) plan: Plan,
}

impl Turn {
    pub(super) fn new(path: &str, request: &Value, plan: Plan) -> Self {
        let in_path = || path.rsplit_once("/models/")?.1.split(':').next();
        Self {
            id: Uuid::now_v7().simple().to_string(),
            model: request["model"].as_str().or_else(in_path).unwrap_or("mock").to_owned(),
            input_tokens: tokens(&request.to_string()),
            plan,
        }
    }

    pub(super) fn output_tokens(&self) -> usize {
        tokens(&self.plan.reply.to_string())
    }
}

/// A token is about four bytes of English.
fn tokens(text: &str) -> usize {
    (text.len() / 4).max(1)
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
    let own = |text: &&&str| {
        let text = text.trim_start();
        !text.is_empty() && !NOISE.iter().any(|noise| text.starts_with(noise))
    };
    let marked = texts.iter().rev().filter(own).find(|text| Plan::is_in(text));
    marked.or_else(|| texts.iter().rev().find(own)).copied()
}

/// What vendors call the errors of these statuses: first Anthropic and OpenAI, then Google.
pub(super) fn error_names(status: u16) -> (&'static str, &'static str) {
    match status {
        400 => ("invalid_request_error", "INVALID_ARGUMENT"),
        401 => ("authentication_error", "UNAUTHENTICATED"),
        403 => ("permission_error", "PERMISSION_DENIED"),
        404 => ("not_found_error", "NOT_FOUND"),
        429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
        503 => ("api_error", "UNAVAILABLE"),
        529 => ("overloaded_error", "UNAVAILABLE"),
        _ => ("api_error", "INTERNAL"),
    }
}
