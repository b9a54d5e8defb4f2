//! Ids of a run's tool calls: each is unique within the run, and ended at the end of the run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::tool_ended;

/// Maximum number of calls with tracked ids; further calls are reported as the program does.
const MAX_CALLS: usize = 10_000;

/// Tool calls that a run has reported, by the id that the program gave each.
#[derive(Debug, Default)]
pub(super) struct ReportedCalls(BTreeMap<String, ReportedCall>);

/// Latest call with an id.
#[derive(Debug, Default)]
struct ReportedCall {
    /// Number of calls that had this id so far, with this one.
    count: usize,
    is_open: bool,
}

impl ReportedCall {
    /// Id of the call for clients. Programs use an id again for another call.
    fn id(&self, program_id: &str) -> String {
        match self.count {
            0 | 1 => program_id.to_owned(),
            count => format!("{program_id}#{count}"),
        }
    }
}

impl ReportedCalls {
    /// Notes the tool call that these facts report, if any, and makes its id unique.
    pub(super) fn note(&mut self, facts: &mut Map<String, Value>) {
        let Some(tool) = facts.get_mut("tool") else { return };
        let Some(id) = tool["id"].as_str().filter(|id| !id.is_empty()).map(ToOwned::to_owned)
        else {
            return;
        };
        if self.0.len() >= MAX_CALLS && !self.0.contains_key(&id) {
            return;
        }
        let call = self.0.entry(id.clone()).or_default();
        let status = tool["status"].as_str();
        let is_end = matches!(status, Some("completed" | "failed"));
        if call.count == 0 || (status.is_some() && !is_end && !call.is_open) {
            call.count += 1;
        }
        if status.is_some() {
            call.is_open = !is_end;
        }
        if let Some(members) = tool.as_object_mut() {
            members.insert("id".to_owned(), call.id(&id).into());
        }
    }

    /// Id for clients of the latest call to which the program gave this id.
    pub(super) fn id(&self, program_id: &str) -> String {
        self.0.get(program_id).map_or_else(|| program_id.to_owned(), |call| call.id(program_id))
    }

    /// Facts of the ends of the calls that are open.
    pub(super) fn end(&mut self, is_failed: bool) -> Vec<Map<String, Value>> {
        let open = self.0.iter_mut().filter(|(_, call)| call.is_open);
        open.map(|(program_id, call)| {
            call.is_open = false;
            tool_ended(&call.id(program_id), is_failed)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn noted(calls: &mut ReportedCalls, id: &str, status: &str) -> String {
        let mut facts = Map::from_iter([("tool".to_owned(), json!({ "id": id }))]);
        if !status.is_empty() {
            facts["tool"]["status"] = status.into();
        }
        calls.note(&mut facts);
        facts["tool"]["id"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn reused_id_becomes_unique() {
        let mut calls = ReportedCalls::default();
        let ids = [
            ("1", "in_progress", "1"),
            ("1", "in_progress", "1"),
            ("1", "completed", "1"),
            ("1", "", "1"),
            ("1", "in_progress", "1#2"),
            ("1", "", "1#2"),
            ("1", "failed", "1#2"),
            ("2", "failed", "2"),
            ("2", "pending", "2#2"),
            ("", "pending", ""),
        ];
        for (given, status, wanted) in ids {
            assert_eq!(noted(&mut calls, given, status), wanted, "{status}");
        }
        assert_eq!((calls.id("1"), calls.id("3")), ("1#2".to_owned(), "3".to_owned()));
        let ended: Vec<_> =
            calls.end(true).into_iter().map(|facts| facts["tool"].clone()).collect();
        assert_eq!(ended, [json!({ "id": "2#2", "status": "failed" })]);
        assert_eq!(calls.end(true), [], "each ends once");
    }
}
