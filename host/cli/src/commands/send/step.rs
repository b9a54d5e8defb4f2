//! Steps of a conversation at the terminal.

use crate::ui::render::text;
use serde_json::Value;

/// Next step of a conversation at the terminal.
pub(crate) enum SendStep {
    /// Sends the message.
    Send,
    /// Sends the message as the answer to a question of this task.
    Answer(String),
    /// Follows this task, whose question was closed.
    Watch(String),
    /// Shows this task, which has ended.
    Show(Value),
}

impl SendStep {
    /// Returns the step after the question of `task` was closed.
    pub(crate) fn after(task: Value) -> Self {
        match text(&task["status"]["state"]) {
            "completed" | "failed" | "canceled" | "rejected" => Self::Show(task),
            _ => Self::Watch(text(&task["id"]).to_owned()),
        }
    }
}
