//! Ids of tasks, conversations, messages, artifacts, push configurations and agents, each a type of its own.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt};
use uuid::Uuid;

/// The longest id that a client may choose, in bytes.
pub const MAX_ID: usize = 128;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id that reads `name`.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// A fresh id, a version 7 UUID (RFC 9562): later ones sort after earlier ones.
            pub fn fresh() -> Self {
                Self(Uuid::now_v7().to_string())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// The id of a task, for as long as the hub remembers the task. Made by the hub, never by a client, unless the client is the
    /// program that holds the hub.
    TaskId
);
id!(
    /// The id of a conversation, which A2A calls a context: the tasks and messages that belong together.
    ContextId
);
id!(
    /// The id of a message, chosen by whoever speaks.
    MessageId
);
id!(
    /// The id of an artifact, unique within its task.
    ArtifactId
);
id!(
    /// The id of a question that a task asks its client: another one each time something is asked.
    QuestionId
);
id!(
    /// The id of a push configuration, which says where notifications of a task are sent; unique within that task.
    PushConfigId
);

/// The id of an agent of this hub: `^[a-z][a-z0-9-]{0,62}$`, so that it is safe in a path, a URL and a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

/// A text that cannot be the id of an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name an agent: use 1 to 63 lower-case letters, digits and hyphens, beginning with a letter"
)]
pub struct InvalidAgentId(String);

impl AgentId {
    /// The id that reads `name`, if an agent can be called that.
    pub fn parse(name: impl Into<String>) -> Result<Self, InvalidAgentId> {
        let name = name.into();
        let mut bytes = name.bytes();
        let begins = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
        let goes_on = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if begins && goes_on && name.len() <= 63 {
            Ok(Self(name))
        } else {
            Err(InvalidAgentId(name))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for AgentId {
    fn schema_name() -> Cow<'static, str> {
        "AgentId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$" })
    }
}

impl TryFrom<String> for AgentId {
    type Error = InvalidAgentId;

    fn try_from(name: String) -> Result<Self, InvalidAgentId> {
        Self::parse(name)
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ids_are_safe_everywhere() {
        for good in ["a", "echo", "git-historian", "gpt4", &"a".repeat(63)] {
            assert!(AgentId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "4gpt", "-a", "Echo", "a_b", "../a", "a/b", "a.b", "é", &"a".repeat(64)] {
            assert!(AgentId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fresh_ids_sort_by_age() {
        let ids: Vec<_> = (0..100).map(|_| TaskId::fresh()).collect();
        assert!(ids.is_sorted());
    }
}
