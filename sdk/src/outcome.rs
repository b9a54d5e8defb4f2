//! Statuses and outcomes: where a task stands, and how it ended.

use serde::Serialize;
use serde_json::{Value, json};

use crate::json::json as json_text;
use crate::{ArtifactUpdate, Event, Failure, Message, Outcome, TaskState, TaskStatus};

/// How a run ends: an outcome that the client is told, or why there is none.
pub type Run = Result<Outcome, Failure>;

impl TaskStatus {
    /// A status with a message for people.
    pub fn new(state: TaskState, text: impl Into<String>) -> Self {
        Self::saying(state, text.into())
    }

    /// A status with a message of any parts.
    pub fn saying(state: TaskState, message: impl Into<Message>) -> Self {
        Self { state, message: Some(message.into()), metadata: None }
    }

    /// Metadata to merge into the task's.
    #[must_use]
    pub fn with_metadata(mut self, metadata: &impl Serialize) -> Self {
        self.metadata = Some(json_text(metadata));
        self
    }
}

impl Outcome {
    /// The task is done.
    pub fn completed(text: impl Into<String>) -> Self {
        Self::Status(TaskStatus::new(TaskState::Completed, text))
    }

    /// The task failed: metadata `{"reason": reason}` for machines, a text for people.
    pub fn failed(reason: &str, text: impl Into<String>) -> Self {
        let status = TaskStatus::new(TaskState::Failed, text);
        Self::Status(status.with_metadata(&json!({ "reason": reason })))
    }

    /// The task will not be done.
    pub fn rejected(text: impl Into<String>) -> Self {
        Self::Status(TaskStatus::new(TaskState::Rejected, text))
    }

    /// What it says to people.
    pub fn text(&self) -> String {
        match self {
            Self::Message(message) => message.text(),
            Self::Status(status) => status.message.as_ref().map(Message::text).unwrap_or_default(),
        }
    }

    /// What is merged into the task's metadata; null for a direct answer, and where there is nothing.
    pub fn metadata(&self) -> Value {
        let metadata = match self {
            Self::Message(_) => None,
            Self::Status(status) => status.metadata.as_deref(),
        };
        metadata.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// The final state; none for a direct answer.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Message(_) => None,
            Self::Status(status) => Some(status.state),
        }
    }
}

impl Failure {
    /// What it says to people.
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
