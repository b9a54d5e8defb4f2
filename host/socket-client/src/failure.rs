//! Error of a command: a line for people, one JSON object for programs.

use super::exit::{Exit, ExitScheme};
#[cfg(feature = "hub")]
use a2a_hub_authoring::{AuthoringError, FailureKind};
use a2a_hub_client::ClientError;
use a2a_hub_config::ConfigError;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_terminal::text::HELPS;
use serde_json::{Map, Value, json};
use std::io;

/// Prefix of every error line.
pub const BLAMES: &str = "error: ";

/// Nothing listens on the hub's socket.
pub const HUB_NOT_RUNNING: &str = "HUB_NOT_RUNNING";

/// No remote hub, or more than one, was joined, and none is named.
pub const HUB_NOT_JOINED: &str = "HUB_NOT_JOINED";

/// The hub accepts connections but does not answer.
pub const HUB_HANGS: &str = "HUB_HANGS";

/// The hub is starting, and serves nothing yet.
pub const HUB_STARTING: &str = "HUB_STARTING";

/// The hub closed the connection before it answered.
pub const CONNECTION_LOST: &str = "CONNECTION_LOST";

/// A stream ended before its task did; the state of the task is unknown.
pub const STREAM_ENDED: &str = "STREAM_ENDED";

/// The command line cannot be parsed.
const USAGE: &str = "USAGE";

/// The configuration is invalid.
const CONFIGURATION: &str = "CONFIGURATION_INVALID";

/// A remote agent cannot be reached, or its answer cannot be used.
const AGENT_UNREACHABLE: &str = "AGENT_UNREACHABLE";

/// The project does not compile.
pub const NOT_BUILT: &str = "BUILD_FAILED";

/// The key is missing or cannot be used.
pub const NO_KEY: &str = "KEY_UNUSABLE";

/// Any other failure.
const FAILED: &str = "COMMAND_FAILED";

/// Error with a stable reason for scripts and a command that fixes it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// JSON-RPC error code, if a hub or an agent returned the error.
    code: Option<i64>,
    /// Stable reason for programs.
    reason: String,
    /// The request, the rule that it breaks, and the way out.
    message: String,
    /// Command that fixes the error or continues the work.
    fix: Option<String>,
    /// Further facts, such as the task's id: members of the JSON object.
    known: Map<String, Value>,
}

impl CommandError {
    /// Creates an error of the command itself.
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.to_owned(), message.into());
        Self { code: None, reason, message, fix: None, known: Map::new() }
    }

    /// Creates a usage error.
    pub fn usage(message: String) -> Self {
        Self::new(USAGE, message)
    }

    /// Converts the error object of the hub's JSON-RPC response.
    pub fn refused(error: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            code: error["code"].as_i64(),
            reason: text(&error["data"]["reason"]).unwrap_or_else(|| FAILED.to_owned()),
            message: text(&error["message"]).unwrap_or_else(|| "it did not say why".to_owned()),
            fix: text(&error["data"]["fix"]),
            known: Map::new(),
        }
    }

    /// True if the error has this reason.
    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    /// True if the hub denies the operation to this caller, for example to a program that an agent
    /// started.
    pub fn is_denied(&self) -> bool {
        self.is(ErrorKind::PermissionDenied.reason()) || self.is(ErrorKind::Authentication.reason())
    }

    /// Sets the command that fixes the error.
    #[must_use]
    pub fn mended_by(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }

    /// Sets further facts: members of the JSON object.
    #[must_use]
    pub fn knowing(self, known: Map<String, Value>) -> Self {
        Self { known, ..self }
    }

    /// Appends text to the message.
    #[must_use]
    pub fn saying(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    /// Extracts the command error from any error: the outermost cause with a reason determines it,
    /// and the message contains the whole chain.
    pub fn from_error(why: &anyhow::Error) -> Self {
        let message = format!("{why:#}");
        let error = why.chain().find_map(|cause| {
            if let Some(Self { code, reason, fix, known, .. }) = cause.downcast_ref() {
                let (reason, fix, known) = (reason.clone(), fix.clone(), known.clone());
                return Some(Self { code: *code, reason, message: String::new(), fix, known });
            }
            #[cfg(feature = "hub")]
            if let Some(why) = cause.downcast_ref::<AuthoringError>() {
                let fix = why.fix().map(str::to_owned);
                return Some(Self { fix, ..Self::new(authoring(why.kind()), "") });
            }
            match cause.downcast_ref::<ClientError>() {
                Some(ClientError::Refused(A2aError { kind, .. })) => {
                    let code = Some(kind.hub_code().into());
                    return Some(Self { code, ..Self::new(kind.reason(), "") });
                }
                Some(_) => return Some(Self::new(AGENT_UNREACHABLE, "")),
                None => {}
            }
            cause.is::<ConfigError>().then(|| Self::new(CONFIGURATION, ""))
        });
        Self { message, ..error.unwrap_or_else(|| Self::new(FAILED, "")) }
    }

    /// Returns the JSON object for programs: `error`, the further facts, and the exit status of the
    /// process.
    fn to_json(&self, exit: Exit) -> Value {
        let Self { code, reason, message, fix, known } = self;
        let mut object = known.clone();
        let error = json!({ "code": code, "reason": reason, "message": message, "fix": fix });
        object.insert("error".to_owned(), error);
        object.insert("exit".to_owned(), json!(exit as u8));
        Value::Object(object)
    }
}

