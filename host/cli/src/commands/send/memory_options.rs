//! Options of `send` for an agent's program: the parts of the agent's memory that go with the
//! message.

use a2a_hub_core::context_memory::inherit::Scope;
use clap::Args;
use serde_json::{Map, Value, json};

/// Help heading of the options that pass on memory.
const MEMORY: &str = "Within an agent's task";

/// Options that pass on memory of the agent that runs this program.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Inheriting {
    /// Pass on the goal, thoughts, decisions and variables of the calling agent
    #[arg(long, help_heading = MEMORY)]
    inherit_working_memory: bool,
    /// Pass on memories of the calling agent that match QUERY, or the message if no query is given
    #[arg(
        long,
        value_name = "QUERY",
        num_args = 0..=1,
        require_equals = true,
        help_heading = MEMORY
    )]
    inherit_memory: Option<Option<String>>,
    /// Part of the memory to pass on: `full`, `minimal` (what the message names) or `summary`
    /// [default: full]
    #[arg(long, value_name = "SCOPE", value_parser = scope, help_heading = MEMORY)]
    scope: Option<Scope>,
    /// Entry to pass on in the scope `minimal`, by its key, name or id. May be given several times
    #[arg(long, value_name = "NAME", help_heading = MEMORY)]
    memory_name: Vec<String>,
    /// Maximum size of the memory to pass on, in bytes
    #[arg(long, value_name = "BYTES", help_heading = MEMORY)]
    memory_budget: Option<u64>,
}

impl Inheriting {
    /// Returns the options as members of a message's metadata.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        let mut also = |name: &str, value: Value| metadata.insert(name.to_owned(), value);
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
        metadata
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

    fn metadata(args: &[&str]) -> Value {
        let line = Line::try_parse_from([&["send"], args].concat()).unwrap();
        Value::Object(line.inheriting.metadata())
    }

    #[test]
    fn memory_options_become_message_metadata() {
        assert_eq!(metadata(&[]), json!({}));
        let some = ["--inherit-working-memory", "--inherit-memory", "--scope", "minimal"];
        let told =
            json!({"inheritWorkingMemory": true, "inheritMemory": true, "memoryScope": "minimal"});
        assert_eq!(metadata(&some), told);
        let named = ["--inherit-memory=the cache", "--memory-name=db", "--memory-budget", "100"];
        let told = json!({"inheritMemory": "the cache", "memoryNames": ["db"], "memoryBudget": {"bytes": 100}});
        assert_eq!(metadata(&named), told);
        assert!(Line::try_parse_from(["send", "--scope", "all"]).is_err());
    }
}
