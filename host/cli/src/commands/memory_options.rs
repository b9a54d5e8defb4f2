//! Options of `send` for an agent's program: the parts of the agent's memory that go with the
//! message.

use a2a_hub_core::context_memory::inherit::Scope;
use clap::Args;
use serde_json::{Map, Value, json};

/// What of the memory of the agent whose program this is goes with the message.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Within an agent's task")]
pub(crate) struct Inheriting {
    /// Hand over goal, thoughts, decisions and variables of the agent that this program works for
    #[arg(long)]
    inherit_working_memory: bool,
    /// Hand over what that agent remembers: what the message recalls, or this text
    #[arg(long, value_name = "QUERY", num_args = 0..=1, require_equals = true)]
    inherit_memory: Option<Option<String>>,
    /// How much of it: `full`, `minimal` (what the message names) or `summary`
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Option<Scope>,
    /// Hand this over in the scope `minimal`, by its key, name or id; may be given several times
    #[arg(long, value_name = "NAME")]
    memory_name: Vec<String>,
    /// Hand over so many bytes at most
    #[arg(long, value_name = "BYTES")]
    memory_budget: Option<u64>,
}

impl Inheriting {
    /// Returns the options as members of a message's metadata.
    pub(crate) fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        let mut also = |name: &str, value: Value| facts.insert(name.to_owned(), value);
        if self.inherit_working_memory {
            also("inheritWorkingMemory", json!(true));
        }
        match &self.inherit_memory {
            Some(Some(query)) => also("inheritMemory", json!(query)),
            Some(None) => also("inheritMemory", json!(true)),
            None => None,
        };
        if let Some(scope) = self.scope {
            also("memoryScope", json!(scope));
        }
        if !self.memory_name.is_empty() {
            also("memoryNames", json!(self.memory_name));
        }
        if let Some(bytes) = self.memory_budget {
            also("memoryBudget", json!({ "bytes": bytes }));
        }
        facts
    }
}

fn scope(word: &str) -> Result<Scope, String> {
    Scope::named(word).ok_or_else(|| "it is `full`, `minimal` or `summary`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        inheriting: Inheriting,
    }

    fn facts(args: &[&str]) -> Value {
        let line = Line::try_parse_from([&["send"], args].concat()).unwrap();
        Value::Object(line.inheriting.facts())
    }

    #[test]
    fn memory_options_become_message_metadata() {
        assert_eq!(facts(&[]), json!({}));
        let some = ["--inherit-working-memory", "--inherit-memory", "--scope", "minimal"];
        let told =
            json!({"inheritWorkingMemory": true, "inheritMemory": true, "memoryScope": "minimal"});
        assert_eq!(facts(&some), told);
        let named = ["--inherit-memory=the cache", "--memory-name=db", "--memory-budget", "100"];
        let told = json!({"inheritMemory": "the cache", "memoryNames": ["db"], "memoryBudget": {"bytes": 100}});
        assert_eq!(facts(&named), told);
        assert!(Line::try_parse_from(["send", "--scope", "all"]).is_err());
    }
}
