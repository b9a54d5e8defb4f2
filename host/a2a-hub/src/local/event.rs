//! Events as callbacks receive them: in the log's form and in L-A2A's.

use a2a_hub_protocol::{
    dialect::EncodedEvent,
    event::TaskEvent,
    message::{Content, Message, Part},
    task::{Artifact, TaskState},
};
use serde_json::{Value, json};
use std::{fmt, sync::Arc};

/// An event of a task.
#[derive(Clone)]
pub struct TaskEventValue {
    /// Event in the form of the task's log, shared without copying.
    pub event: Arc<EncodedEvent>,
    /// All artifacts of the task, in its last event; none in an earlier one.
    artifacts: Arc<[Artifact]>,
}

/// Name of a task state in L-A2A; states that L-A2A lacks have their A2A names.
fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "pending",
        TaskState::Working => "running",
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::Rejected
        | TaskState::InputRequired
        | TaskState::AuthRequired
        | TaskState::Unknown => state.name(),
    }
}

impl TaskEventValue {
    pub(super) fn new(event: Arc<EncodedEvent>, artifacts: Arc<[Artifact]>) -> Self {
        Self { event, artifacts }
    }

    /// Returns the event in the form of L-A2A: `{"status": "running"}`, and finally `{"status":
    /// "completed", "artifacts": […]}`, with `message` if the agent sent one.
    pub fn to_value(&self) -> Value {
        let status_value = |state: TaskState, message: Option<&Message>| {
            let mut value = json!({ "status": word(state) });
            if let Some(message) = message {
                value["message"] = json!(message.joined_text());
            }
            if state.is_final() && !self.artifacts.is_empty() {
                value["artifacts"] =
                    self.artifacts.iter().flat_map(|it| &it.parts).map(part).collect();
            }
            value
        };
        match &self.event.event {
            TaskEvent::Created(created) => status_value(created.task.status.state, None),
            TaskEvent::Status(update) => {
                status_value(update.status.state, update.status.message.as_ref())
            }
            TaskEvent::Reply(message) => status_value(TaskState::Completed, Some(message)),
            TaskEvent::Artifact(update) => {
                let parts: Vec<_> = update.artifact.parts.iter().map(part).collect();
                json!({ "status": word(TaskState::Working), "artifacts": parts })
            }
            TaskEvent::Input(message) => json!({ "input": message.joined_text() }),
        }
    }
}

impl fmt::Display for TaskEventValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_value())
    }
}

/// Converts a part: data unchanged, a text as `{"text": …}`.
fn part(part: &Part) -> Value {
    match &part.content {
        Content::Data(data) => data.clone(),
        Content::Text(text) => json!({ "text": text }),
        Content::Url(url) => json!({ "url": url }),
        Content::Raw(bytes) => json!({ "bytes": bytes.len(), "mimeType": part.media_type }),
    }
}
