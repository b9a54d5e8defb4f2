//! Statuses and outcomes: the state of a task and its result.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json::json as json_text;
use crate::{ArtifactUpdate, Event, Failure, Message, Outcome, TaskState, TaskStatus};

/// Result of a run: an outcome for the client, or the failure that prevented one.
pub type Run = Result<Outcome, Failure>;

impl TaskStatus {
    /// Creates a status with a text for people.
    pub fn new(state: TaskState, text: impl Into<String>) -> Self {
        Self::saying(state, text.into())
    }

    /// Creates a status with a message of any parts.
    pub fn saying(state: TaskState, message: impl Into<Message>) -> Self {
        Self { state, message: Some(message.into()), metadata: None }
    }

    /// Creates a status without a message: only the state, and metadata if added.
    pub fn bare(state: TaskState) -> Self {
        Self { state, message: None, metadata: None }
    }

    /// Creates a progress status: state `working` with the metadata `{"progress": {"percent":
    /// percent}}`, capped at 100. An empty text is left out.
    pub fn progress(percent: u8, text: impl Into<String>) -> Self {
        let text = text.into();
        let status = Self::bare(TaskState::Working);
        let message = (!text.is_empty()).then(|| Message::from(text));
        let percent = json!({ "progress": { "percent": percent.min(100) } });
        Self { message, ..status }.with_metadata(&percent)
    }

    /// Sets the metadata to merge into the task's, an object. It replaces metadata set earlier.
    #[must_use]
    pub fn with_metadata(mut self, metadata: &impl Serialize) -> Self {
        self.metadata = Some(json_text(metadata));
        self
    }

    /// Adds a fix for a failure, such as a command, to the metadata: `{"fix": fix}`.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        let known = self.metadata.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let mut facts: Map<String, Value> = known.unwrap_or_default();
        facts.insert("fix".to_owned(), Value::String(fix.into()));
        self.metadata = Some(json_text(&facts));
        self
    }
}

impl Outcome {
    /// Completes the task.
    pub fn completed(text: impl Into<String>) -> Self {
        Self::Status(TaskStatus::new(TaskState::Completed, text))
    }

    /// Fails the task: metadata `{"reason": reason}` for machines, a text for people.
    pub fn failed(reason: &str, text: impl Into<String>) -> Self {
        let status = TaskStatus::new(TaskState::Failed, text);
        Self::Status(status.with_metadata(&json!({ "reason": reason })))
    }

    /// Adds a fix for a failure, such as a command, to the metadata: `{"fix": fix}`. `a2a-hub send`
    /// shows it below the text. A direct answer is returned unchanged.
    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        match self {
            Self::Status(status) => Self::Status(status.with_fix(fix)),
            Self::Message(_) => self,
        }
    }

    /// Rejects the task.
    pub fn rejected(text: impl Into<String>) -> Self {
        Self::Status(TaskStatus::new(TaskState::Rejected, text))
    }

    /// Text of the message for people.
    pub fn text(&self) -> String {
        match self {
            Self::Message(message) => message.text(),
            Self::Status(status) => status.message.as_ref().map(Message::text).unwrap_or_default(),
        }
    }

    /// Metadata to merge into the task's; null for a direct answer, and without metadata.
    pub fn metadata(&self) -> Value {
        let metadata = match self {
            Self::Message(_) => None,
            Self::Status(status) => status.metadata.as_deref(),
        };
        metadata.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// Final state; `None` for a direct answer.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Message(_) => None,
            Self::Status(status) => Some(status.state),
        }
    }
}

impl Failure {
    /// Text of the failure for people.
    pub fn text(&self) -> &str {
        match self {
            Self::Invalid(text)
            | Self::Unsupported(text)
            | Self::Denied(text)
            | Self::Unavailable(text)
            | Self::Exhausted(text)
            | Self::Internal(text) => text,
            Self::Cancelled => "the task was cancelled",
            Self::Timeout => "it took longer than it was given",
        }
    }
}

impl From<TaskStatus> for Outcome {
    fn from(status: TaskStatus) -> Self {
        Self::Status(status)
    }
}

impl From<TaskStatus> for Event {
    fn from(status: TaskStatus) -> Self {
        Self::Status(status)
    }
}

impl From<ArtifactUpdate> for Event {
    fn from(update: ArtifactUpdate) -> Self {
        Self::Artifact(update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_message_is_optional() {
        let bare = TaskStatus::bare(TaskState::Completed);
        assert_eq!((bare.message, bare.metadata), (None, None));
        let silent = TaskStatus::progress(7, "");
        assert_eq!((silent.state, silent.message), (TaskState::Working, None));
        let over = Outcome::from(TaskStatus::progress(255, "nearly"));
        assert_eq!(over.metadata(), json!({ "progress": { "percent": 100 } }));
        assert_eq!(over.text(), "nearly");
    }

    #[test]
    fn fix_is_added_beside_reason() {
        let failed = Outcome::failed("not_logged_in", "nobody is logged in").with_fix("x login");
        assert_eq!(failed.metadata(), json!({ "reason": "not_logged_in", "fix": "x login" }));
        assert_eq!(failed.text(), "nobody is logged in");
        assert_eq!(Outcome::rejected("no").with_fix("ask").metadata(), json!({ "fix": "ask" }));
        let answer = Outcome::Message(Message::from("hi"));
        assert_eq!(answer.with_fix("none").metadata(), Value::Null);
    }
}
