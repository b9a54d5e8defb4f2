//! Goal, thoughts, decisions, variables and items, as the hub sends them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Thought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thought {
    /// Text of the thought.
    pub content: String,
    /// Time: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// True if the thought is never handed over to another agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Subject of the decision.
    pub key: String,
    /// Decided value.
    pub value: Value,
    /// Reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// True if the decision is never handed over to another agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Remembered item: `RecalledMemoryItem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryItem {
    /// Id of the item; a new item with the same id replaces it.
    pub id: String,
    /// Type: `semantic` for facts, `episodic` for events, or another word.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Content of any shape.
    #[serde(default)]
    pub data: Value,
    /// Metadata: `private` items are never handed over, `tags` are words that name the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Goal, thoughts, decisions and variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkingMemory {
    /// Goal of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Thoughts, oldest first.
    pub thoughts: Vec<Thought>,
    /// Decisions, oldest first, one per key.
    pub decisions: Vec<Decision>,
    /// Variables by name.
    pub variables: BTreeMap<String, Value>,
    /// Names of the variables that are never handed over.
    pub private_variables: Vec<String>,
}
