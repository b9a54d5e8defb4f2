//! Tool calls of an agent at work: a line about each one that has ended.

use crate::task_snapshot::progress_message;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most calls that are open at the same time; the ends of further ones have no line.
const MAX_OPEN: usize = 64;

/// Open tool calls, with what the agent said when they began.
#[derive(Clone, Debug, Default)]
pub struct ToolCalls(BTreeMap<String, String>);

impl ToolCalls {
    /// Returns the line about the call that an event of a task ends, if it ends one.
    pub fn apply(&mut self, event: &Value) -> Option<String> {
        let tool = &event["metadata"]["tool"];
        let id = tool["id"].as_str()?;
        if let Some(begun) = progress_message(event)
            && (self.0.len() < MAX_OPEN || self.0.contains_key(id))
        {
            self.0.insert(id.to_owned(), begun);
        }
        let mark = match tool["status"].as_str()? {
            "completed" => '✓',
            "failed" => '✗',
            _ => return None,
        };
        self.0.remove(id).map(|begun| format!("{mark} {begun}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(id: &str, status: &str, said: Option<&str>) -> Value {
        let message = said.map(|said| json!({ "parts": [{ "kind": "text", "text": said }] }));
        json!({ "kind": "status-update", "status": { "state": "working", "message": message },
            "metadata": { "tool": { "id": id, "status": status } } })
    }

    #[test]
    fn ended_call_has_line_of_its_begin() {
        let mut calls = ToolCalls::default();
        assert_eq!(calls.apply(&event("1", "in_progress", Some("runs ls"))), None);
        assert_eq!(calls.apply(&event("2", "in_progress", Some("reads a"))), None);
        assert_eq!(calls.apply(&event("2", "failed", None)).as_deref(), Some("✗ reads a"));
        assert_eq!(calls.apply(&event("1", "completed", None)).as_deref(), Some("✓ runs ls"));
        assert_eq!(calls.apply(&event("1", "completed", None)), None);
        assert_eq!(calls.apply(&json!({ "metadata": { "tool": null } })), None);
    }

    #[test]
    fn flood_of_open_calls_is_bounded() {
        let mut calls = ToolCalls::default();
        (0..1_000).for_each(|id| drop(calls.apply(&event(&id.to_string(), "pending", Some("x")))));
        assert_eq!(calls.0.len(), MAX_OPEN);
    }
}
