//! Limits of the lists that an agent can make long: artifacts, their parts, events, messages and
//! metadata of one task, over all its runs.
//!
//! The hub keeps a task in memory while it runs, folds it from its log, and sends it whole to each
//! client that reads it. An agent's own limits count one run; a task can have many.

use a2a_hub_protocol::{
    id::ArtifactId,
    message::{Content, Message, Metadata, Part},
    task::{Artifact, Task},
};
use serde_json::Value;
use std::collections::HashMap;

/// Limits of one task's lists. Sizes are in bytes of content: each part, message and member of
/// metadata counts [`ENTRY`] more, and each JSON value a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// Number of artifacts.
    pub artifacts: usize,
    /// Number of parts of all artifacts. Text that is appended to text is no further part.
    pub parts: usize,
    /// Size of all artifacts.
    pub artifact_bytes: u64,
    /// Number of members of the task's metadata.
    pub members: usize,
    /// Size of the task's metadata.
    pub metadata_bytes: u64,
    /// Number of messages in the task's history.
    pub messages: usize,
    /// Size of these messages.
    pub message_bytes: u64,
    /// Number of events in the task's log.
    pub events: u64,
}

/// Bytes that a part, a message or a member of metadata counts beside its content.
pub const ENTRY: u64 = 128;

impl Default for ListLimits {
    /// More than the longest tasks seen: a day of a coding agent has some thousand artifacts and
    /// messages, and half a million events.
    fn default() -> Self {
        Self {
            artifacts: 10_000,
            parts: 100_000,
            artifact_bytes: 64 << 20,
            members: 1_000,
            metadata_bytes: 4 << 20,
            messages: 10_000,
            message_bytes: 64 << 20,
            events: 1_000_000,
        }
    }
}

impl ListLimits {
    /// Limits for an agent that may emit this many events and bytes in a run: a run that uses up
    /// its own limits is never cut off by these numbers.
    pub fn for_runs_of(events: u64, output_bytes: u64) -> Self {
        let default = Self::default();
        Self {
            artifact_bytes: default.artifact_bytes.max(output_bytes),
            events: default.events.max(events),
            ..default
        }
    }
}

/// Error for an entry that one of the task's lists has no place for. The lists are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListFull {
    /// Too many artifacts.
    #[error(
        "emit the artifact `{id}`: the task has {limit} artifacts, the most that one task may have; append to an artifact \
         that it has, or use another task"
    )]
    Artifacts {
        /// Id of the artifact.
        id: ArtifactId,
        /// The limit.
        limit: usize,
    },
    /// Too many parts.
    #[error(
        "emit the artifact `{id}`: the artifacts of the task would have more than {limit} parts, the most that one task may \
         have; put more into each part, or append text to text"
    )]
    Parts {
        /// Id of the artifact.
        id: ArtifactId,
        /// The limit.
        limit: usize,
    },
    /// Artifacts too large.
    #[error(
        "emit the artifact `{id}`: the artifacts of the task would have more than {limit} bytes, the most that one task may \
         have; replace them by smaller ones, use another task, or let the operator raise `output_bytes` in the agent's \
         `limits`"
    )]
    ArtifactBytes {
        /// Id of the artifact.
        id: ArtifactId,
        /// The limit.
        limit: u64,
    },
    /// Too many members of metadata.
    #[error(
        "emit the metadata `{name}`: the metadata of the task has {limit} members, the most that one task may have; use the \
         names that it has, or remove some with null"
    )]
    Members {
        /// Name of the member.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// Metadata too large.
    #[error(
        "emit the metadata `{name}`: the metadata of the task would have more than {limit} bytes, the most that one task may \
         have; emit an artifact instead, or remove members with null"
    )]
    MetadataBytes {
        /// Name of the member.
        name: String,
        /// The limit.
        limit: u64,
    },
    /// History too long.
    #[error(
        "the task has {messages} messages of {bytes} bytes, and one task may have {max_messages} of {max_bytes}"
    )]
    Messages {
        /// Number of messages.
        messages: usize,
        /// Size of these messages.
        bytes: u64,
        /// Limit of messages.
        max_messages: usize,
        /// Limit of bytes.
        max_bytes: u64,
    },
    /// Log too long.
    #[error(
        "emit more: the task has {limit} events, the most that one task may have; end the run, and use another task, or let \
         the operator raise `events` in the agent's `limits`"
    )]
    Events {
        /// The limit.
        limit: u64,
    },
}

/// Number and size of the entries that a task's lists have.
#[derive(Clone, Debug)]
pub struct TaskLists {
    limits: ListLimits,
    artifacts: HashMap<ArtifactId, ArtifactSize>,
    /// Totals of all artifacts.
    parts: usize,
    artifact_bytes: u64,
    /// Sizes of the members of the task's metadata.
    members: HashMap<String, u64>,
    metadata_bytes: u64,
    events: u64,
}

/// Size of one artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ArtifactSize {
    parts: usize,
    bytes: u64,
    /// True if the last part takes appended text.
    ends_in_text: bool,
}

