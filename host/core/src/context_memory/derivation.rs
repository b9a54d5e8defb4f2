//! Stage 3, derivation: a short summary of decisions and open questions, without private parts.

use super::model::{Item, Thought, WorkingMemory};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum length of one insight, in characters; the rest becomes an ellipsis.
const MAX_INSIGHT: usize = 160;

/// Maximum number of insights of one kind; the newest are kept.
const MAX_INSIGHTS: usize = 32;

/// Prefixes of a thought that mark it as an open question.
const OPENINGS: [&str; 5] = ["todo", "open:", "question:", "unclear", "next:"];

/// Summary of a working memory and items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Insights {
    /// Goal of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Decisions, newest first: `key: value (reason)`.
    pub decided: Vec<String>,
    /// Open points, newest first: questions among the thoughts, and decisions and variables without
    /// a value.
    pub open: Vec<String>,
    /// Number of items by type.
    pub knows: BTreeMap<String, usize>,
}

/// Derives the summary. The caller must have removed private parts.
pub fn derive(memory: &WorkingMemory, items: &[Item]) -> Insights {
    let decisions = memory.decisions.iter().rev().filter(|decision| !decision.value.is_null());
    let decided = decisions.map(|decision| {
        let reason = decision.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        short(&format!("{}: {}{reason}", decision.key, to_text(&decision.value)))
    });
    let questions = memory.thoughts.iter().rev().filter(|thought| is_open(thought));
    let questions = questions.map(|thought| short(&thought.content));
    let undecided = memory.decisions.iter().rev().filter(|decision| decision.value.is_null());
    let undecided = undecided.map(|decision| short(&decision.key));
    let missing = memory.variables.iter().filter(|(_, value)| value.is_null());
    let missing = missing.map(|(name, _)| short(name));
    let mut knows = BTreeMap::new();
    for item in items {
        *knows.entry(item.kind.clone()).or_default() += 1;
    }
    Insights {
        goal: memory.goal.as_deref().map(short),
        decided: decided.take(MAX_INSIGHTS).collect(),
        open: questions.chain(undecided).chain(missing).take(MAX_INSIGHTS).collect(),
        knows,
    }
}

impl Insights {
    /// True if the summary is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_open(thought: &Thought) -> bool {
    let content = thought.content.trim();
    let begins = content.to_lowercase();
    content.ends_with('?') || OPENINGS.iter().any(|opening| begins.starts_with(opening))
}

fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_INSIGHT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context_memory::model::Decision;
    use serde_json::json;

    #[test]
    fn decisions_and_open_points_are_summarised() {
        let thought = |content: &str| Thought { content: content.to_owned(), ..Thought::default() };
        let decision = |key: &str, value, reason: Option<&str>| Decision {
            key: key.to_owned(),
            value,
            reason: reason.map(str::to_owned),
            ..Decision::default()
        };
        let memory = WorkingMemory {
            goal: Some("ship\nthe parser".to_owned()),
            thoughts: vec![
                thought("it is slow"),
                thought("is the cache warm?"),
                thought("TODO: measure"),
            ],
            decisions: vec![
                decision("database", json!("sqlite"), Some("one file")),
                decision("licence", Value::Null, None),
                decision("limits", json!({"rows": 5}), None),
            ],
            variables: [("owner".to_owned(), Value::Null), ("n".to_owned(), json!(1))].into(),
            ..WorkingMemory::default()
        };
        let items = ["semantic", "episodic", "semantic"].map(|kind| Item {
            id: "i".to_owned(),
            kind: kind.to_owned(),
            ..Item::default()
        });
        let insights = serde_json::to_value(derive(&memory, &items)).unwrap();
        assert_eq!(
            insights,
            json!({
                "goal": "ship the parser",
                "decided": ["limits: {\"rows\":5}", "database: sqlite (one file)"],
                "open": ["TODO: measure", "is the cache warm?", "licence", "owner"],
                "knows": {"episodic": 1, "semantic": 2},
            })
        );
        assert!(derive(&WorkingMemory::default(), &[]).is_empty());
    }

    #[test]
    fn insights_are_short() {
        let content = format!("{}?", "ä".repeat(10_000));
        let thoughts = (0..100).map(|_| Thought { content: content.clone(), ..Thought::default() });
        let memory = WorkingMemory { thoughts: thoughts.collect(), ..WorkingMemory::default() };
        let Insights { open, .. } = derive(&memory, &[]);
        assert_eq!(open.len(), MAX_INSIGHTS);
        assert!(open.iter().all(|told| told.chars().count() == MAX_INSIGHT + 1));
    }
}
