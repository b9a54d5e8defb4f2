//! Tasks as clients see them: id, state, artifacts and history (A2A 1.0, sections 4.1.1 to 4.1.3).

use crate::model::{
    id::{ArtifactId, ContextId, TaskId},
    message::{Message, Metadata, Part},
};
use serde::{Deserialize, Serialize};

/// State of a task (A2A 1.0, section 4.1.3). The first four states are live, the next four final,
/// and the last one neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// The task was accepted and waits for its agent.
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    /// The agent works on the task.
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    /// The agent waits for the client's next message.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    /// The agent waits for the client to authenticate.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    /// The agent finished the task.
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    /// The agent gave up, or crashed.
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    /// The client cancelled the task.
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// The agent refused the task.
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// The state is not known: `unknown` in A2A 0.3, unspecified in 1.0. Remote servers may report
    /// it; tasks of this hub never have it.
    #[serde(rename = "TASK_STATE_UNSPECIFIED")]
    Unknown,
}

impl TaskState {
    /// All states, in the order of the enum.
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::Unknown,
    ];

    /// True if the task cannot change any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Submitted
            | Self::Working
            | Self::InputRequired
            | Self::AuthRequired
            | Self::Unknown => false,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
        }
    }

    /// True if the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Name of the state in A2A 0.3, in the hub's dialect and on the command line, such as
    /// `input-required`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
            Self::Unknown => "unknown",
        }
    }

    /// The state with this [`TaskState::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Status of a task (A2A 1.0, section 4.1.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// State of the task.
    pub state: TaskState,
    /// Message of the agent about the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Time of the change to this state: RFC 3339 in UTC with milliseconds, such as
    /// `2026-01-01T00:00:00.000Z`.
    pub timestamp: String,
}

/// An artifact of an agent, such as a file or an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Id of the artifact, unique within the task.
    pub artifact_id: ArtifactId,
    /// Name of the artifact, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description of the artifact, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Content of the artifact.
    pub parts: Vec<Part>,
    /// Custom metadata of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// URIs of the extensions that contributed to the artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

impl Artifact {
    /// Creates an artifact with an id and a content, and nothing else.
    pub fn new(artifact_id: ArtifactId, parts: Vec<Part>) -> Self {
        let (name, description, metadata) = Default::default();
        Self { artifact_id, name, description, parts, metadata, extensions: Vec::new() }
    }
}

/// A task with its status, artifacts and history (A2A 1.0, section 4.1.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id of the task, generated by the server.
    pub id: TaskId,
    /// Conversation of the task.
    pub context_id: ContextId,
    /// Current status of the task.
    pub status: TaskStatus,
    /// Artifacts in the order of their first chunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Messages of both sides, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// Custom metadata of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl Task {
    /// Truncates the history to the latest `length` messages.
    pub fn keep_latest(&mut self, length: usize) {
        self.history.drain(..self.history.len().saturating_sub(length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn task_states_round_trip_in_both_versions() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_name(state.name()), Some(state));
            assert_eq!(serde_json::from_value::<TaskState>(json!(state)).unwrap(), state);
        }
        assert_eq!(TaskState::from_name("unknown"), Some(TaskState::Unknown));
        assert_eq!(json!(TaskState::Unknown), "TASK_STATE_UNSPECIFIED");
        assert_eq!(TaskState::from_name("done"), None);
    }
}
