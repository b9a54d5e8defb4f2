//! Errors of a turn in Codex's terms, and the resulting end of the run.

use a2a_hub_sdk::cli::{End, FailureReason};
use a2a_hub_sdk::foreign::{self, lenient_string, lenient_text};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Words with which Codex names the variable of a provider's key that is not set.
pub(crate) const MISSING_VARIABLE: &str = "Missing environment variable";

/// Error of a turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fault {
    #[serde(default, deserialize_with = "lenient_string")]
    message: String,
    /// Name of the error, or an object whose only member has the name.
    #[serde(default)]
    codex_error_info: Value,
    #[serde(default, deserialize_with = "lenient_text")]
    additional_details: Option<String>,
}

impl Fault {
    /// HTTP status of the provider's refusal, if Codex reports it.
    pub(crate) fn status(&self) -> Option<u16> {
        let info = self.codex_error_info.as_object()?.values().next()?;
        foreign::integer(&info["httpStatusCode"]).and_then(|status| status.try_into().ok())
    }

    /// Message with its details, unwrapped if the provider sent it as JSON.
    pub(crate) fn words(&self) -> String {
        let body = foreign::read(&self.message).unwrap_or_default();
        let message = body["error"]["message"].as_str().unwrap_or(&self.message);
        match &self.additional_details {
            Some(details) => format!("{message}: {details}"),
            None => message.to_owned(),
        }
    }

    /// End of a turn that failed with this error.
    pub(crate) fn end(&self, metadata: &Map<String, Value>) -> End {
        let text = self.words();
        let mut end = match self.kind() {
            "unauthorized" => End::LoginNeeded(text),
            // Provider of the user's own configuration whose key is not set.
            _ if text.starts_with(MISSING_VARIABLE) => End::LoginNeeded(text),
            "rateLimitExceeded" | "usageLimitExceeded" => {
                End::failed(FailureReason::RateLimited, text)
            }
            "serverOverloaded" => End::failed(FailureReason::Overloaded, text),
            "contextWindowExceeded" => End::failed(FailureReason::MaxTokens, text),
            "sessionBudgetExceeded" => End::failed(FailureReason::MaxBudget, text),
            "cyberPolicy"
            | "misalignmentPolicyViolation"
            | "inferenceHookDenied"
            | "tooManyDenials" => End::failed(FailureReason::Refused, text),
            "responseStreamDisconnected" => End::failed(FailureReason::BrokenStream, text),
            _ if text.starts_with("stream disconnected") => {
                End::failed(FailureReason::BrokenStream, text)
            }
            _ => End::of_status(self.status().unwrap_or_default(), text),
        };
        if let End::Failed { metadata: end_metadata, .. } = &mut end {
            end_metadata.clone_from(metadata);
        }
        end
    }

    fn kind(&self) -> &str {
        let of_object = || Some(self.codex_error_info.as_object()?.keys().next()?.as_str());
        self.codex_error_info.as_str().or_else(of_object).unwrap_or_default()
    }
}

/// True if a thread cannot be resumed because it does not exist, or its id is invalid.
pub(crate) fn is_lost_thread(error: &Value) -> bool {
    let message = foreign::text(error).unwrap_or_default();
    message.contains("no rollout found") || message.contains("invalid session id")
}