/// Entry that an agent adds to its task's lists.
#[derive(Clone, Copy, Debug)]
pub enum ListEntry<'a> {
    /// A chunk of an artifact; true if its parts are appended.
    Artifact(&'a Artifact, bool),
    /// Metadata of a status, which is merged into the task's.
    Status(Option<&'a Metadata>),
}

/// Change of a list that a later refusal takes back.
enum ListChange {
    Artifact(ArtifactId, Option<ArtifactSize>),
    Member(String, Option<u64>),
}

impl TaskLists {
    /// Counts the lists of a task whose log has `events` events.
    pub fn new(task: &Task, events: u64, limits: ListLimits) -> Self {
        let mut lists = Self {
            limits,
            artifacts: HashMap::new(),
            parts: 0,
            artifact_bytes: 0,
            members: HashMap::new(),
            metadata_bytes: 0,
            events,
        };
        for artifact in &task.artifacts {
            lists.set_artifact(&artifact.artifact_id, Some(ArtifactSize::new(artifact)));
        }
        for (name, value) in task.metadata.iter().flatten() {
            lists.set_member(name, Some(member_bytes(name, value)));
        }
        lists
    }

    /// Adds entries, all or none.
    ///
    /// # Errors
    ///
    /// If a list has no place for one of the entries. Entries that do not make a list longer are
    /// accepted even if the list, of an older version of the hub, is longer than its limit.
    pub fn add<'a>(
        &mut self,
        entries: impl IntoIterator<Item = ListEntry<'a>>,
    ) -> Result<(), ListFull> {
        let (mut undo, events) = (Vec::new(), self.events);
        for entry in entries {
            if let Err(full) = self.add_entry(entry, &mut undo) {
                self.events = events;
                for change in undo.into_iter().rev() {
                    match change {
                        ListChange::Artifact(id, size) => {
                            self.set_artifact(&id, size);
                        }
                        ListChange::Member(name, bytes) => {
                            self.set_member(&name, bytes);
                        }
                    }
                }
                return Err(full);
            }
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: ListEntry<'_>,
        undo: &mut Vec<ListChange>,
    ) -> Result<(), ListFull> {
        if self.events >= self.limits.events {
            return Err(ListFull::Events { limit: self.limits.events });
        }
        self.events += 1;
        match entry {
            ListEntry::Artifact(artifact, append) => self.add_artifact(artifact, append, undo),
            ListEntry::Status(None) => Ok(()),
            ListEntry::Status(Some(metadata)) => {
                // Removals come first, since they make room.
                let (removed, set): (Vec<_>, Vec<_>) =
                    metadata.iter().partition(|(_, value)| value.is_null());
                let mut members = removed.into_iter().chain(set);
                members.try_for_each(|(name, value)| self.add_member(name, value, undo))
            }
        }
    }

    fn add_artifact(
        &mut self,
        artifact: &Artifact,
        append: bool,
        undo: &mut Vec<ListChange>,
    ) -> Result<(), ListFull> {
        let Artifact { artifact_id, parts, .. } = artifact;
        let before = self.artifacts.get(artifact_id).copied();
        let now = match before.filter(|_| append) {
            Some(mut grown) => {
                grown.append(parts);
                grown
            }
            None => ArtifactSize::new(artifact),
        };
        let (old_parts, old_bytes) = (self.parts, self.artifact_bytes);
        undo.push(ListChange::Artifact(artifact_id.clone(), before));
        self.set_artifact(artifact_id, Some(now));
        let (id, limits) = (|| artifact_id.clone(), self.limits);
        if before.is_none() && self.artifacts.len() > limits.artifacts {
            return Err(ListFull::Artifacts { id: id(), limit: limits.artifacts });
        }
        if self.parts > limits.parts.max(old_parts) {
            return Err(ListFull::Parts { id: id(), limit: limits.parts });
        }
        if self.artifact_bytes > limits.artifact_bytes.max(old_bytes) {
            return Err(ListFull::ArtifactBytes { id: id(), limit: limits.artifact_bytes });
        }
        Ok(())
    }

    fn add_member(
        &mut self,
        name: &str,
        value: &Value,
        undo: &mut Vec<ListChange>,
    ) -> Result<(), ListFull> {
        // A null removes the member, as in RFC 7396.
        let now = (!value.is_null()).then(|| member_bytes(name, value));
        let (old_members, old_bytes) = (self.members.len(), self.metadata_bytes);
        let before = self.set_member(name, now);
        undo.push(ListChange::Member(name.to_owned(), before));
        let (name, limits) = (|| name.to_owned(), self.limits);
        if self.members.len() > limits.members.max(old_members) {
            return Err(ListFull::Members { name: name(), limit: limits.members });
        }
        if self.metadata_bytes > limits.metadata_bytes.max(old_bytes) {
            return Err(ListFull::MetadataBytes { name: name(), limit: limits.metadata_bytes });
        }
        Ok(())
    }

    /// Sets the size of an artifact, or removes it; returns the size before.
    fn set_artifact(&mut self, id: &ArtifactId, now: Option<ArtifactSize>) -> Option<ArtifactSize> {
        let before = match now {
            Some(now) => self.artifacts.insert(id.clone(), now),
            None => self.artifacts.remove(id),
        };
        let (old, new) = (before.unwrap_or_default(), now.unwrap_or_default());
        self.parts = self.parts - old.parts + new.parts;
        self.artifact_bytes = self.artifact_bytes - old.bytes + new.bytes;
        before
    }

    /// Sets the size of a member of the metadata, or removes it; returns the size before.
    fn set_member(&mut self, name: &str, now: Option<u64>) -> Option<u64> {
        let before = match now {
            Some(bytes) => self.members.insert(name.to_owned(), bytes),
            None => self.members.remove(name),
        };
        self.metadata_bytes = self.metadata_bytes - before.unwrap_or(0) + now.unwrap_or(0);
        before
    }
}

impl ArtifactSize {
    fn new(artifact: &Artifact) -> Self {
        let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        let texts = [name, description].into_iter().flatten().chain(extensions);
        let texts: usize = texts.map(String::len).sum();
        let bytes = ENTRY
            + count(artifact_id.as_str().len() + texts)
            + metadata.as_ref().map_or(0, metadata_bytes);
        let mut size = Self { parts: 0, bytes, ends_in_text: false };
        // A chunk that replaces an artifact keeps its parts as they are.
        for part in parts {
            size.ends_in_text = false;
            size.append(std::slice::from_ref(part));
        }
        size
    }

    /// Adds parts as `state::append_parts` does.
    fn append(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part { content: Content::Text(text), filename: None, metadata: None, .. }
                    if self.ends_in_text =>
                {
                    self.bytes += count(text.len());
                }
                Part { content, metadata, .. } => {
                    self.bytes += part_bytes(part);
                    self.parts += 1;
                    self.ends_in_text = matches!(content, Content::Text(_)) && metadata.is_none();
                }
            }
        }
    }
}

