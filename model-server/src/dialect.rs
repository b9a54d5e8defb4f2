//! What the vendors' protocols have in common: a prompt comes in, and a turn goes out.

use super::{parsed_request::ParsedRequest, plan::Plan, script::Script};
use serde_json::Value;
use uuid::Uuid;

/// One vendor's protocol.
pub(super) trait Dialect: Sync {
    /// What the request says.
    fn parse_request(&self, request: &Value) -> ParsedRequest;
    /// The turn as one JSON document.
    fn document(&self, turn: &Turn) -> Value;
    /// The turn as a stream of events.
    fn script(&self, turn: &Turn) -> Script;
    /// The body of an HTTP error.
    fn refusal(&self, status: u16, message: &str) -> Value;
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
