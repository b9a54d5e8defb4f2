//! Stage 1, acquisition: validates changes of the memory, and leaves out private parts of an
//! inheritance.

use super::{
    encoding::encoded_bytes,
    model::{Change, Item, WorkingMemory},
};
use a2a_hub_protocol::message::MAX_DEPTH;
use serde_json::Value;

/// Maximum length of an item's id, a decision's key and a variable's name, in bytes.
pub const MAX_NAME: usize = 256;

/// Maximum length of an item's type, in bytes.
pub const MAX_KIND: usize = 64;

/// Maximum length of a goal, a thought and a reason, in bytes.
pub const MAX_TEXT: usize = 16 << 10;

/// Maximum size of a decision's or variable's value, and of an item's data and metadata, in bytes
/// of JSON.
pub const MAX_DATA: usize = 256 << 10;

/// Reason why a change is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// A name is empty, too long, or contains control characters.
    #[error("{label} is 1 to {max_bytes} bytes long and has no control characters")]
    Name {
        /// Kind of the name.
        label: &'static str,
        /// Maximum length in bytes.
        max_bytes: usize,
    },
    /// A text or a value is too large.
    #[error(
        "{label} is {bytes} bytes long: it may have {max_bytes}; keep what is larger in a file, or in several items"
    )]
    Large {
        /// Kind of the value.
        label: &'static str,
        /// Actual size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        max_bytes: usize,
    },
    /// A value is nested too deeply.
    #[error("{0} is nested more than {MAX_DEPTH} deep")]
    Deep(&'static str),
}

/// Number of parts that were left out because they are private.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Private {
    /// Number of thoughts.
    pub thoughts: usize,
    /// Number of decisions.
    pub decisions: usize,
    /// Number of variables.
    pub variables: usize,
    /// Number of items.
    pub items: usize,
}

/// Validates a change.
pub fn sound(change: &Change) -> Result<(), Unsound> {
    match change {
        Change::Goal(goal) => goal.iter().try_for_each(|goal| text("a goal", goal)),
        Change::Thought(thought) => text("a thought", &thought.content),
        Change::Decide(decision) => {
            name("the key of a decision", &decision.key, MAX_NAME)?;
            value("the value of a decision", &decision.value)?;
            decision.reason.iter().try_for_each(|reason| text("the reason of a decision", reason))
        }
        Change::Variable { name: of, value: to, .. } => {
            name("the name of a variable", of, MAX_NAME)?;
            to.iter().try_for_each(|to| value("the value of a variable", to))
        }
        Change::Remember(item) => {
            name("the id of an item", &item.id, MAX_NAME)?;
            name("the type of an item", &item.kind, MAX_KIND)?;
            value("the data of an item", &item.data)?;
            let about = item.metadata.clone().map(Value::Object);
            about.iter().try_for_each(|about| value("the metadata of an item", about))
        }
        Change::Forget(id) => name("the id of an item", id, MAX_NAME),
    }
}

/// Removes the private parts of a memory, and counts them.
pub fn acquire(
    mut memory: WorkingMemory,
    mut items: Vec<Item>,
) -> (WorkingMemory, Vec<Item>, Private) {
    let before =
        (memory.thoughts.len(), memory.decisions.len(), memory.variables.len(), items.len());
    memory.thoughts.retain(|thought| !thought.private);
    memory.decisions.retain(|decision| !decision.private && !is_private(&decision.value));
    let private = std::mem::take(&mut memory.private_variables);
    memory.variables.retain(|name, value| !private.contains(name) && !is_private(value));
    items.retain(|item| !item.is_private());
    let stays = Private {
        thoughts: before.0 - memory.thoughts.len(),
        decisions: before.1 - memory.decisions.len(),
        variables: before.2 - memory.variables.len(),
        items: before.3 - items.len(),
    };
    (memory, items, stays)
}

fn is_private(value: &Value) -> bool {
    Item { data: value.clone(), ..Item::default() }.is_private()
}

fn name(label: &'static str, name: &str, max_bytes: usize) -> Result<(), Unsound> {
    let fits = !name.is_empty() && name.len() <= max_bytes && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(Unsound::Name { label, max_bytes }) }
}