/// Number and size of a history's messages, counted as the history grows.
#[derive(Clone, Copy, Debug, Default)]
pub struct HistorySize {
    messages: usize,
    bytes: u64,
}

impl HistorySize {
    /// Counts the messages of a history.
    pub fn new(history: &[Message]) -> Self {
        let mut size = Self::default();
        size.update(history);
        size
    }

    /// Counts the messages that were added since the last count.
    pub fn update(&mut self, history: &[Message]) {
        let new = history.get(self.messages..).unwrap_or_default();
        self.bytes += new.iter().map(message_bytes).sum::<u64>();
        self.messages += new.len();
    }

    /// Refuses a question for which the history has no room, or none for its answer; or a further
    /// message.
    ///
    /// # Errors
    ///
    /// If the history is too long.
    pub fn require_capacity(self, limits: &ListLimits) -> Result<(), ListFull> {
        if self.messages + 2 <= limits.messages && self.bytes < limits.message_bytes {
            return Ok(());
        }
        Err(ListFull::Messages {
            messages: self.messages,
            bytes: self.bytes,
            max_messages: limits.messages,
            max_bytes: limits.message_bytes,
        })
    }
}

fn message_bytes(message: &Message) -> u64 {
    let parts: u64 = message.parts.iter().map(part_bytes).sum();
    let texts: usize = message.extensions.iter().map(String::len).sum();
    let tasks: usize = message.reference_task_ids.iter().map(|id| id.as_str().len()).sum();
    ENTRY + parts + count(texts + tasks) + message.metadata.as_ref().map_or(0, metadata_bytes)
}

fn part_bytes(part: &Part) -> u64 {
    let content = match &part.content {
        Content::Text(text) | Content::Url(text) => count(text.len()),
        Content::Raw(bytes) => count(bytes.len()),
        Content::Data(data) => json_bytes(data),
    };
    let texts = [&part.filename, &part.media_type].into_iter().flatten();
    let texts: usize = texts.map(String::len).sum();
    ENTRY + content + count(texts) + part.metadata.as_ref().map_or(0, metadata_bytes)
}

fn metadata_bytes(metadata: &Metadata) -> u64 {
    metadata.iter().map(|(name, value)| member_bytes(name, value)).sum()
}

fn member_bytes(name: &str, value: &Value) -> u64 {
    ENTRY + count(name.len()) + json_bytes(value)
}

/// Bytes that a JSON value counts beside its text, for quotes, separators and numbers.
const VALUE: u64 = 8;

/// Recursion is bounded, because the depth of JSON from agents is limited.
fn json_bytes(value: &Value) -> u64 {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => count(text.len()),
            Value::Array(items) => items.iter().map(json_bytes).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| count(name.len()) + json_bytes(value)).sum()
            }
        }
}

fn count(length: usize) -> u64 {
    length as u64
}

#[cfg(test)]
mod tests;
