//! Tool calls, plans, commands and the size of the context that an agent reports in the metadata of
//! a status: the members `tool`, `plan`, `commands` and `context`.

use super::commands;
use a2a_hub_core::text::{plain_text, terminal};
use a2a_hub_protocol::{id::TaskId, member, message::Metadata};
use serde_json::{Value, json};
use std::{collections::HashMap, path::Path};

/// Maximum length of a title or an entry in characters, and of an id in bytes.
const MAX_LINE: usize = 200;
const MAX_ID: usize = 200;

/// Maximum number of entries of a plan, of tool calls of a turn, and of a call's locations.
const MAX_ENTRIES: usize = 100;
const MAX_TOOLS: usize = 10_000;
const MAX_LOCATIONS: usize = 100;

/// Maximum length of a tool's output as text, in characters.
const MAX_OUTPUT: usize = 20_000;

/// Maximum size of an input as JSON that is compared with that of a question.
const MAX_INPUT: usize = 16 << 10;

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

/// Tool call of a permission request.
#[derive(Debug, PartialEq)]
pub(super) struct PermissionCall {
    /// Id of the call for the client.
    pub(super) id: String,
    /// True if the agent reports the call, and so its end.
    pub(super) is_reported: bool,
}

/// Tool calls of a turn that the client knows, by their ids there. Each has one `tool_call`, and is
/// open until it is completed or failed.
#[derive(Debug, Default)]
pub(super) struct TurnActivity {
    calls: HashMap<String, KnownCall>,
}

/// Latest facts of a tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownCall {
    /// Number of calls before this one.
    order: usize,
    pub(super) title: String,
    pub(super) kind: Option<&'static str>,
    name: Option<String>,
    /// Input of the call while it is open, unless it is large.
    pub(super) input: Option<Value>,
    is_open: bool,
    /// True if the user denied the call, and the agent has not reported its state since.
    is_denied: bool,
}

/// Id of a tool call for the client. Agents count their calls anew in each task.
pub(super) fn call_id(task: Option<&TaskId>, id: &str) -> String {
    format!("{}/{id}", task.map_or("task", TaskId::as_str))
}

/// Id of an agent's tool call; `None` if it is no text, empty or too long.
pub(super) fn id_of(tool: &Value) -> Option<&str> {
    tool["id"].as_str().filter(|id| (1..=MAX_ID).contains(&id.len()))
}

/// Kind of a tool call in the words of ACP; `None` for any other value.
pub(super) fn kind_of(tool: &Value) -> Option<&'static str> {
    one_of(&KINDS, &tool["kind"])
}

/// Plain line of a text member; `None` if it is absent or blank.
pub(super) fn line_of(tool: &Value, name: &str) -> Option<String> {
    let line = plain_text::line(tool[name].as_str()?, MAX_LINE);
    (!line.trim().is_empty()).then_some(line)
}

/// Locations of a tool call with absolute paths, the only ones that the protocol has; `None` if the
/// agent reports no list.
pub(super) fn locations_of(tool: &Value) -> Option<Vec<Value>> {
    let location = |location: &Value| {
        let path = location["path"].as_str().filter(|path| Path::new(path).is_absolute())?;
        let line = location["line"].as_u64().filter(|line| u32::try_from(*line).is_ok());
        let mut location = json!({ "path": path });
        if let Some(line) = line {
            member::set(&mut location, "line", line);
        }
        Some(location)
    };
    Some(tool["locations"].as_array()?.iter().filter_map(location).take(MAX_LOCATIONS).collect())
}

impl TurnActivity {
    /// Updates of a status with this metadata.
    pub(super) fn updates(
        &mut self,
        task: Option<&TaskId>,
        facts: Option<&Metadata>,
    ) -> Vec<Value> {
        let Some(facts) = facts else { return Vec::new() };
        let tool = facts.get("tool").and_then(|tool| self.tool(task, tool));
        let plan = facts.get("plan").and_then(plan);
        let commands = commands::update(facts);
        tool.into_iter().chain(plan).chain(commands).chain(context(Some(facts))).collect()
    }

