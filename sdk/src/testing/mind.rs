//! Context memory of a scripted hub.

use serde_json::{Value, json};

use crate::Failure;
use crate::host::MemoryChange;
use crate::working_memory::{Decision, MemoryItem, Thought, WorkingMemory};

/// Context memory: working memory, and items oldest first.
#[derive(Default)]
pub(super) struct Mind {
    pub(super) working: WorkingMemory,
    pub(super) items: Vec<MemoryItem>,
}

impl Mind {
    pub(super) fn change(&mut self, change: MemoryChange<'_>) -> Result<(), Failure> {
        let WorkingMemory { goal, thoughts, decisions, variables, private_variables } =
            &mut self.working;
        match change {
            MemoryChange::Goal(said) => *goal = said.map(str::to_owned),
            MemoryChange::Thought { content, private } => {
                let thought = Thought { content: content.to_owned(), at: None, private };
                if !thoughts.contains(&thought) {
                    thoughts.push(thought);
                }
            }
            MemoryChange::Decide { key, value, reason, private } => {
                decisions.retain(|known| known.key != key);
                let (key, reason) = (key.to_owned(), reason.map(str::to_owned));
                decisions.push(Decision { key, value: read(value)?, reason, at: None, private });
            }
            MemoryChange::Variable { name, value, private } => {
                private_variables.retain(|known| known != name);
                match value {
                    Some(value) => variables.insert(name.to_owned(), read(value)?),
                    None => variables.remove(name),
                };
                private_variables.extend((private && value.is_some()).then(|| name.to_owned()));
            }
            MemoryChange::Remember(item) => {
                let item: MemoryItem = read(item)?;
                self.items.retain(|known| known.id != item.id);
                self.items.push(item);
            }
            MemoryChange::Forget(id) => self.items.retain(|known| known.id != id),
        }
        Ok(())
    }

    /// Items with a word of the query, most words first, then the newest.
    pub(super) fn recall(&self, query: &str, limit: u32) -> String {
        let words = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            let words = words.filter(|word| !word.is_empty()).map(str::to_lowercase);
            words.collect::<Vec<_>>()
        };
        let asked = words(query);
        let fits = |item: &MemoryItem| {
            let has = words(&json!(item).to_string());
            asked.iter().filter(|word| has.contains(word)).count()
        };
        let mut found: Vec<_> = self.items.iter().rev().map(|item| (fits(item), item)).collect();
        found.retain(|(fits, _)| asked.is_empty() || *fits > 0);
        found.sort_by_key(|(fits, _)| std::cmp::Reverse(*fits));
        let found = found.into_iter().take(limit.try_into().unwrap_or(usize::MAX));
        Value::from_iter(found.map(|(_, item)| json!(item))).to_string()
    }
}

fn read<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json).map_err(|why| Failure::Invalid(why.to_string()))
}
