//! Vendor-specific behaviour of programs that speak the protocol.

use serde_json::Value;

use super::Offered;
use crate::cli::{End, FailureReason, Job, Kind};
use crate::foreign;

/// Way in which a program that speaks the protocol takes additional directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectorySupport {
    /// With a session, if it announces `sessionCapabilities.additionalDirectories`.
    Announced,
    /// With a session, though it does not announce it.
    Always,
    /// By its command line.
    Arguments,
}

/// End of a run that names additional directories, which the program with these capabilities does
/// not take; none if it takes them.
pub(super) fn without_directories<S: Speaker>(speaker: &S, can: &Value, job: &Job) -> Option<End> {
    let announced = &can["sessionCapabilities"]["additionalDirectories"];
    let lacks = S::DIRECTORIES == DirectorySupport::Announced && !announced.is_object();
    (lacks && !job.additional.is_empty()).then(|| {
        let text = format!(
            "{} works in one directory, and takes none besides it (`additionalDirectories`): it does not announce \
             `sessionCapabilities.additionalDirectories`. Leave them out, or name a working directory that contains them",
            speaker.name()
        );
        End::failed(FailureReason::AgentError, text)
    })
}

/// Vendor-specific behaviour of a program that speaks the protocol.
pub trait Speaker {
    /// True if the program can load a session where it says so, which makes the id worth storing.
    const LOADS: bool;

    /// True if the program writes something as soon as it has a prompt, so that a silent one hangs.
    /// Otherwise a request before the prompt finds out whether a reused program still answers.
    const ACKNOWLEDGES: bool = false;

    /// True if clients see the program's own choices for an approval beside yes and no.
    const SHOWS_CHOICES: bool = false;

    /// Condition under which it starts the operator's MCP servers, if it silently ignores them
    /// otherwise.
    const STARTS_SERVERS: Option<&str> = None;

    /// Environment variable that sets its model, for programs that store a choice made within the
    /// protocol for later sessions, or overrule it.
    const MODEL_VARIABLE: Option<&str> = None;

    /// True if the program may name logins that the operator runs in a terminal.
    const NAMES_TERMINAL_LOGINS: bool = false;

    /// Way in which it takes additional directories.
    const DIRECTORIES: DirectorySupport = DirectorySupport::Announced;

    /// Name of the program in the hub's rules: the vendor's word, such as `gemini`.
    fn vendor(&self) -> &str;

    /// True if the program asks for permission of a command before it reports the directory of the
    /// command, right behind the request.
    fn asks_before_report(&self) -> bool {
        false
    }

    /// Name for people.
    fn name(&self) -> &str;

    /// Takes note of the program's answer to `initialize`.
    fn greeted(&mut self, _result: &Value) {}

    /// Method by which the driver asks the program to log in, if it opens no session without.
    fn login_method(&self) -> Option<&str> {
        None
    }

    /// True if the usage that it reports is cumulative over the session.
    fn sums_up(&self) -> bool;

    /// Mode of the program for a run; `None` keeps the program's own. If the program does not have
    /// it, or on an error, the run fails.
    fn mode(&mut self, job: &Job, offered: &Offered) -> Result<Option<String>, String>;

    /// Maps an error to the end of the run.
    fn end(&self, refusal: &Refusal) -> End;

    /// Maps an error of [`login_method`](Self::login_method) to the end of the run.
    fn login_failed(&self, refusal: &Refusal) -> End {
        End::LoginNeeded(refusal.text.clone())
    }

    /// True if the program itself keeps an approval for the session. Otherwise none is offered.
    fn keeps_approval(&self, _kind: Kind) -> bool {
        true
    }

    /// Escapes the prompt so that the program does not read it as a command.
    fn words(&self, prompt: &str) -> String {
        plain(prompt)
    }

    /// True if a successful answer is complete. Some programs report success after the model's
    /// stream broke.
    fn is_complete(&self, _result: &Value) -> bool {
        true
    }

    /// True if a text is a remark of the program itself, not of the model.
    fn is_remark(&self, _text: &str) -> bool {
        false
    }
}

/// JSON-RPC error response.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Code of JSON-RPC or of the protocol, an HTTP status, or the vendor's own code.
    pub code: i64,
    /// Text of the vendor.
    pub text: String,
    /// Further data of the error.
    pub data: Value,
}

