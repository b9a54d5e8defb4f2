//! Data model of the context memory: working memory, items, changes, and the key of a memory.

use crate::plugin::installation::InstallationId;
use a2a_hub_protocol::{id::ContextId, message::Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of thoughts; the oldest are dropped.
pub const MAX_THOUGHTS: usize = 256;

/// Maximum number of decisions; the oldest are dropped.
pub const MAX_DECISIONS: usize = 256;

/// Bytes charged for a stored row in addition to its contents: ids, index entries, and usage data.
pub const ITEM_OVERHEAD: u64 = 128;

/// Bytes charged for each indexed word of an item.
pub const WORD_OVERHEAD: u64 = 24;

/// Key of a memory; unique per context and agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryKey {
    /// Context, which belongs to one tenant.
    pub context: ContextId,
    /// Installation of the agent.
    pub owner: InstallationId,
}

/// Working memory of an agent in a context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkingMemory {
    /// Goal of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Thoughts, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// Decisions, oldest first, one for each key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Variables by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Value>,
    /// Names of the variables that are never inherited.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub private_variables: BTreeSet<String>,
}

/// Thought of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thought {
    /// Text of the thought.
    pub content: String,
    /// Time: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// True if it is never inherited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Decision of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Subject of the decision.
    pub key: String,
    /// Result of the decision.
    pub value: Value,
    /// Reason for the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// True if it is never inherited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Item of the memory, in the form in which it is recalled and inherited: `RecalledMemoryItem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Id of the item: a new item replaces an old one with the same id.
    pub id: String,
    /// `semantic` for facts, `episodic` for events, or the agent's own word.
    #[serde(rename = "type", default = "semantic")]
    pub kind: String,
    /// Content of the item.
    #[serde(default)]
    pub data: Value,
    /// Metadata of the item. With `private: true` it is never inherited; `tags` are words by which
    /// a task names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Default type of an item.
pub fn semantic() -> String {
    "semantic".to_owned()
}

/// Change of an agent's context memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Sets or clears the goal.
    Goal(Option<String>),
    /// Adds a thought. A thought with the same text and the same privacy is not added again.
    Thought(Thought),
    /// Sets a decision, replacing an earlier one with the same key.
    Decide(Decision),
    /// Sets a variable, or removes it if `value` is `None`.
    Variable {
        /// Name of the variable.
        name: String,
        /// New value.
        value: Option<Value>,
        /// True if the variable is never inherited.
        private: bool,
    },
    /// Stores an item, replacing an earlier one with the same id.
    Remember(Item),
    /// Deletes the item with this id, if it exists.
    Forget(String),
}

/// Capacity of an agent's memory, for all contexts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCapacity {
    /// Limit in bytes, for its values by key, its working memories and its items.
    pub max_bytes: u64,
    /// Limit of items.
    pub max_items: u64,
}

impl WorkingMemory {
    /// Applies a change. Changes of items have no effect here.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Goal(goal) => self.goal.clone_from(goal),
            Change::Thought(thought) => {
                let known = |known: &Thought| {
                    known.content == thought.content && known.private == thought.private
                };
                if !self.thoughts.iter().any(known) {
                    self.thoughts.push(thought.clone());
                    let over = self.thoughts.len().saturating_sub(MAX_THOUGHTS);
                    self.thoughts.drain(..over);
                }
            }
            Change::Decide(decision) => {
                self.decisions.retain(|known| known.key != decision.key);
                self.decisions.push(decision.clone());
                let over = self.decisions.len().saturating_sub(MAX_DECISIONS);
                self.decisions.drain(..over);
            }
            Change::Variable { name, value, private } => {
                match value {
                    Some(value) => self.variables.insert(name.clone(), value.clone()),
                    None => self.variables.remove(name),
                };
                if value.is_some() && *private {
                    self.private_variables.insert(name.clone());
                } else {
                    self.private_variables.remove(name);
                }
            }
            Change::Remember(_) | Change::Forget(_) => {}
        }
    }

    /// True if the working memory is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Item {
    /// True if it is never inherited: its metadata says so, or it contains a private object, such
    /// as a message.
    pub fn is_private(&self) -> bool {
        let says = self.metadata.as_ref().is_some_and(says_private);
        says || holds_private(&self.data)
            || self.metadata.iter().any(|metadata| metadata.values().any(holds_private))
    }

    /// Words by which a task names it in addition to its id.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.metadata.as_ref().and_then(|metadata| metadata.get("tags")?.as_array());
        tags.into_iter().flatten().filter_map(Value::as_str)
    }
}