fn text(label: &'static str, text: &str) -> Result<(), Unsound> {
    large(label, text.len(), MAX_TEXT)
}

fn value(label: &'static str, value: &Value) -> Result<(), Unsound> {
    if is_deeper(value, MAX_DEPTH) {
        return Err(Unsound::Deep(label));
    }
    large(label, encoded_bytes(value), MAX_DATA)
}

fn large(label: &'static str, bytes: usize, max_bytes: usize) -> Result<(), Unsound> {
    if bytes > max_bytes { Err(Unsound::Large { label, bytes, max_bytes }) } else { Ok(()) }
}

fn is_deeper(value: &Value, than: usize) -> bool {
    match (value, than.checked_sub(1)) {
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(than)) => items.iter().any(|item| is_deeper(item, than)),
        (Value::Object(members), Some(than)) => members.values().any(|item| is_deeper(item, than)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context_memory::model::{Decision, Thought};
    use proptest::prelude::*;
    use serde_json::json;

    fn remember(id: &str, data: Value) -> Change {
        let (kind, metadata) = ("semantic".to_owned(), None);
        Change::Remember(Item { id: id.to_owned(), kind, data, metadata })
    }

    #[test]
    fn invalid_change_is_refused_with_reason() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(sound(&remember("fact/1", deep(MAX_DEPTH))), Ok(()));
        let refused = [
            remember("", json!(1)),
            remember("a\u{1b}[2Jb", json!(1)),
            remember(&"x".repeat(MAX_NAME + 1), json!(1)),
            remember("x", deep(MAX_DEPTH + 1)),
            remember("x", json!("x".repeat(MAX_DATA))),
            Change::Goal(Some("x".repeat(MAX_TEXT + 1))),
            Change::Variable { name: "\n".to_owned(), value: None, private: false },
        ];
        let refused = refused.map(|change| sound(&change).unwrap_err().to_string()).join("\n");
        insta::assert_snapshot!(refused, @r"
        the id of an item is 1 to 256 bytes long and has no control characters
        the id of an item is 1 to 256 bytes long and has no control characters
        the id of an item is 1 to 256 bytes long and has no control characters
        the data of an item is nested more than 64 deep
        the data of an item is 262146 bytes long: it may have 262144; keep what is larger in a file, or in several items
        a goal is 16385 bytes long: it may have 16384; keep what is larger in a file, or in several items
        the name of a variable is 1 to 256 bytes long and has no control characters
        ");
    }

    proptest! {
        #[test]
        fn private_parts_are_never_acquired(marks in prop::collection::vec(any::<[bool; 4]>(), 0..20)) {
            let mut memory = WorkingMemory::default();
            let mut items = Vec::new();
            for (n, [thought, decision, variable, item]) in marks.iter().enumerate() {
                let said = |private: bool| if private { format!("secret-{n}") } else { format!("open-{n}") };
                memory.thoughts.push(Thought { content: said(*thought), private: *thought, at: None });
                let (key, value) = (said(*decision), json!(said(*decision)));
                memory.decisions.push(Decision { key, value, private: *decision, ..Decision::default() });
                memory.variables.insert(said(*variable), json!(said(*variable)));
                if *variable {
                    memory.private_variables.insert(said(true));
                }
                let metadata = json!({"private": item}).as_object().cloned();
                items.push(Item { id: said(*item), kind: "semantic".to_owned(), data: json!(said(*item)), metadata });
            }
            let open = |at: usize| marks.iter().filter(|mark| !mark[at]).count();
            let (memory, items, stays) = acquire(memory, items);
            let told = serde_json::to_string(&(&memory, &items)).unwrap();
            prop_assert!(!told.contains("secret-"));
            prop_assert_eq!(memory.thoughts.len(), open(0));
            prop_assert_eq!(memory.decisions.len() + stays.decisions, marks.len());
            prop_assert_eq!(memory.variables.len(), open(2));
            prop_assert_eq!(items.len(), open(3));
        }
    }
}
