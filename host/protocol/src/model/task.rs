//! Tasks as clients see them: identity, state, and what came of the work (A2A 1.0, sections 4.1.1 to 4.1.3).

use crate::model::{
    id::{ArtifactId, ContextId, TaskId},
    message::{Message, Metadata, Part},
};
use serde::{Deserialize, Serialize};

/// The state of a task (A2A 1.0, section 4.1.3). The first four are live, the next four final, and the last is neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// Accepted, and waiting for an agent.
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    /// An agent is at work on it.
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    /// The agent waits for the client's next message.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    /// The agent waits for the client to prove who it is.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    /// The agent did what it was to do.
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    /// The agent gave up, or broke.
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    /// The client cancelled it.
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// The agent would not take it.
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// Nobody says: `unknown` in A2A 0.3, unspecified in 1.0. Other servers may tell it of their tasks; none of this
    /// hub's ever comes there.
    #[serde(rename = "TASK_STATE_UNSPECIFIED")]
    Unknown,
}

impl TaskState {
    /// Every state, in the order of the enum.
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

    /// Whether nothing more can happen to the task.
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

    /// Whether the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// The state's name in A2A 0.3, in the hub's dialect and on the command line, such as `input-required`.
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

    /// The state that [`TaskState::name`] calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The status of a task: its state, since when, and what the agent says about that (A2A 1.0, section 4.1.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Where the task is in its life.
    pub state: TaskState,
    /// What the agent says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Since when the task has been in that state: RFC 3339 in UTC with milliseconds, such as `2026-01-01T00:00:00.000Z`.
    pub timestamp: String,
}

/// An artifact: something that an agent made, such as a file or an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The artifact's id, unique within the task.
    pub artifact_id: ArtifactId,
    /// The artifact's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the artifact is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the artifact holds.
    pub parts: Vec<Part>,
    /// Open-ended facts about the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// URIs of the extensions that shaped the artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

/// A task: one piece of work, with everything that came of it so far (A2A 1.0, section 4.1.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The task's id, made by the server.
    pub id: TaskId,
    /// The conversation that the task belongs to.
    pub context_id: ContextId,
    /// Where the task stands.
    pub status: TaskStatus,
    /// What the agent made, in the order in which it began each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The messages of both sides, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// Open-ended facts about the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl Task {
    /// Leaves out all messages but the latest `length`.
    pub fn keep_latest(&mut self, length: usize) {
        self.history.drain(..self.history.len().saturating_sub(length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nine_states_have_names_in_both_versions() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_name(state.name()), Some(state));
            assert_eq!(serde_json::from_value::<TaskState>(json!(state)).unwrap(), state);
        }
        assert_eq!(TaskState::from_name("unknown"), Some(TaskState::Unknown));
        assert_eq!(json!(TaskState::Unknown), "TASK_STATE_UNSPECIFIED");
        assert_eq!(TaskState::from_name("done"), None);
    }
}
