//! Question of a task, for protocols that present it to a user in their own form.

use a2a_hub_protocol::{
    question::{self, Question, QuestionKind},
    task::Task,
};
use serde_json::{Map, Value};

/// Maximum number of members of a form, and of its bytes as JSON.
const MAX_MEMBERS: usize = 20;
const MAX_FORM: usize = 16_384;

/// Id of a waiting task's question.
pub fn id(task: &Task) -> Option<String> {
    Question::from_metadata(task.metadata.as_ref()).map(|question| question.id.as_str().to_owned())
}

/// Kind of answer that a task waits for.
pub fn kind(task: &Task) -> QuestionKind {
    Question::from_metadata(task.metadata.as_ref())
        .map_or(QuestionKind::Input, |question| question.kind)
}

/// Text of a task's latest status message.
pub fn prompt(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.joined_text()).unwrap_or_default()
}

/// Data part of a task's latest status message, for programs.
pub fn data(task: &Task) -> Option<&Value> {
    question::data(task.status.message.as_ref()?)
}

/// Form that the agent offers with its question: a JSON schema of an object with flat members.
/// `None` without one, or if it is too large for a user.
pub fn form(task: &Task) -> Option<&Map<String, Value>> {
    let form = data(task)?["form"].as_object()?;
    let members = form.get("properties")?.as_object()?.len();
    let is_small = (1..=MAX_MEMBERS).contains(&members);
    (is_small && Value::from_iter(form.clone()).to_string().len() <= MAX_FORM).then_some(form)
}

/// Choices that the agent names with its question.
pub fn named_choices(task: &Task) -> Vec<String> {
    let prompt = task.status.message.as_ref();
    prompt.into_iter().flat_map(question::named_choices).map(str::to_owned).collect()
}

/// Choices that the agent offers with its question; by default, allow and deny.
pub fn choices(task: &Task) -> Vec<String> {
    let named = named_choices(task);
    if named.is_empty() { ["allow", "deny"].map(str::to_owned).to_vec() } else { named }
}