/// Maps a failure with a project or a component to its reason.
#[cfg(feature = "hub")]
fn authoring(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::NoProject => "NOT_A_PROJECT",
        FailureKind::Exists => "PROJECT_EXISTS",
        FailureKind::NoTool => "TOOL_MISSING",
        FailureKind::NotBuilt => NOT_BUILT,
        FailureKind::NoComponent => "NOT_A_COMPONENT",
        FailureKind::KeyMissing | FailureKind::KeyShared | FailureKind::KeyUnusable => NO_KEY,
        FailureKind::NoManifest => USAGE,
        FailureKind::Other => FAILED,
    }
}

/// Formats any error for people: the command that fixes it stands on a separate line.
pub fn to_text(why: &anyhow::Error) -> String {
    let CommandError { message, fix, .. } = CommandError::from_error(why);
    let help = fix.map(|fix| format!("\n{HELPS}{fix}")).unwrap_or_default();
    format!("{BLAMES}{message}{help}")
}

/// True if a command failed because the reader of its output closed the pipe.
pub fn is_broken_pipe(why: &anyhow::Error) -> bool {
    why.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Exit status for any error in this scheme.
pub fn status(why: &anyhow::Error, scheme: ExitScheme) -> u8 {
    if scheme == ExitScheme::Hub {
        return Exit::Fault as u8;
    }
    let of = CommandError::from_error(why);
    let unreachable = [
        HUB_NOT_RUNNING,
        HUB_NOT_JOINED,
        HUB_HANGS,
        HUB_STARTING,
        CONNECTION_LOST,
        AGENT_UNREACHABLE,
        ErrorKind::AgentNotFound.reason(),
    ];
    // Appendix E of the specification of `a2a-cli` 0.2.
    match &*of.reason {
        USAGE => 2,
        reason if unreachable.contains(&reason) => 3,
        reason if reason == ErrorKind::Authentication.reason() => 4,
        reason if reason == ErrorKind::PermissionDenied.reason() => 4,
        reason if reason == ErrorKind::Timeout.reason() => 5,
        _ => scheme.status(Exit::Fault, false),
    }
}

/// Converts any error to the JSON object for programs.
pub fn to_json(why: &anyhow::Error, exit: Exit) -> Value {
    CommandError::from_error(why).to_json(exit)
}

/// Converts a command-line error to the JSON object for programs.
pub fn usage(why: &clap::Error) -> Value {
    let message = why.render().to_string();
    let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim());
    CommandError::new(USAGE, message).mended_by("a2a-hub --help").to_json(Exit::Fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn failure_has_status_of_official_cli() {
        for (reason, code) in [
            (USAGE, 2),
            (HUB_NOT_RUNNING, 3),
            (HUB_NOT_JOINED, 3),
            ("AGENT_NOT_FOUND", 3),
            (AGENT_UNREACHABLE, 3),
            ("AUTHENTICATION_ERROR", 4),
            ("PERMISSION_DENIED", 4),
            ("TIMEOUT_ERROR", 5),
            ("TASK_NOT_FOUND", 1),
            (FAILED, 1),
        ] {
            let why = anyhow::Error::from(CommandError::new(reason, "no")).context("send");
            assert_eq!(status(&why, ExitScheme::A2a), code, "{reason}");
            assert_eq!(status(&why, ExitScheme::Hub), 2, "{reason}");
        }
    }

    #[test]
    fn failure_json_keeps_reason_of_cause() {
        let busy = json!({ "code": -32004, "message": "agent `echo` is busy: 8 run",
            "data": { "reason": "busy", "fix": "try later" } });
        let refused = || anyhow::Error::from(CommandError::refused(&busy));
        let unknown = ClientError::Refused(A2aError::no_task("t"));
        let told = [
            refused(),
            refused().context("send to `echo`"),
            anyhow::Error::from(unknown),
            anyhow::Error::from(ClientError::NotUrl("x".to_owned())),
            std::fs::File::open("/no/such/file").context("attach x").unwrap_err(),
            anyhow::Error::from(CommandError::new(STREAM_ENDED, "it ended").mended_by("look")),
        ];
        let told = told.map(|why| to_json(&why, Exit::Fault).to_string()).join("\n");
        insta::assert_snapshot!(told, @r#"
        {"error":{"code":-32004,"fix":"try later","message":"agent `echo` is busy: 8 run","reason":"busy"},"exit":2}
        {"error":{"code":-32004,"fix":"try later","message":"send to `echo`: agent `echo` is busy: 8 run","reason":"busy"},"exit":2}
        {"error":{"code":-32001,"fix":null,"message":"the agent refused: no task is called `t`","reason":"TASK_NOT_FOUND"},"exit":2}
        {"error":{"code":null,"fix":null,"message":"`x` is not a URL of an agent: it must begin with https:// or http://","reason":"AGENT_UNREACHABLE"},"exit":2}
        {"error":{"code":null,"fix":null,"message":"attach x: No such file or directory (os error 2)","reason":"COMMAND_FAILED"},"exit":2}
        {"error":{"code":null,"fix":"look","message":"it ended","reason":"STREAM_ENDED"},"exit":2}
        "#);
    }

    #[test]
    fn failure_json_includes_task_facts() {
        let known = Map::from_iter([("taskId".to_owned(), json!("t"))]);
        let why = CommandError::new(CONNECTION_LOST, "the hub hung up").mended_by("a2a-hub status");
        let why =
            CommandError::from_error(&why.into()).knowing(known).saying("; the task may go on");
        insta::assert_snapshot!(to_json(&why.into(), Exit::Fault), @r#"{"error":{"code":null,"fix":"a2a-hub status","message":"the hub hung up; the task may go on","reason":"CONNECTION_LOST"},"exit":2,"taskId":"t"}"#);
    }
}
