//! Request to inherit memory with a task: options of a delegation, and members of a message's
//! metadata.

use super::utilisation::MemoryBudget;
use a2a_hub_protocol::{error::A2aError, id::TaskId, message::Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of names in a list.
pub const MAX_NAMES: usize = 256;

/// Scope of an inheritance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything that is not private.
    #[default]
    Full,
    /// Parts that the task names: by words of its message, or by a list of names.
    Minimal,
    /// Only the derived summary.
    Summary,
}

impl Scope {
    /// Name of the scope.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Minimal => "minimal",
            Self::Summary => "summary",
        }
    }

    /// Parses the name of a scope.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Full, Self::Minimal, Self::Summary].into_iter().find(|scope| scope.word() == word)
    }
}

/// Options of an inheritance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inherit {
    /// True if the working memory is inherited: goal, thoughts, decisions, variables.
    pub working_memory: bool,
    /// True if items are inherited.
    pub memory: bool,
    /// Query that selects the items; without it, the text of the message ranks them.
    pub query: Option<String>,
    /// Scope of the inheritance.
    pub scope: Scope,
    /// Additional names for the scope `minimal`: keys of decisions, names of variables, ids of
    /// items, `goal` and `thoughts`.
    pub names: Vec<String>,
    /// Size limit.
    pub budget: MemoryBudget,
    /// Child of the calling flow's task whose agent gives the memory; without it, the flow does.
    pub from: Option<TaskId>,
}

/// Members of a message's metadata with these options.
pub const MEMBERS: [&str; 7] = [
    "inheritWorkingMemory",
    "inheritMemory",
    "memoryQuery",
    "memoryScope",
    "memoryNames",
    "memoryBudget",
    "memoryFrom",
];

impl Inherit {
    /// True if anything is to be inherited.
    pub fn is_requested(&self) -> bool {
        self.working_memory || self.memory
    }

    /// Parses the options from the metadata of a message; `None` if it asks for no inheritance.
    pub fn from_metadata(metadata: Option<&Metadata>) -> Result<Option<Self>, A2aError> {
        let Some(metadata) = metadata else { return Ok(None) };
        let [working, memory, query, scope, names, budget, from] =
            MEMBERS.map(|name| metadata.get(name));
        let mut options = Self {
            working_memory: flag(MEMBERS[0], working)?,
            query: text(MEMBERS[2], query)?,
            ..Self::default()
        };
        options.memory = match memory {
            Some(Value::String(text)) => {
                options.query = Some(text.clone());
                true
            }
            value => flag(MEMBERS[1], value)?,
        };
        if let Some(word) = text(MEMBERS[3], scope)? {
            let unknown = || invalid(MEMBERS[3], "must be `full`, `minimal` or `summary`");
            options.scope = Scope::named(&word).ok_or_else(unknown)?;
        }
        if let Some(names) = names.filter(|names| !names.is_null()) {
            let names = Vec::<String>::deserialize(names).ok();
            let names = names.filter(|names| names.len() <= MAX_NAMES);
            let expected = format!("must be an array of at most {MAX_NAMES} texts");
            options.names = names.ok_or_else(|| invalid(MEMBERS[4], expected))?;
        }
        if let Some(budget) = budget.filter(|budget| !budget.is_null()) {
            let expected =
                "must be an object of `bytes` and `tokens`, each left out or a whole number";
            options.budget = MemoryBudget::deserialize(budget)
                .map_err(|why| invalid(MEMBERS[5], format!("{expected}: {why}")))?;
        }
        options.from = text(MEMBERS[6], from)?.map(TaskId::new);
        Ok(Some(options).filter(Self::is_requested))
    }
}

/// Removes the options from metadata: they are for this hub only, and not forwarded.
#[must_use]
pub fn without(mut metadata: Metadata) -> Metadata {
    for name in MEMBERS {
        metadata.remove(name);
    }
    metadata
}

/// Error for a client that asks to inherit memory and is no agent's program.
pub fn nothing_to_inherit() -> A2aError {
    invalid(
        MEMBERS[0],
        "there is nothing to inherit: an agent at work on a task hands memory over, by a call or by one of its programs, and this \
         client is neither; leave `inheritWorkingMemory` and `inheritMemory` out",
    )
}

fn flag(name: &str, value: Option<&Value>) -> Result<bool, A2aError> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(enabled)) => Ok(*enabled),
        Some(Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
            let text = if name == MEMBERS[1] { ", or a text that recalls items" } else { "" };
            Err(invalid(name, format!("must be true or false{text}")))
        }
    }
}

fn text(name: &str, value: Option<&Value>) -> Result<Option<String>, A2aError> {
    let wrong = || invalid(name, "must be a text");
    let value = value.filter(|said| !said.is_null());
    value.map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).transpose()
}

fn invalid(name: &str, why: impl std::fmt::Display) -> A2aError {
    A2aError::invalid(&format!("message.metadata.{name}"), why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(said: &Value) -> Result<Option<Inherit>, String> {
        Inherit::from_metadata(said.as_object()).map_err(|why| why.message)
    }

    #[test]
    fn inherit_options_are_read_from_metadata() {
        assert_eq!(of(&json!({"other": 1})), Ok(None));
        assert_eq!(of(&json!({"inheritWorkingMemory": false, "memoryScope": "full"})), Ok(None));
        let plain = Inherit { working_memory: true, ..Inherit::default() };
        assert_eq!(of(&json!({"inheritWorkingMemory": true})), Ok(Some(plain)));
        let all = json!({
            "inheritMemory": "sqlite", "memoryScope": "minimal", "memoryNames": ["db"], "memoryBudget": {"tokens": 100},
            "memoryFrom": "task-1",
        });
        let asked = Inherit {
            memory: true,
            query: Some("sqlite".to_owned()),
            scope: Scope::Minimal,
            names: vec!["db".to_owned()],
            budget: MemoryBudget { bytes: None, tokens: Some(100) },
            from: Some(TaskId::new("task-1")),
            ..Inherit::default()
        };
        assert_eq!(of(&all), Ok(Some(asked)));
        assert!(without(all.as_object().cloned().unwrap()).is_empty());
    }

    #[test]
    fn invalid_inherit_options_are_refused() {
        let refused = [
            json!({"inheritWorkingMemory": "yes"}),
            json!({"inheritMemory": 1}),
            json!({"inheritMemory": true, "memoryScope": "all"}),
            json!({"inheritMemory": true, "memoryNames": "db"}),
            json!({"inheritMemory": true, "memoryBudget": {"byte": 1}}),
            json!({"inheritMemory": true, "memoryQuery": [1]}),
        ];
        let refused = refused.map(|said| of(&said).unwrap_err()).join("\n");
        insta::assert_snapshot!(refused, @r"
        `message.metadata.inheritWorkingMemory`: must be true or false
        `message.metadata.inheritMemory`: must be true or false, or a text that recalls items
        `message.metadata.memoryScope`: must be `full`, `minimal` or `summary`
        `message.metadata.memoryNames`: must be an array of at most 256 texts
        `message.metadata.memoryBudget`: must be an object of `bytes` and `tokens`, each left out or a whole number: unknown field `byte`, expected `bytes` or `tokens`
        `message.metadata.memoryQuery`: must be a text
        ");
    }
}
