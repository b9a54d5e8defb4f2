//! What each speaker of the protocol does in its own way.

use serde_json::Value;

use crate::cli::{Cli, End, Kind, Permissions};

/// A speaker of the protocol: what a vendor's program does in its own way.
pub trait Speaker: Cli {
    /// Whether it can load a session, so that one is worth remembering.
    const LOADS: bool;
    /// Whether what it tells of its usage is the sum over the session.
    const SUMS_UP: bool;

    /// What must be so for it to start the operator's MCP servers, where it leaves them out without a word otherwise.
    const STARTS_SERVERS: Option<&str> = None;

    /// The variable of its environment that chooses its model, where a choice within the protocol is kept for later sessions,
    /// or is overruled.
    const MODEL_VARIABLE: Option<&str> = None;

    /// Its mode for what the operator allows. Where it has no such mode, the run fails.
    fn mode(permissions: Permissions) -> &'static str;

    /// What an error means.
    fn end(refusal: &Refusal) -> End;

    /// Whether it keeps an approval for the session itself. Where it does not, we do.
    fn keeps_approval(_kind: Kind) -> bool {
        true
    }

    /// The prompt such that the program takes it for nothing but words.
    fn words(prompt: &str) -> String {
        plain(prompt)
    }

    /// Whether an answer that ended well is whole. Some programs end well when the model's stream broke.
    fn is_whole(_result: &Value) -> bool {
        true
    }

    /// Whether a text is a remark of the program's, and none of the model's.
    fn is_remark(_text: &str) -> bool {
        false
    }
}

/// An error in place of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// JSON-RPC's, the protocol's, an HTTP status or the vendor's own.
    pub code: i64,
    /// The vendor's words.
    pub text: String,
}

impl Refusal {
    pub(super) fn new(error: &Value) -> Self {
        let text = error["message"].as_str().unwrap_or("no message").to_owned();
        // "Internal error" tells nothing; what does is beside it.
        let text = error["data"]["details"].as_str().map_or(text, ToOwned::to_owned);
        // Google's errors come as JSON in the text.
        let inner = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let text = inner["error"]["message"].as_str().map_or(text, ToOwned::to_owned);
        Self { code: error["code"].as_i64().unwrap_or_default(), text }
    }
}

/// A prompt that is no command: at its beginning a slash, or gemini's dollar, would be one, also after white space. The
/// character before it is invisible, and to no program white space.
pub fn plain(prompt: &str) -> String {
    let word_joiner = if prompt.trim_start().starts_with(['/', '$']) { "\u{2060}" } else { "" };
    format!("{word_joiner}{prompt}")
}