    /// Update of a tool call; `None` without an id.
    fn tool(&mut self, task: Option<&TaskId>, tool: &Value) -> Option<Value> {
        let id = id_of(tool)?;
        let call = call_id(task, id);
        let is_new = !self.calls.contains_key(&call);
        if is_new && self.calls.len() >= MAX_TOOLS {
            return None;
        }
        let name = line_of(tool, "name");
        let title = line_of(tool, "title").or_else(|| {
            is_new.then(|| name.clone().unwrap_or_else(|| plain_text::line(id, MAX_LINE)))
        });
        let kind = kind_of(tool);
        let input = Some(&tool["input"]).filter(|input| input.is_object());
        let state = one_of(&STATES, &tool["status"]).or(is_new.then_some("in_progress"));
        let known = self.known(&call);
        known.title = title.clone().unwrap_or_else(|| std::mem::take(&mut known.title));
        known.kind = kind.or(known.kind);
        known.name = name.clone().or_else(|| known.name.take());
        known.set_input(input);
        if let Some(state) = state {
            known.is_denied = false;
            known.is_open = !matches!(state, "completed" | "failed");
        }
        if !known.is_open {
            known.input = None;
        }
        let kind_of_update = if is_new { "tool_call" } else { "tool_call_update" };
        let mut update = json!({ "sessionUpdate": kind_of_update, "toolCallId": call });
        let output = Some(&tool["output"]).filter(|output| !output.is_null());
        let members = [
            ("title", title.map(Value::from)),
            ("name", name.map(Value::from)),
            ("kind", kind.map(Value::from)),
            ("status", state.map(Value::from)),
            ("rawInput", input.cloned()),
            ("rawOutput", output.cloned()),
            ("content", output.and_then(Value::as_str).and_then(output_content)),
            ("locations", locations_of(tool).map(Value::from)),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                member::set(&mut update, name, value);
            }
        }
        Some(update)
    }

    /// Facts of a tool call of the client's.
    fn known(&mut self, call: &str) -> &mut KnownCall {
        let order = self.calls.len();
        let new = || KnownCall { order, ..KnownCall::default() };
        self.calls.entry(call.to_owned()).or_insert_with(new)
    }

    /// Facts of a tool call; `None` if the client does not know it.
    pub(super) fn get(&self, call: &str) -> Option<&KnownCall> {
        self.calls.get(call)
    }

    /// Id and facts of the task's open tool call with this name and input: the one with the same
    /// input, or else the only one with the name. `None` if several may be meant.
    pub(super) fn similar(
        &self,
        task: &TaskId,
        name: &str,
        input: &Value,
    ) -> Option<(&str, &KnownCall)> {
        let prefix = call_id(Some(task), "");
        let mut open: Vec<_> = self.calls.iter().collect();
        open.retain(|(id, known)| known.is_open && id.starts_with(&prefix));
        open.sort_by_key(|(_, known)| known.order);
        let has_same_input = |known: &KnownCall| {
            known.input.as_ref().is_some_and(|it| {
                let is_command = it["command"].is_string() && it["command"] == input["command"];
                it.as_object().is_some_and(|it| !it.is_empty()) && (it == input || is_command)
            })
        };
        let same = open.iter().rev().find(|(_, known)| has_same_input(known));
        let mut named = open.iter().filter(|(_, known)| known.name.as_deref() == Some(name));
        let only = named.next().filter(|_| named.next().is_none());
        same.or(only).map(|(id, known)| (id.as_str(), *known))
    }

    /// Notes the tool call of a permission request, which is open from then on.
    pub(super) fn note_permission_call(&mut self, call: &str, title: &str, kind: &'static str) {
        let known = self.known(call);
        title.clone_into(&mut known.title);
        known.kind = Some(kind);
        known.is_open = true;
    }

    /// Update of a tool call whose permission was decided. One that the agent does not report ends
    /// with the decision; a denied one that it reports ends with its report, or with the turn.
    pub(super) fn decided(&mut self, call: &PermissionCall, is_allowed: bool) -> Option<Value> {
        let state = match (call.is_reported, is_allowed) {
            (true, true) => "in_progress",
            (true, false) => {
                self.known(&call.id).is_denied = true;
                return None;
            }
            (false, true) => "completed",
            (false, false) => "failed",
        };
        self.known(&call.id).is_open = call.is_reported;
        Some(state_update(&call.id, state))
    }

    /// Ends the calls that the agent left open at the end of its turn, in the order of their
    /// beginnings.
    pub(super) fn end(&mut self, is_failed: bool) -> Vec<Value> {
        let mut open: Vec<_> = self.calls.iter_mut().filter(|(_, known)| known.is_open).collect();
        open.sort_by_key(|(_, known)| known.order);
        let end = |(call, known): (&String, &mut KnownCall)| {
            let is_failed = is_failed || known.is_denied;
            (known.is_open, known.input) = (false, None);
            state_update(call, if is_failed { "failed" } else { "completed" })
        };
        open.into_iter().map(end).collect()
    }
}