impl Refusal {
    pub(super) fn new(error: &Value) -> Self {
        let text = foreign::text(error).unwrap_or("no message".into()).into_owned();
        let text = with_reason(text, &error["data"]);
        // Google's errors are JSON within the text.
        let inner = foreign::read(&text).unwrap_or_default();
        let text = inner["error"]["message"].as_str().map_or(text, ToOwned::to_owned);
        let code = foreign::integer(&error["code"]).unwrap_or_default();
        Self { code, text, data: error["data"].clone() }
    }
}

/// Messages of JSON-RPC errors that give no reason (JSON-RPC 2.0, section 5.1, and of SDKs).
const GENERIC: [&str; 9] = [
    "internal error",
    "server error",
    "unknown error",
    "invalid request",
    "invalid params",
    "invalid parameters",
    "resource not found",
    "error",
    "no message",
];

/// Maximum length of the JSON of an error's data that is shown in place of a reason.
const MAX_DATA: usize = 400;

/// Message of an error with the reason in its data. A message that says nothing is replaced.
fn with_reason(message: String, data: &Value) -> String {
    let plain = message.trim().trim_end_matches(['.', ':']).to_lowercase();
    let is_generic = GENERIC.contains(&plain.as_str());
    match reason(data) {
        Some(reason) if message.contains(&*reason) => message,
        Some(reason) if is_generic => reason,
        Some(reason) => format!("{message}: {reason}"),
        None if is_generic && is_filled(data) => {
            let json = data.to_string();
            let end = json.floor_char_boundary(MAX_DATA);
            format!("{message}: {}{}", &json[..end], if end < json.len() { "…" } else { "" })
        }
        None => message,
    }
}

/// Reason in an error's data: a text, or that of the first member known to hold one.
fn reason(data: &Value) -> Option<String> {
    const MEMBERS: [&str; 7] =
        ["details", "detail", "message", "reason", "description", "error", "cause"];
    let text = match data {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => {
            MEMBERS.iter().find_map(|name| members.get(*name).and_then(reason))
        }
        Value::Array(items) => items.iter().find_map(reason),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    };
    text.filter(|text| !text.trim().is_empty())
}

/// True for data with any content.
fn is_filled(data: &Value) -> bool {
    match data {
        Value::Null | Value::String(_) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Prompt that is not read as a command. A slash or gemini's dollar at its beginning would be one,
/// also after white space. The invisible character put before it is not white space to any program.
pub fn plain(prompt: &str) -> String {
    let word_joiner = if prompt.trim_start().starts_with(['/', '$']) { "\u{2060}" } else { "" };
    format!("{word_joiner}{prompt}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reason_in_error_data_is_shown() {
        for (message, data, wanted) in [
            ("Internal error", json!({ "details": "no model gpt-x" }), "no model gpt-x"),
            ("Internal error", json!("quota exceeded"), "quota exceeded"),
            ("Internal error", json!({ "error": { "message": "overloaded" } }), "overloaded"),
            ("Internal error.", json!({ "message": "no credit left" }), "no credit left"),
            ("Invalid params", json!([{ "message": "cwd: required" }]), "cwd: required"),
            ("Internal error", json!({ "errorName": "X" }), r#"Internal error: {"errorName":"X"}"#),
            ("Internal error", json!({ "details": " " }), r#"Internal error: {"details":" "}"#),
            ("Internal error", json!(null), "Internal error"),
            (
                "cannot read a.txt",
                json!({ "reason": "no such file" }),
                "cannot read a.txt: no such file",
            ),
            ("rate limit: wait", json!({ "details": "rate limit" }), "rate limit: wait"),
            ("rate limit", json!({ "provider": "p" }), "rate limit"),
        ] {
            let error = json!({ "code": "-32603", "message": message, "data": data });
            let refusal = Refusal::new(&error);
            assert_eq!((refusal.text.as_str(), refusal.code), (wanted, -32603), "{data}");
        }
        let google = json!({ "message": "{\"error\":{\"code\":400,\"message\":\"bad\"}}" });
        assert_eq!(Refusal::new(&google).text, "bad");
        let long = Refusal::new(
            &json!({ "message": "Internal error", "data": { "x": "y".repeat(MAX_DATA) } }),
        );
        assert!(long.text.ends_with('…') && long.text.len() < MAX_DATA + 40, "{}", long.text);
    }
}
