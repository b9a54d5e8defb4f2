//! Facts about a program's work that editors show: tool calls, the plan and the size of the
//! context, as the members `tool`, `plan` and `context` of metadata, in the words of the Agent
//! Client Protocol.

use serde_json::{Map, Value, json};

use super::words::{TELLING, cut};

/// Maximum size of a tool's input as JSON. Of a larger one, only short lines are reported: it may
/// be a whole file.
const MAX_INPUT: usize = 2_000;

/// Maximum length of a tool's output as text, and size of one as JSON.
const MAX_OUTPUT: usize = 4_000;

/// Maximum number of reported locations of a tool call.
const MAX_LOCATIONS: usize = 20;

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
    /// Files that the call reads or changes: a list of objects with `path`, absolute, and `line`.
    pub locations: Option<&'a Value>,
    /// Output of the tool so far: a text, or any JSON.
    pub output: Option<&'a Value>,
}

impl ToolFacts<'_> {
    /// Facts of the call.
    pub fn begun(&self) -> Map<String, Value> {
        let mut tool = json!({ "id": self.id, "status": "in_progress" });
        if let Some(members) = tool.as_object_mut() {
            members.extend(self.described());
        }
        member("tool", tool)
    }

    /// Members that describe the call, without its id and status.
    pub(super) fn described(&self) -> Map<String, Value> {
        let mut tool = Map::new();
        for (member, text) in [("name", self.name), ("title", self.title), ("kind", self.kind)] {
            if !text.is_empty() {
                tool.insert(member.to_owned(), cut(text).into());
            }
        }
        if let Some(input) = self.input.filter(|input| input.is_object()) {
            tool.insert("input".to_owned(), short(input));
        }
        let locations = self.locations.and_then(locations);
        tool.extend(locations.map(|locations| ("locations".to_owned(), locations)));
        let output = self.output.and_then(output);
        tool.extend(output.map(|output| ("output".to_owned(), output)));
        tool
    }
}

/// Facts of a tool call that go on from earlier ones: members that changed, and its status if the
/// call ends.
pub(super) fn tool_update(
    id: &str,
    is_failed: Option<bool>,
    changed: Map<String, Value>,
) -> Map<String, Value> {
    let mut tool = changed;
    tool.insert("id".to_owned(), id.into());
    if let Some(is_failed) = is_failed {
        let status = if is_failed { "failed" } else { "completed" };
        tool.insert("status".to_owned(), status.into());
    }
    member("tool", tool.into())
}

/// Facts of a tool call that ended.
pub fn tool_ended(id: &str, is_failed: bool) -> Map<String, Value> {
    tool_update(id, Some(is_failed), Map::new())
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
pub(super) fn short(input: &Value) -> Value {
    if input.to_string().len() <= MAX_INPUT {
        return input.clone();
    }
    let telling = |name: &&str| Some(((*name).to_owned(), cut(input[*name].as_str()?).into()));
    TELLING.iter().filter_map(telling).collect::<Map<_, _>>().into()
}

/// Locations that name a path; `None` without any.
fn locations(reported: &Value) -> Option<Value> {
    let location = |location: &Value| {
        let mut short = json!({ "path": location["path"].as_str()? });
        if let Some(line) = location["line"].as_u64() {
            short["line"] = line.into();
        }
        Some(short)
    };
    let all = reported.as_array()?.iter().filter_map(location).take(MAX_LOCATIONS);
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| all.into())
}

/// Output of limited size: the end of a long text, and no large JSON.
fn output(output: &Value) -> Option<Value> {
    match output {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) if text.len() > MAX_OUTPUT => {
            let begin = text.ceil_char_boundary(text.len() - MAX_OUTPUT);
            Some(format!("… {}", &text[begin..]).into())
        }
        Value::String(_) => Some(output.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            (output.to_string().len() <= MAX_OUTPUT).then(|| output.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_locations_are_bounded() {
        let at = json!([{ "path": "/w/a", "line": 3, "more": 1 }, { "line": 1 }, "/w/b"]);
        let long = json!("ä".repeat(MAX_OUTPUT));
        let call = ToolFacts {
            id: "1",
            locations: Some(&at),
            output: Some(&long),
            ..ToolFacts::default()
        };
        let facts = call.described();
        assert_eq!(facts["locations"], json!([{ "path": "/w/a", "line": 3 }]));
        let text = facts["output"].as_str().unwrap();
        assert!(text.starts_with("… ä") && text.len() <= MAX_OUTPUT + 4, "{}", text.len());
        for (is_reported, given) in [
            (false, json!(" ")),
            (false, json!(vec![7; MAX_OUTPUT])),
            (false, json!(null)),
            (true, json!({ "exit": 0 })),
        ] {
            assert_eq!(output(&given), Some(given.clone()).filter(|_| is_reported));
        }
        assert_eq!(locations(&json!("/w/a")), None);
    }

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