impl KnownCall {
    fn set_input(&mut self, input: Option<&Value>) {
        if let Some(input) = input {
            self.input = Some(input.clone()).filter(|it| it.to_string().len() <= MAX_INPUT);
        }
    }
}

fn state_update(call: &str, state: &str) -> Value {
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": state })
}

/// Content of a tool call with this output; `None` if it is blank.
fn output_content(output: &str) -> Option<Value> {
    let cut: String = output.chars().take(MAX_OUTPUT).collect();
    let text = terminal::clean(&cut);
    let block = json!({ "type": "content", "content": { "type": "text", "text": text } });
    (!text.trim().is_empty()).then(|| json!([block]))
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

    fn updates(activity: &mut TurnActivity, facts: &Value) -> Vec<Value> {
        activity.updates(Some(&TaskId::new("t")), facts.as_object())
    }

    #[test]
    fn reported_tool_becomes_tool_call() {
        let mut activity = TurnActivity::default();
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
    fn later_reports_complete_tool_call() {
        let mut activity = TurnActivity::default();
        updates(&mut activity, &json!({ "tool": { "id": "1", "title": "tool" } }));
        let later = json!({ "tool": { "id": "1", "title": "Read a.rs", "kind": "read", "input": { "path": "a.rs" },
            "locations": [{ "path": "/w/a.rs", "line": 7 }, { "path": "a.rs" }, 7], "output": "fn main\u{1b}" } });
        let output =
            json!([{ "type": "content", "content": { "type": "text", "text": "fn main\\u{1b}" } }]);
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t/1", "title": "Read a.rs", "kind": "read",
            "rawInput": { "path": "a.rs" }, "rawOutput": "fn main\u{1b}", "content": output,
            "locations": [{ "path": "/w/a.rs", "line": 7 }] });
        assert_eq!(updates(&mut activity, &later), [update]);
        let data = json!({ "tool": { "id": "1", "status": "completed", "output": { "lines": 1 }, "title": " " } });
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t/1", "status": "completed",
            "rawOutput": { "lines": 1 } });
        assert_eq!(updates(&mut activity, &data), [update]);
    }

    #[test]
    fn reported_plan_and_context_become_updates() {
        let facts = json!({
            "plan": [{ "content": "read", "status": "completed", "priority": "high" }, { "content": "write" }, 7],
            "context": { "used": 10, "size": 100 },
        });
        let told = updates(&mut TurnActivity::default(), &facts);
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
            for update in updates(&mut TurnActivity::default(), &odd) {
                let is_named = update["toolCallId"].is_string() && update["title"].is_string();
                assert!(
                    is_named || update["entries"].is_array() || update["size"].is_u64(),
                    "{odd}"
                );
            }
        }
    }
}
