//! Dialect of Gemini CLI: its differences from other speakers of the Agent Client Protocol.

use a2a_hub_sdk::cli::acp::{DirectorySupport, Offered, Refusal, Speaker};
use a2a_hub_sdk::cli::{Cli as _, End, FailureReason, Job, Kind, Permissions};
use a2a_hub_sdk::serde_json::Value;

/// Agent that drives the CLI `gemini` for an A2A client.
pub struct Gemini;

impl Speaker for Gemini {
    const LOADS: bool = false;
    const DIRECTORIES: DirectorySupport = DirectorySupport::Arguments;
    const STARTS_SERVERS: Option<&'static str> = Some("only in a directory that its user trusts");

    fn vendor(&self) -> &str {
        "gemini"
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn sums_up(&self) -> bool {
        false
    }

    /// The adapter itself grants more than asking: the CLI has no other modes in an untrusted
    /// directory, whose hooks and servers it does not run.
    fn mode(&mut self, job: &Job, _: &Offered) -> Result<Option<String>, String> {
        let mode = match job.permissions {
            Permissions::ReadOnly => "plan",
            Permissions::Ask | Permissions::Edit | Permissions::Full => "default",
        };
        Ok(Some(mode.to_owned()))
    }

    fn end(&self, refusal: &Refusal) -> End {
        let text = refusal.text.as_str();
        match u16::try_from(refusal.code) {
            _ if refusal.code == -32000 || text.contains("API key not valid") => {
                End::LoginNeeded(text.into())
            }
            // Node's message for a broken connection.
            Ok(_) if text == "terminated" => End::failed(FailureReason::BrokenStream, text),
            Ok(status @ 400..600) => End::of_status(status, text),
            _ => End::failed(FailureReason::AgentError, text),
        }
    }

    /// Its permission to edit is a mode, which it has in trusted directories only.
    fn keeps_approval(&self, kind: Kind) -> bool {
        kind != Kind::Edit
    }

    /// After the second break of the model's stream, the CLI reports the end of the turn without
    /// any tokens.
    fn is_complete(&self, result: &Value) -> bool {
        let usage = result["_meta"]["quota"]["model_usage"].as_array();
        usage.is_none_or(|models| !models.is_empty())
    }

    /// The CLI writes this into the answer when an approval for the session changes its mode.
    fn is_remark(&self, text: &str) -> bool {
        text.starts_with("[MODE_UPDATE] ")
    }
}
