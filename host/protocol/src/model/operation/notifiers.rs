//! Notifiers, which send a message when something needs a person: the requests for them, and their
//! answers.

use schemars::JsonSchema;
use serde::Serialize;

/// Request for the notifiers of the configuration. For administrators only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifierRequest {
    /// Lists all notifiers.
    List,
    /// Sends a test message by this notifier now.
    Test(String),
}

impl NotifierRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List => "list_notifiers",
            Self::Test(_) => "test_notifier",
        }
    }
}

/// Answer to a [`NotifierRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NotifierAnswer {
    /// Notifiers of the configuration.
    List(Vec<NotifierInfo>),
    /// Result of a test message.
    Tested(NotifierTest),
}

/// Notifier of the configuration: an element of the answer to `hub/notifiers/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifierInfo {
    /// Name of the notifier.
    pub name: String,
    /// Way of its messages: `command`, `webhook` or `ntfy`.
    pub by: String,
    /// Program, or scheme, host and port of the server: the rest of a URL may be secret.
    pub target: String,
    /// Kinds of questions and notices.
    pub on: Vec<String>,
    /// Agents whose questions and notices count; all if absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Time for which a question must be open, or a notice unread, in milliseconds.
    pub after_ms: u64,
    /// End of the quiet hours, if they last now: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_until: Option<String>,
    /// Number of delivered messages.
    pub sent: u64,
    /// Time of the latest delivered message: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sent_at: Option<String>,
    /// Time of the next attempt to deliver a message that failed: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// Failure of the latest message; absent after one that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<NotifierFault>,
}

/// Failure of a notifier, until a message arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifierFault {
    /// Start of the failure: RFC 3339 in UTC.
    pub since: String,
    /// Reason.
    pub error: String,
    /// Number of messages that were given up since then.
    pub lost: u64,
}

/// Result of a test message: the answer to `hub/notifiers/test`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifierTest {
    /// Name of the notifier.
    pub name: String,
    /// Way of the message: `command`, `webhook` or `ntfy`.
    pub by: String,
    /// Program or server that got the message.
    pub target: String,
    /// True if the program ended with success, or the server confirmed the message.
    pub delivered: bool,
    /// Reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub took_ms: u64,
}
