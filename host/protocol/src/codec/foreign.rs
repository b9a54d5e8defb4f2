//! Rules by which members of remote agents' answers are read. A form of another version is
//! accepted, a missing member that does not matter gets a default, and an unknown kind is skipped.

use crate::{
    codec::{
        json_path::{JsonPath, PartReader},
        members::Members,
    },
    model::{
        error::A2aError,
        id::MessageId,
        message::{Message, Part, Role},
        task::TaskState,
    },
};
use serde_json::Value;

/// Longest unknown name that a log line quotes, in characters.
const MAX_NAME: usize = 64;

/// Reads a part with `reader`; if `at` is tolerant, also one of the other forms, and a bare
/// text.
pub(crate) fn part(reader: PartReader, value: Value, at: JsonPath) -> Result<Part, A2aError> {
    let Some(others) = at.part_readers() else { return reader(value, at) };
    if let Value::String(text) = value {
        return Ok(Part::text(text));
    }
    let mut forms = std::iter::once(&reader).chain(others);
    let parsed = forms.find_map(|read| read(value.clone(), at.strict()).ok());
    parsed.map_or_else(|| reader(value, at), Ok)
}

/// Message that an agent wrote as a bare text.
pub(crate) fn message_of_text(value: &Value, at: &JsonPath) -> Option<Message> {
    let text = value.as_str().filter(|_| at.is_tolerant())?;
    Some(Message::text(Role::Agent, text))
}

/// Name in capitals with underscores, without the prefix of an enumeration of ProtoJSON.
fn bare_name(value: &Value, prefix: &str) -> Option<String> {
    let name = value.as_str()?.trim().to_ascii_uppercase().replace('-', "_");
    Some(name.strip_prefix(prefix).unwrap_or(&name).to_owned())
}

impl Members {
    /// Returns a required member; `default` to a tolerant reader if it is absent.
    pub(crate) fn need_or(
        &mut self,
        name: &str,
        default: impl Into<Value>,
    ) -> Result<Value, A2aError> {
        match self.take(name) {
            None if self.path().is_tolerant() => Ok(default.into()),
            None => Err(self.refuse(name, "is missing")),
            Some(value) => Ok(value),
        }
    }

    /// Returns a required, non-empty string; `default` to a tolerant reader if it is absent.
    pub(crate) fn need_or_text(&mut self, name: &str, default: &str) -> Result<String, A2aError> {
        if self.path().is_tolerant() {
            return Ok(self.some_text(name)?.unwrap_or_else(|| default.to_owned()));
        }
        self.need_text(name)
    }

    /// Returns a required id; a new one to a tolerant reader if it is absent.
    pub(crate) fn need_id(&mut self, name: &str) -> Result<String, A2aError> {
        let is_tolerant = self.path().is_tolerant();
        match self.need_or_text(name, "")? {
            id if id.is_empty() && is_tolerant => Ok(MessageId::fresh().as_str().to_owned()),
            id => Ok(id),
        }
    }

    /// State by its name in another version, for a tolerant reader.
    pub(crate) fn foreign_state(&self, value: &Value) -> Option<TaskState> {
        let name = bare_name(value, "TASK_STATE_").filter(|_| self.path().is_tolerant())?;
        let name = if name == "CANCELLED" { "CANCELED".to_owned() } else { name };
        TaskState::from_name(&name.to_ascii_lowercase().replace('_', "-"))
    }

    /// Role by its name in another version, for a tolerant reader.
    pub(crate) fn foreign_role(&self, value: &Value) -> Option<Role> {
        let name = bare_name(value, "ROLE_").filter(|_| self.path().is_tolerant())?;
        match name.as_str() {
            "USER" => Some(Role::User),
            "AGENT" | "ASSISTANT" => Some(Role::Agent),
            _ => None,
        }
    }

    /// Skips an unknown state; refuses it for this reason if the reader is strict.
    pub(crate) fn unknown_state(&self, state: &Value, why: &str) -> Result<TaskState, A2aError> {
        self.unknown("state", state, why).map(|()| TaskState::Unknown)
    }

    /// Skips an unknown role, since an answer is the agent's; refuses it for this reason if the
    /// reader is strict.
    pub(crate) fn unknown_role(&self, role: &Value, why: &str) -> Result<Role, A2aError> {
        self.unknown("role", role, why).map(|()| Role::Agent)
    }

    fn unknown(&self, name: &str, value: &Value, why: &str) -> Result<(), A2aError> {
        if self.path().is_tolerant() {
            let value: String = value.to_string().chars().take(MAX_NAME).collect();
            return self.path().skip(self.refuse(name, format!("{value} is unknown")));
        }
        Err(self.refuse(name, why))
    }

    /// Optional object that was read, or skipped.
    pub(crate) fn part_of<T>(
        &self,
        read: Option<Result<T, A2aError>>,
    ) -> Result<Option<T>, A2aError> {
        match read.transpose() {
            Err(why) => self.path().skip(why).map(|()| None),
            read => read,
        }
    }
}