fn says_private(members: &Metadata) -> bool {
    members.get("private").is_some_and(|value| *value == Value::Bool(true))
}

/// True if the data contains an object with `private: true`. Validated data is not nested deeply
/// enough to overflow the stack.
fn holds_private(data: &Value) -> bool {
    match data {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => items.iter().any(holds_private),
        Value::Object(members) => says_private(members) || members.values().any(holds_private),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn item_serializes_as_recalled_memory_item() {
        let wire = json!({"id": "fact1", "type": "semantic", "data": {"info": "details"}, "metadata": {"score": 0.9}});
        let item: Item = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!((item.id.as_str(), item.kind.as_str()), ("fact1", "semantic"));
        assert_eq!(serde_json::to_value(&item).unwrap(), wire);
        let bare: Item = serde_json::from_value(json!({"id": "x"})).unwrap();
        assert_eq!(
            serde_json::to_value(&bare).unwrap(),
            json!({"id": "x", "type": "semantic", "data": null})
        );
    }

    #[test]
    fn working_memory_follows_its_changes() {
        let mut memory = WorkingMemory::default();
        let think = |content: &str| {
            Change::Thought(Thought { content: content.to_owned(), ..Thought::default() })
        };
        let decide = |key: &str, value: Value| {
            Change::Decide(Decision { key: key.to_owned(), value, ..Decision::default() })
        };
        let set = |value, private| Change::Variable { name: "v".to_owned(), value, private };
        let changes = [
            Change::Goal(Some("ship".to_owned())),
            think("one"),
            think("two"),
            think("one"),
            decide("db", json!("sqlite")),
            decide("lang", json!("rust")),
            decide("db", json!("postgres")),
            set(Some(json!(1)), true),
            Change::Forget("nothing".to_owned()),
        ];
        changes.iter().for_each(|change| memory.apply(change));
        let wire = json!({
            "goal": "ship",
            "thoughts": [{"content": "one"}, {"content": "two"}],
            "decisions": [{"key": "lang", "value": "rust"}, {"key": "db", "value": "postgres"}],
            "variables": {"v": 1},
            "privateVariables": ["v"],
        });
        assert_eq!(serde_json::to_value(&memory).unwrap(), wire);
        memory.apply(&set(Some(json!(2)), false));
        assert!(memory.private_variables.is_empty());
        memory.apply(&set(None, true));
        assert!(memory.variables.is_empty() && memory.private_variables.is_empty());
    }

    #[test]
    fn oldest_thoughts_and_decisions_are_dropped() {
        let mut memory = WorkingMemory::default();
        for n in 0..MAX_THOUGHTS + 5 {
            memory
                .apply(&Change::Thought(Thought { content: n.to_string(), ..Thought::default() }));
            let decision = Decision { key: n.to_string(), ..Decision::default() };
            memory.apply(&Change::Decide(decision));
        }
        assert_eq!((memory.thoughts.len(), memory.decisions.len()), (MAX_THOUGHTS, MAX_DECISIONS));
        assert_eq!((&*memory.thoughts[0].content, &*memory.decisions[0].key), ("5", "5"));
    }

    #[test]
    fn private_marker_at_any_depth_counts() {
        let item = |data, metadata: Value| {
            let metadata = metadata.as_object().cloned();
            Item { id: "i".to_owned(), kind: semantic(), data, metadata }
        };
        let message =
            json!({"role": "ROLE_USER", "parts": [{"text": "x"}], "metadata": {"private": true}});
        assert!(item(json!(1), json!({"private": true})).is_private());
        assert!(item(json!([{"said": message}]), json!({})).is_private());
        assert!(item(json!(1), json!({"source": {"private": true}})).is_private());
        assert!(!item(json!({"private": "a word"}), json!({"private": false})).is_private());
    }
}
