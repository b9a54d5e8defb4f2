//! Facts about a program's work that editors show: tool calls, the plan and the size of the
//! context, as the members `tool`, `plan` and `context` of metadata, in the words of the Agent
//! Client Protocol.

use serde_json::{Map, Value, json};

use super::words::{TELLING, cut};

/// Maximum size of a tool's input as JSON. Of a larger one, only short lines are reported: it may
/// be a whole file.
const MAX_INPUT: usize = 2_000;

/// Maximum number of reported entries of a plan.
const MAX_ENTRIES: usize = 100;

/// Members of a status's metadata that say nothing any more once the run has ended.
pub(super) const OF_STATUSES: [&str; 2] = ["tool", "plan"];

/// Tool call that begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolFacts<'a> {
    /// Id of the call within the run.
    pub id: &'a str,
    /// Name of the tool.
    pub name: &'a str,
    /// Text about the call for people.
    pub title: &'a str,
    /// Kind of tool, such as `read`, `edit` or `execute`.
    pub kind: &'a str,
    /// Input of the tool.
    pub input: Option<&'a Value>,
}

impl ToolFacts<'_> {
    /// Facts of the call.
    pub fn begun(&self) -> Map<String, Value> {
        let mut tool = json!({ "id": self.id, "status": "in_progress" });
        for (member, text) in [("name", self.name), ("title", self.title), ("kind", self.kind)] {
            if !text.is_empty() {
                tool[member] = cut(text).into();
            }
        }
        if let Some(input) = self.input.filter(|input| input.is_object()) {
            tool["input"] = short(input);
        }
        member("tool", tool)
    }
}

/// Facts of a tool call that ended.
pub fn tool_ended(id: &str, is_failed: bool) -> Map<String, Value> {
    let status = if is_failed { "failed" } else { "completed" };
    member("tool", json!({ "id": id, "status": status }))
}

/// Facts of a plan, from the content and the status of each entry: `pending`, `in_progress` or
/// `completed`.
pub fn plan<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let entry =
        |(content, status): (&str, &str)| json!({ "content": cut(content), "status": status });
    member("plan", entries.into_iter().take(MAX_ENTRIES).map(entry).collect())
}

/// Size of the context and of its part in use, in tokens; `None` unless both are known.
pub fn context(used: Option<f64>, size: Option<f64>) -> Option<Value> {
    let (used, size) = (used?, size.filter(|size| *size > 0.0)?);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole tokens")]
    Some(json!({ "used": used.max(0.0) as u64, "size": size as u64 }))
}

fn member(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

/// Input of limited size.
fn short(input: &Value) -> Value {
    if input.to_string().len() <= MAX_INPUT {
        return input.clone();
    }
    let telling = |name: &&str| Some(((*name).to_owned(), cut(input[*name].as_str()?).into()));
    TELLING.iter().filter_map(telling).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_input_is_reported_in_short() {
        let input = json!({ "file_path": "/w/a", "content": "x".repeat(MAX_INPUT) });
        let call = ToolFacts { id: "1", kind: "edit", input: Some(&input), ..ToolFacts::default() };
        let wanted = json!({ "id": "1", "status": "in_progress", "kind": "edit", "input": { "file_path": "/w/a" } });
        assert_eq!(call.begun()["tool"], wanted);
        let odd = ToolFacts { id: "1", input: Some(&Value::Null), ..ToolFacts::default() };
        assert_eq!(odd.begun()["tool"], json!({ "id": "1", "status": "in_progress" }));
    }

    #[test]
    fn plan_is_reported_up_to_limit() {
        let facts = plan(vec![("read\nmore", "pending"); MAX_ENTRIES + 1]);
        assert_eq!(facts["plan"].as_array().map(Vec::len), Some(MAX_ENTRIES));
        assert_eq!(facts["plan"][0], json!({ "content": "read …", "status": "pending" }));
    }

    #[test]
    fn context_needs_both_sizes() {
        assert_eq!(context(Some(7.0), Some(9.0)), Some(json!({ "used": 7, "size": 9 })));
        assert_eq!(context(Some(7.0), Some(0.0)), None);
        assert_eq!(context(None, Some(9.0)), None);
    }
}
