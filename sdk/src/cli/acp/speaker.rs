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

    /// True if the program itself keeps an approval for the session. Otherwise the driver does.
    fn keeps_approval(&self, _kind: Kind) -> bool {
        true
    }

    /// Escapes the prompt so that the program does not read it as a command.
    fn words(&self, prompt: &str) -> String {
        plain(prompt)
    }

    /// True if a successful answer is complete. Some programs report success after the model's
    /// stream broke.
    fn is_whole(&self, _result: &Value) -> bool {
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
        // "Internal error" says nothing; the details are in the data.
        let text = error["data"]["details"].as_str().map_or(text, ToOwned::to_owned);
        // Google's errors are JSON within the text.
        let inner = foreign::read(&text).unwrap_or_default();
        let text = inner["error"]["message"].as_str().map_or(text, ToOwned::to_owned);
        let code = foreign::whole(&error["code"]).unwrap_or_default();
        Self { code, text, data: error["data"].clone() }
    }
}

/// Prompt that is not read as a command. A slash or gemini's dollar at its beginning would be one,
/// also after white space. The invisible character put before it is not white space to any program.
pub fn plain(prompt: &str) -> String {
    let word_joiner = if prompt.trim_start().starts_with(['/', '$']) { "\u{2060}" } else { "" };
    format!("{word_joiner}{prompt}")
}
