//! The nouns: working memory, items, what changes them, and whose they are.

use crate::installation::InstallationId;
use a2a_hub_protocol::{id::ContextId, message::Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Thoughts that are kept; the oldest go when there are more.
pub const MAX_THOUGHTS: usize = 256;

/// Decisions that are kept; the oldest go when there are more.
pub const MAX_DECISIONS: usize = 256;

/// The bytes that a row of the store is charged beside what it holds: ids, its places in indices, and what is remembered of its use.
pub const ITEM_OVERHEAD: u64 = 128;

/// The bytes that each word of an item in the index is charged.
pub const WORD_OVERHEAD: u64 = 24;

/// Whose memory it is: nobody else's is found under these two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryPlace {
    /// The conversation, which is its tenant's.
    pub context: ContextId,
    /// The agent, as the operator let it in.
    pub owner: InstallationId,
}

/// What an agent has in mind in a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkingMemory {
    /// What it is after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What it thought, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// What it decided, oldest first, one a key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Values by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Value>,
    /// The names of those variables that are never handed over.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub private_variables: BTreeSet<String>,
}

/// A thought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thought {
    /// The thought, in words.
    pub content: String,
    /// When: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether it is never handed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What was to be decided.
    pub key: String,
    /// What was decided.
    pub value: Value,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether it is never handed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Something remembered, as it is recalled and as it is handed over: `RecalledMemoryItem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its name: another one of that name takes its place.
    pub id: String,
    /// `semantic` for facts, `episodic` for events, or the agent's own word.
    #[serde(rename = "type", default = "semantic")]
    pub kind: String,
    /// Whatever it is.
    #[serde(default)]
    pub data: Value,
    /// What is said about it. `private: true` has it never handed over, `tags` are words by which a task names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// What an item is that does not say.
pub fn semantic() -> String {
    "semantic".to_owned()
}

/// One change of what an agent has in mind.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It has another goal, or none.
    Goal(Option<String>),
    /// It thinks something. What it has thought in the same words stays as it is.
    Thought(Thought),
    /// It decides something, in place of what it decided under that key.
    Decide(Decision),
    /// A variable has another value; without one there is no such variable.
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: Option<Value>,
        /// Whether it is never handed over.
        private: bool,
    },
    /// An item is remembered, in place of what was remembered under its id.
    Remember(Item),
    /// An item is forgotten, if there is one of that id.
    Forget(String),
}

/// How much an agent may keep, in all conversations together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRoom {
    /// Bytes: of its values by key, of its working memories and of its items.
    pub max_bytes: u64,
    /// Items.
    pub max_items: u64,
}

impl WorkingMemory {
    /// Makes a change. What concerns an item changes nothing here.
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

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Item {
    /// Whether it is never handed over: it says so itself, or holds something that does, such as a message.
    pub fn is_private(&self) -> bool {
        let says = self.metadata.as_ref().is_some_and(says_private);
        says || holds_private(&self.data)
            || self.metadata.iter().any(|said| said.values().any(holds_private))
    }

    /// The words by which a task names it beside its id.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.metadata.as_ref().and_then(|said| said.get("tags")?.as_array());
        tags.into_iter().flatten().filter_map(Value::as_str)
    }
}

fn says_private(members: &Metadata) -> bool {
    members.get("private").is_some_and(|said| *said == Value::Bool(true))
}

/// Whether there is an object in it that says `private: true`. Data of a depth that was accepted does not exhaust the stack.
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
    fn an_item_has_the_shape_of_the_protocol_of_recalled_items() {
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
    fn the_oldest_thoughts_and_decisions_go() {
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
    fn what_says_private_anywhere_is_private() {
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
