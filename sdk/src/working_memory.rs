//! Goal, thoughts, decisions, variables and items, as the hub tells them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A thought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thought {
    /// The thought, in words.
    pub content: String,
    /// When: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether it is never handed over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// What was to be decided.
    pub key: String,
    /// What was decided.
    pub value: Value,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether it is never handed over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Something remembered: `RecalledMemoryItem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryItem {
    /// Its name: another one of that name takes its place.
    pub id: String,
    /// `semantic` for facts, `episodic` for events, or another word.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Whatever it is.
    #[serde(default)]
    pub data: Value,
    /// What is said about it: `private` has it never handed over, `tags` are words that name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Goal, thoughts, decisions and variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkingMemory {
    /// What the agent is after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What it thought, oldest first.
    pub thoughts: Vec<Thought>,
    /// What it decided, oldest first, one a key.
    pub decisions: Vec<Decision>,
    /// Values by their names.
    pub variables: BTreeMap<String, Value>,
    /// The names of those that are never handed over.
    pub private_variables: Vec<String>,
}
