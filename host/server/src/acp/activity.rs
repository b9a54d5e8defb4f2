//! Tool calls, plans and the size of the context that an agent reports in the metadata of a status:
//! the members `tool`, `plan` and `context`.

use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{id::TaskId, member, message::Metadata};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Maximum length of a title or an entry in characters, and of an id in bytes.
const MAX_LINE: usize = 200;
const MAX_ID: usize = 200;

/// Maximum number of entries of a plan, and of tool calls of a turn.
const MAX_ENTRIES: usize = 100;
const MAX_TOOLS: usize = 10_000;

const KINDS: [&str; 10] = [
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];
const STATES: [&str; 4] = ["pending", "in_progress", "completed", "failed"];
const ENTRY_STATES: [&str; 3] = ["pending", "in_progress", "completed"];
const PRIORITIES: [&str; 3] = ["high", "medium", "low"];

/// Tool calls of a task that the client knows.
#[derive(Default)]
pub(super) struct Activity {
    known: HashSet<String>,
    /// Calls that have not ended.
    open: HashSet<String>,
}

impl Activity {
    /// Updates of a status with this metadata.
    pub(super) fn updates(
        &mut self,
        task: Option<&TaskId>,
        facts: Option<&Metadata>,
    ) -> Vec<Value> {
        let Some(facts) = facts else { return Vec::new() };
        let tool = facts.get("tool").and_then(|tool| self.tool(task, tool));
        let plan = facts.get("plan").and_then(plan);
        tool.into_iter().chain(plan).chain(context(Some(facts))).collect()
    }

    /// Update of a tool call; `None` without an id.
    fn tool(&mut self, task: Option<&TaskId>, tool: &Value) -> Option<Value> {
        let id = tool["id"].as_str().filter(|id| (1..=MAX_ID).contains(&id.len()))?;
        // Agents count their calls anew in each task.
        let call = format!("{}/{id}", task.map_or("task", TaskId::as_str));
        if !self.known.contains(&call) && self.known.len() >= MAX_TOOLS {
            return None;
        }
        let is_new = self.known.insert(call.clone());
        let kind = if is_new { "tool_call" } else { "tool_call_update" };
        let mut update = json!({ "sessionUpdate": kind, "toolCallId": call });
        let line = |name: &str| tool[name].as_str().map(|text| plain_text::line(text, MAX_LINE));
        let title =
            line("title").or_else(|| if is_new { line("name").or(line("id")) } else { None });
        let default = is_new.then_some("in_progress");
        let state = one_of(&STATES, &tool["status"]).or(default);
        match state {
            Some("completed" | "failed") => self.open.remove(&call),
            Some(_) => self.open.insert(call),
            None => false,
        };
        let members = [
            ("title", title.map(Value::from)),
            ("name", line("name").map(Value::from)),
            ("kind", one_of(&KINDS, &tool["kind"]).map(Value::from)),
            ("status", state.map(Value::from)),
            ("rawInput", Some(tool["input"].clone()).filter(Value::is_object)),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                member::set(&mut update, name, value);
            }
        }
        Some(update)
    }

    /// Ends the calls that the agent left open at the end of its turn.
    pub(super) fn end(&mut self, is_failed: bool) -> Vec<Value> {
        let state = if is_failed { "failed" } else { "completed" };
        let end = |call| json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": state });
        self.open.drain().map(end).collect()
    }
}

/// Update of a plan; `None` if it is no list.
fn plan(plan: &Value) -> Option<Value> {
    let entry = |entry: &Value| {
        let content = plain_text::line(entry["content"].as_str()?, MAX_LINE);
        let status = one_of(&ENTRY_STATES, &entry["status"]).unwrap_or("pending");
        let priority = one_of(&PRIORITIES, &entry["priority"]).unwrap_or("medium");
        Some(json!({ "content": content, "status": status, "priority": priority }))
    };
    let entries: Vec<_> = plan.as_array()?.iter().filter_map(entry).take(MAX_ENTRIES).collect();
    Some(json!({ "sessionUpdate": "plan", "entries": entries }))
}

/// Update of the context's size; `None` unless the agent reports both numbers.
pub(super) fn context(facts: Option<&Metadata>) -> Option<Value> {
    let context = facts?.get("context")?;
    let (used, size) = (context["used"].as_u64()?, context["size"].as_u64()?);
    (size > 0).then(|| json!({ "sessionUpdate": "usage_update", "used": used, "size": size }))
}

fn one_of(known: &[&'static str], value: &Value) -> Option<&'static str> {
    known.iter().copied().find(|known| value == known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::json_shapes::reshaped;

    fn updates(activity: &mut Activity, facts: &Value) -> Vec<Value> {
        activity.updates(Some(&TaskId::new("t")), facts.as_object())
    }

    #[test]
    fn reported_tool_becomes_tool_call() {
        let mut activity = Activity::default();
        let begun = json!({ "tool": { "id": "1", "name": "Bash", "title": "ls\u{1b} -l", "kind": "execute", "input": { "command": "ls" } } });
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t/1", "title": "ls -l", "name": "Bash",
            "kind": "execute", "status": "in_progress", "rawInput": { "command": "ls" } });
        assert_eq!(updates(&mut activity, &begun), [call]);
        let ended = json!({ "tool": { "id": "1", "status": "completed" } });
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t/1", "status": "completed" });
        assert_eq!(updates(&mut activity, &ended), [update]);
        assert_eq!(activity.end(false), Vec::<Value>::new());
        updates(&mut activity, &json!({ "tool": { "id": "2" } }));
        assert_eq!(activity.end(true)[0]["status"], "failed", "the agent left it open");
    }

    #[test]
    fn reported_plan_and_context_become_updates() {
        let facts = json!({
            "plan": [{ "content": "read", "status": "completed", "priority": "high" }, { "content": "write" }, 7],
            "context": { "used": 10, "size": 100 },
        });
        let told = updates(&mut Activity::default(), &facts);
        let entries = json!([
            { "content": "read", "status": "completed", "priority": "high" },
            { "content": "write", "status": "pending", "priority": "medium" },
        ]);
        assert_eq!((&told[0]["sessionUpdate"], &told[0]["entries"]), (&json!("plan"), &entries));
        assert_eq!(told[1], json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100 }));
        assert_eq!(context(json!({ "context": { "used": 1, "size": 0 } }).as_object()), None);
    }

    #[test]
    fn odd_report_is_left_out() {
        let facts = json!({ "tool": { "id": "1", "kind": "read", "status": "pending", "title": "t" },
            "plan": [{ "content": "c", "status": "pending" }], "context": { "used": 1, "size": 2 } });
        for odd in reshaped(&facts) {
            for update in updates(&mut Activity::default(), &odd) {
                let is_named = update["toolCallId"].is_string() && update["title"].is_string();
                assert!(
                    is_named || update["entries"].is_array() || update["size"].is_u64(),
                    "{odd}"
                );
            }
        }
    }
}
