//! Question of a task, for protocols that present it to a user in their own form.

use a2a_hub_protocol::{
    message::Content,
    question::{Question, QuestionKind},
    task::Task,
};
use serde_json::Value;

/// Maximum number of choices that are offered.
const MAX_CHOICES: usize = 10;

/// Id of a waiting task's question.
pub fn id(task: &Task) -> Option<String> {
    Question::of(task.metadata.as_ref()).map(|question| question.id.as_str().to_owned())
}

/// Kind of answer that a task waits for.
pub fn kind(task: &Task) -> QuestionKind {
    Question::of(task.metadata.as_ref()).map_or(QuestionKind::Input, |question| question.kind)
}

/// Text of a task's latest status message.
pub fn prompt(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.joined_text()).unwrap_or_default()
}

/// Data part of a task's latest status message, for programs.
pub fn data(task: &Task) -> Option<&Value> {
    let mut parts = task.status.message.iter().flat_map(|message| &message.parts);
    parts.find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
    })
}

/// Choices that the agent names with its question.
pub fn named_choices(task: &Task) -> Vec<String> {
    let named = data(task).and_then(|data| data["choices"].as_array()).into_iter().flatten();
    let named = named.filter_map(|choice| choice.as_str().map(str::to_owned));
    named.take(MAX_CHOICES).collect()
}

/// Choices that the agent offers with its question; by default, allow and deny.
pub fn choices(task: &Task) -> Vec<String> {
    let named = named_choices(task);
    if named.is_empty() { ["allow", "deny"].map(str::to_owned).to_vec() } else { named }
}
