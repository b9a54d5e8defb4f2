//! Context memory: goal, thoughts, decisions, variables and searchable items of one conversation.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::host::{Host, MemoryChange};
use crate::working_memory::{Decision, MemoryItem, Thought, WorkingMemory};
use crate::{Context, Failure};

/// Limit of [`Memory::recall`], in items.
const RECALLED: u32 = 10;

/// Memory of the agent in the conversation of its task. The grant `memory` gives access to it.
pub struct Memory<'a> {
    ctx: &'a Context,
    private: bool,
}

impl Context {
    /// Memory of this agent in the conversation of its task. It outlives the task and is deleted
    /// with the conversation. Another agent may have handed over some of it; such entries are that
    /// agent's words.
    pub fn memory(&self) -> Memory<'_> {
        Memory { ctx: self, private: false }
    }
}

impl Memory<'_> {
    /// Same memory, except that everything set through it is private: never handed over to another
    /// agent.
    #[must_use]
    pub fn private(&self) -> Self {
        Memory { ctx: self.ctx, private: true }
    }

    /// Working memory: everything except the items.
    pub fn working(&self) -> Result<WorkingMemory, Failure> {
        read(&self.ctx.hub.working()?)
    }

    /// Goal of the agent, if it set one.
    pub fn goal(&self) -> Result<Option<String>, Failure> {
        Ok(self.working()?.goal)
    }

    /// Sets the goal.
    pub fn set_goal(&self, goal: &str) -> Result<(), Failure> {
        self.ctx.hub.change_context_memory(MemoryChange::Goal(Some(goal)))
    }

    /// Adds a thought. Only the newest 256 are stored.
    pub fn add_thought(&self, content: &str) -> Result<(), Failure> {
        self.ctx.hub.change_context_memory(MemoryChange::Thought { content, private: self.private })
    }

    /// Thoughts, oldest first.
    pub fn thoughts(&self) -> Result<Vec<Thought>, Failure> {
        Ok(self.working()?.thoughts)
    }

    /// Records a decision, replacing the one with the same key.
    pub fn decide(
        &self,
        key: &str,
        value: &(impl Serialize + ?Sized),
        reason: &str,
    ) -> Result<(), Failure> {
        let (value, private) = (written(key, value)?, self.private);
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        self.ctx.hub.change_context_memory(MemoryChange::Decide {
            key,
            value: &value,
            reason,
            private,
        })
    }

    /// Decisions, oldest first.
    pub fn decisions(&self) -> Result<Vec<Decision>, Failure> {
        Ok(self.working()?.decisions)
    }

    /// Sets a variable.
    pub fn set_var(&self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
        let (value, private) = (written(name, value)?, self.private);
        self.ctx.hub.change_context_memory(MemoryChange::Variable {
            name,
            value: Some(&value),
            private,
        })
    }

    /// Variables by name.
    pub fn vars(&self) -> Result<BTreeMap<String, Value>, Failure> {
        Ok(self.working()?.variables)
    }

    /// Deletes a variable.
    pub fn drop_var(&self, name: &str) -> Result<(), Failure> {
        self.ctx.hub.change_context_memory(MemoryChange::Variable {
            name,
            value: None,
            private: false,
        })
    }

    /// Stores an item, replacing the one with the same id. Its type is `semantic` for facts,
    /// `episodic` for events, or another word.
    pub fn remember(
        &self,
        id: &str,
        data: &(impl Serialize + ?Sized),
        kind: &str,
    ) -> Result<(), Failure> {
        let data = serde_json::to_value(data).map_err(|why| unwritten(id, &why))?;
        let item = MemoryItem { id: id.to_owned(), kind: kind.to_owned(), data, metadata: None };
        self.remember_item(item)
    }

    /// Stores an item with metadata, replacing the one with the same id.
    pub fn remember_item(&self, mut item: MemoryItem) -> Result<(), Failure> {
        if self.private {
            item.metadata.get_or_insert_default().insert("private".to_owned(), true.into());
        }
        self.ctx.hub.change_context_memory(MemoryChange::Remember(&written(&item.id, &item)?))
    }

    /// Ten items that match `query` best, best first. A query without words returns the newest.
    pub fn recall(&self, query: &str) -> Result<Vec<MemoryItem>, Failure> {
        self.recall_up_to(query, RECALLED)
    }

    /// Up to `limit` items that match `query` best, best first.
    pub fn recall_up_to(&self, query: &str, limit: u32) -> Result<Vec<MemoryItem>, Failure> {
        read(&self.ctx.hub.recall_items(query, limit)?)
    }

    /// Deletes the item with this id.
    pub fn forget(&self, id: &str) -> Result<(), Failure> {
        self.ctx.hub.change_context_memory(MemoryChange::Forget(id))
    }
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json).map_err(|why| {
        Failure::Internal(format!("what the hub says this agent has in mind cannot be read: {why}"))
    })
}

fn written(name: &str, value: &(impl Serialize + ?Sized)) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|why| unwritten(name, &why))
}

fn unwritten(name: &str, why: &serde_json::Error) -> Failure {
    Failure::Invalid(format!("cannot keep `{name}` as JSON: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::ScriptedHost;

    #[test]
    fn working_memory_returns_stored_values() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        let memory = ctx.memory();
        assert_eq!(memory.goal().unwrap(), None);
        memory.set_goal("ship").unwrap();
        memory.add_thought("the cache is warm").unwrap();
        memory.private().add_thought("my own").unwrap();
        memory.decide("database", "sqlite", "one file").unwrap();
        memory.decide("database", "postgres", "").unwrap();
        memory.set_var("depth", &3).unwrap();
        memory.private().set_var("key", "k").unwrap();
        let working = memory.working().unwrap();
        assert_eq!(working.goal.as_deref(), Some("ship"));
        let thoughts = working.thoughts.iter().map(|it| (it.content.as_str(), it.private));
        assert_eq!(thoughts.collect::<Vec<_>>(), [("the cache is warm", false), ("my own", true)]);
        let [decision] = &working.decisions[..] else { panic!("one a key") };
        assert_eq!((&decision.value, &decision.reason), (&json!("postgres"), &None));
        assert_eq!(memory.vars().unwrap()["depth"], 3);
        assert_eq!(working.private_variables, ["key"]);
        memory.drop_var("key").unwrap();
        assert!(memory.working().unwrap().private_variables.is_empty());
    }

    #[test]
    fn items_are_found_and_deleted() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        let memory = ctx.memory();
        memory.remember("fact1", &json!({"info": "details"}), "semantic").unwrap();
        memory.private().remember("eventA", &json!({"action": "interacted"}), "episodic").unwrap();
        let [event, fact] = &memory.recall("").unwrap()[..] else { panic!("both, newest first") };
        assert_eq!((event.id.as_str(), fact.kind.as_str()), ("eventA", "semantic"));
        assert_eq!(event.metadata.as_ref().unwrap()["private"], true);
        let found = memory.recall("any Details?").unwrap();
        assert_eq!(found.iter().map(|item| &*item.id).collect::<Vec<_>>(), ["fact1"]);
        memory.forget("fact1").unwrap();
        assert!(memory.recall("details").unwrap().is_empty());
    }
}
