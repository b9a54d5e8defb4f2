//! What goes wrong in a turn, in Codex' words, and how that ends the run.

use a2a_hub_sdk::cli::{End, FailureReason};
use serde::Deserialize;
use serde_json::{Map, Value};

/// An error of a turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fault {
    message: String,
    /// A word, or an object whose one member is the word.
    #[serde(default)]
    codex_error_info: Value,
    additional_details: Option<String>,
}

impl Fault {
    /// The HTTP status with which the provider refused, where Codex tells it.
    pub(crate) fn status(&self) -> Option<u16> {
        let info = self.codex_error_info.as_object()?.values().next()?;
        info["httpStatusCode"].as_u64().and_then(|status| status.try_into().ok())
    }

    /// The message, without the JSON that a provider may have wrapped it in, and with its details.
    pub(crate) fn words(&self) -> String {
        let body: Value = serde_json::from_str(&self.message).unwrap_or_default();
        let message = body["error"]["message"].as_str().unwrap_or(&self.message);
        match &self.additional_details {
            Some(details) => format!("{message}: {details}"),
            None => message.to_owned(),
        }
    }

    /// The end of a turn that failed with it.
    pub(crate) fn end(&self, metadata: &Map<String, Value>) -> End {
        let text = self.words();
        let mut end = match self.kind() {
            "unauthorized" => End::LoginNeeded(text),
            // A provider of the user's own configuration, whose key is not there.
            _ if text.starts_with("Missing environment variable") => End::LoginNeeded(text),
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
        if let End::Failed { metadata: told, .. } = &mut end {
            told.clone_from(metadata);
        }
        end
    }

    fn kind(&self) -> &str {
        let of_object = || Some(self.codex_error_info.as_object()?.keys().next()?.as_str());
        self.codex_error_info.as_str().or_else(of_object).unwrap_or_default()
    }
}

/// Whether a thread could not be resumed because it is gone, or because its name never was one.
pub(crate) fn is_lost_thread(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    message.contains("no rollout found") || message.contains("invalid session id")
}
