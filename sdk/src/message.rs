//! Messages, parts and tasks: making them and reading them.

use serde::Serialize;
use serde_json::Value;

use crate::json::json;
use crate::{Message, Part, PartContent, Role, Task};

impl Part {
    /// A part of any content.
    pub fn new(content: PartContent) -> Self {
        Self { content, filename: None, media_type: None, metadata: None }
    }

    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// Structured data, as JSON.
    pub fn data(value: &impl Serialize) -> Self {
        Self::new(PartContent::Data(json(value)))
    }

    /// The bytes of a file.
    pub fn file(name: impl Into<String>, media_type: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            filename: Some(name.into()),
            media_type: Some(media_type.into()),
            ..Self::new(PartContent::Raw(bytes))
        }
    }
}

impl Part {
    /// A file that is somewhere else.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(PartContent::Url(url.into()))
    }

    /// Says what a file of it would be called.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.filename = Some(name.into());
        self
    }

    /// Says its media type.
    #[must_use]
    pub fn of_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// Sets the metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: &impl Serialize) -> Self {
        self.metadata = Some(json(metadata));
        self
    }
}

impl Message {
    /// A message of this agent. The hub gives it an id.
    pub fn agent(parts: Vec<Part>) -> Self {
        Self::new(Role::Agent, parts)
    }

    /// A message to another agent, as from a user.
    pub fn user(parts: Vec<Part>) -> Self {
        Self::new(Role::User, parts)
    }

    /// A message without a word: a question that waits for its client and does not say to what, as in
    /// `ctx.ask(Message::nothing())`. The hub keeps a message with each question, so this one has a text, which is empty.
    pub fn nothing() -> Self {
        Self::from("")
    }

    fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            id: String::new(),
            role,
            parts,
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            extensions: Vec::new(),
            metadata: None,
        }
    }

    /// The text parts, one a line.
    pub fn text(&self) -> String {
        joined_text(&self.parts)
    }

    /// The first data part that is JSON.
    pub fn data(&self) -> Option<Value> {
        self.parts.iter().find_map(|part| match &part.content {
            PartContent::Data(json) => serde_json::from_str(json).ok(),
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
        })
    }

    /// What it says in terms of an extension: the member of its metadata that is named by the extension's URI.
    pub fn extension(&self, uri: &str) -> Option<Value> {
        let metadata: Value = serde_json::from_str(self.metadata.as_deref()?).ok()?;
        metadata.get(uri).cloned()
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Sets the metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: &impl Serialize) -> Self {
        self.metadata = Some(json(metadata));
        self
    }

    /// Names an extension of A2A that shaped it.
    #[must_use]
    pub fn with_extension(mut self, uri: impl Into<String>) -> Self {
        self.extensions.push(uri.into());
        self
    }

    /// Names another task that it speaks of.
    #[must_use]
    pub fn about(mut self, task_id: impl Into<String>) -> Self {
        self.reference_task_ids.push(task_id.into());
        self
    }
}

impl From<&str> for Message {
    /// A message of this agent.
    fn from(text: &str) -> Self {
        Self::agent(vec![Part::text(text)])
    }
}

impl From<String> for Message {
    /// A message of this agent.
    fn from(text: String) -> Self {
        Self::agent(vec![Part::text(text)])
    }
}

impl Task {
    /// The client's name for the message that this task is about. The hub sees to it that a message which comes again within its
    /// `idempotency_window_ms` is no second task, so an agent need not; it may name what it made for it by this.
    pub fn message_id(&self) -> &str {
        &self.message.id
    }

    /// The text parts of the message that this task is about, one a line.
    pub fn text(&self) -> String {
        self.message.text()
    }
}

pub(crate) fn joined_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.as_str()),
            PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_extension_has_its_place_in_the_metadata() {
        let message = Message::from("hi").with_metadata(&json!({ "urn:x": { "level": 3 } }));
        assert_eq!(message.extension("urn:x"), Some(json!({ "level": 3 })));
        assert_eq!(message.extension("urn:y"), None);
        assert_eq!(Message::from("hi").extension("urn:x"), None);
    }
}
