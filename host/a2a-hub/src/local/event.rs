//! What a callback hears of a task: the event as the log has it, and as L-A2A tells it.

use a2a_hub_protocol::{
    dialect::HeardEvent,
    event::TaskEvent,
    message::{Content, Message, Part},
    task::{Artifact, TaskState},
};
use serde_json::{Value, json};
use std::{fmt, sync::Arc};

/// An event of a task.
#[derive(Clone)]
pub struct TaskEventValue {
    /// The event as the task's log has it. Shared, not copied.
    pub event: Arc<HeardEvent>,
    /// All that the agent made so far.
    artifacts: Arc<[Artifact]>,
}

/// The state of a task in the words of L-A2A; what L-A2A does not know is called as A2A calls it.
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
    pub(super) fn new(event: Arc<HeardEvent>, artifacts: Arc<[Artifact]>) -> Self {
        Self { event, artifacts }
    }

    /// The event as L-A2A tells it: `{"status": "running"}`, and at the end `{"status": "completed", "artifacts": […]}`, with
    /// `message` where something was said.
    pub fn to_value(&self) -> Value {
        let told = |state: TaskState, message: Option<&Message>| {
            let mut told = json!({ "status": word(state) });
            if let Some(message) = message {
                told["message"] = json!(message.joined_text());
            }
            if state.is_final() && !self.artifacts.is_empty() {
                told["artifacts"] =
                    self.artifacts.iter().flat_map(|it| &it.parts).map(part).collect();
            }
            told
        };
        match &self.event.event {
            TaskEvent::Created(created) => told(created.task.status.state, None),
            TaskEvent::Status(update) => told(update.status.state, update.status.message.as_ref()),
            TaskEvent::Reply(message) => told(TaskState::Completed, Some(message)),
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

/// A part as it is: data as data, a text as `{"text": …}`.
fn part(part: &Part) -> Value {
    match &part.content {
        Content::Data(data) => data.clone(),
        Content::Text(text) => json!({ "text": text }),
        Content::Url(url) => json!({ "url": url }),
        Content::Raw(bytes) => json!({ "bytes": bytes.len(), "mimeType": part.media_type }),
    }
}
