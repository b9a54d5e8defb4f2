//! Constructors and accessors of messages, parts and tasks.

use serde::Serialize;
use serde_json::Value;

use crate::json::json;
use crate::{Message, Part, PartContent, Role, Task};

impl Part {
    /// Creates a part with any content.
    pub fn new(content: PartContent) -> Self {
        Self { content, filename: None, media_type: None, metadata: None }
    }

    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// Creates a part with structured data, as JSON.
    pub fn data(value: &impl Serialize) -> Self {
        Self::new(PartContent::Data(json(value)))
    }

    /// Creates a part with the bytes of a file.
    pub fn file(name: impl Into<String>, media_type: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            filename: Some(name.into()),
            media_type: Some(media_type.into()),
            ..Self::new(PartContent::Raw(bytes))
        }
    }
}

impl Part {
    /// Creates a part that refers to a file by its URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(PartContent::Url(url.into()))
    }

    /// Sets the file name of the part.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.filename = Some(name.into());
        self
    }

    /// Sets the media type.
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
    /// Creates a message of this agent. The hub assigns its id.
    pub fn agent(parts: Vec<Part>) -> Self {
        Self::new(Role::Agent, parts)
    }

    /// Creates a message to another agent, with the role of a user.
    pub fn user(parts: Vec<Part>) -> Self {
        Self::new(Role::User, parts)
    }

    /// Creates a message without text: a question that does not say what it asks, as in
    /// `ctx.ask(Message::nothing())`. The hub stores a message with each question, so the message
    /// has one empty text.
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

    /// Text parts, joined by newlines.
    pub fn text(&self) -> String {
        joined_text(&self.parts)
    }

    /// First data part that is valid JSON.
    pub fn data(&self) -> Option<Value> {
        self.parts.iter().find_map(|part| match &part.content {
            PartContent::Data(json) => serde_json::from_str(json).ok(),
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
        })
    }

    /// Data of an extension: the metadata member that is named by the extension's URI.
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

    /// Adds the URI of an A2A extension that shaped the message.
    #[must_use]
    pub fn with_extension(mut self, uri: impl Into<String>) -> Self {
        self.extensions.push(uri.into());
        self
    }

    /// Adds a reference to another task.
    #[must_use]
    pub fn about(mut self, task_id: impl Into<String>) -> Self {
        self.reference_task_ids.push(task_id.into());
        self
    }
}

impl From<&str> for Message {
    /// Creates a message of this agent.
    fn from(text: &str) -> Self {
        Self::agent(vec![Part::text(text)])
    }
}

impl From<String> for Message {
    /// Creates a message of this agent.
    fn from(text: String) -> Self {
        Self::agent(vec![Part::text(text)])
    }
}

impl Task {
    /// Client's id of the message that began this task. The hub deduplicates messages with the same
    /// id within its `idempotency_window_ms`, so an agent need not. An agent can name its products
    /// by this id.
    pub fn message_id(&self) -> &str {
        &self.message.id
    }

    /// Directories in which the client wants the work done besides the working directory. The hub
    /// has checked that the agent's programs may work there.
    pub fn additional_directories(&self) -> Vec<String> {
        let facts = self.message.metadata.as_deref().unwrap_or_default();
        let facts: Value = serde_json::from_str(facts).unwrap_or_default();
        let named = facts["additionalDirectories"].as_array().into_iter().flatten();
        named.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Text parts of the message that began this task, joined by newlines.
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
    fn extension_data_is_read_from_metadata() {
        let message = Message::from("hi").with_metadata(&json!({ "urn:x": { "level": 3 } }));
        assert_eq!(message.extension("urn:x"), Some(json!({ "level": 3 })));
        assert_eq!(message.extension("urn:y"), None);
        assert_eq!(Message::from("hi").extension("urn:x"), None);
    }
}
