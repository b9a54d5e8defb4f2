//! Tool call, assembled from successive updates.

use serde_json::{Map, Value};

use crate::cli::activity::tool_update;
use crate::cli::{Action, FileChange, Kind, Question, ToolFacts, cut, is_inside};

/// Maximum number of reports about a call between its beginning and its end, since some programs
/// send an update for each line of output.
const MAX_REPORTS: usize = 20;

/// State of a tool call. A later update carries only what is new.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ToolCall {
    /// Members of `tool_call` and `tool_call_update`, merged by name.
    known: Value,
    /// Diffs that the program reported last: a later update may replace the content by a text.
    diffs: Vec<Value>,
    /// Facts that were reported last, without id and status; empty before the first report.
    reported: Map<String, Value>,
    /// Number of reports after the first.
    reports: usize,
    /// True if the call has ended.
    done: bool,
}

impl ToolCall {
    /// Merges the members of an update or a question.
    pub(super) fn merge(&mut self, call: &Value) {
        if !self.known.is_object() {
            self.known = Map::new().into();
        }
        let Some(known) = self.known.as_object_mut() else { return };
        let new = call.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        known.extend(new.map(|(member, value)| (member.clone(), value.clone())));
        let diffs: Vec<_> = self.content().filter(|block| block["type"] == "diff").collect();
        if !diffs.is_empty() {
            self.diffs = diffs.into_iter().cloned().collect();
        }
    }

    /// Merges an update. Sends a status about the beginning of the call, its later facts, its end
    /// or error, and the files that it changed.
    pub(super) fn update(&mut self, update: &Value) -> Vec<Action> {
        self.merge(update);
        let is_failed = match update["status"].as_str().filter(|_| !self.done) {
            Some("completed") => Some(false),
            Some("failed") => Some(true),
            _ => None,
        };
        self.done |= is_failed.is_some();
        let mut actions: Vec<_> = self.report(is_failed).into_iter().collect();
        if is_failed == Some(false) {
            actions.extend(self.changed_files().into_iter().map(Action::Changed));
        }
        actions
    }

    /// Report of what is new about the call. A call without a title is reported if it failed.
    fn report(&mut self, is_failed: Option<bool>) -> Option<Action> {
        let is_known = !self.reported.is_empty();
        if !is_known && !self.known["title"].is_string() && is_failed != Some(true) {
            return None;
        }
        if is_known && is_failed.is_none() && self.reports == MAX_REPORTS {
            return None;
        }
        let described = self.facts();
        let is_new = |(name, value): &(&String, &Value)| self.reported.get(*name) != Some(*value);
        let mut changed: Map<String, Value> = described
            .iter()
            .filter(is_new)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let text = match is_failed {
            Some(true) => cut(&format!("{} failed: {}", self.kind(), self.why())),
            Some(false) | None if changed.contains_key("title") => {
                cut(&format!("{}: {}", self.kind(), self.title()))
            }
            Some(false) | None => String::new(),
        };
        if changed.is_empty() && is_failed.is_none() {
            return None;
        }
        if !is_known && is_failed.is_none() {
            changed.insert("status".to_owned(), "in_progress".into());
        }
        self.reports += usize::from(is_known);
        self.reported = described;
        Some(Action::Report { text, facts: tool_update(self.id(), is_failed, changed) })
    }

    /// Members that the program has reported, merged by name.
    pub(super) fn known(&self) -> &Value {
        &self.known
    }

    /// True if the call has ended.
    pub(super) fn is_over(&self) -> bool {
        self.done
    }

    /// Question whether the call may run; its id is left null. The working directory is the first
    /// of `directories`.
    pub(super) fn question(&self, directories: &[String]) -> Question {
        let mut input = self.input();
        if self.kind() == "execute" && !input.contains_key("command") {
            input.insert("command".to_owned(), self.title().into());
        }
        let paths: Vec<&str> = self.paths().collect();
        if let ([path], None) = (paths.as_slice(), input.get("path")) {
            input.insert("path".to_owned(), (*path).into());
        }
        let is_inside = |path: &&str| directories.iter().any(|it| is_inside(path, it));
        let inside = !paths.is_empty() && paths.iter().all(is_inside);
        let kind = match self.kind() {
            "read" | "search" => Kind::Read,
            // Permission to edit ends at the task's directories.
            "edit" | "delete" | "move" if inside => Kind::Edit,
            _ => Kind::Run,
        };
        Question {
            id: Value::Null,
            kind,
            tool: self.name().to_owned(),
            input: input.into(),
            description: Some(self.title().to_owned()),
            changes: self.changes(),
            directory: directories.first().cloned(),
            for_session: false,
            vendor_options: Vec::new(),
            tool_call: Some(self.question_facts()).filter(|_| !self.id().is_empty()),
            facts: None,
        }
    }

    /// Input of the tool. Gemini reports that of an MCP tool as text of the call.
    fn input(&self) -> Map<String, Value> {
        if let Some(input) = self.known["rawInput"].as_object() {
            return input.clone();
        }
        let texts = self.content().filter_map(|block| block["content"]["text"].as_str());
        texts.filter_map(|text| serde_json::from_str(text).ok()).next().unwrap_or_default()
    }

    /// Name of the tool. Gemini has it only in the call's id, `NAME__NAME_TIME_COUNT`; the kinds of
    /// its own tools say enough.
    fn name(&self) -> &str {
        let id = || self.known["toolCallId"].as_str()?.split_once("__mcp_");
        let of_server = || id().map(|(name, _)| name).filter(|name| name.starts_with("mcp_"));
        self.known["_meta"]["tool_name"].as_str().or_else(of_server).unwrap_or(self.kind())
    }

    /// Facts of the call for editors, without id and status.
    fn facts(&self) -> Map<String, Value> {
        let (id, name, title) = (self.id(), self.name(), self.title());
        let kind = self.known["kind"].as_str().unwrap_or_default();
        let name = if name == self.kind() { "" } else { name };
        let output = self.output();
        let (input, locations) = (Some(&self.known["rawInput"]), Some(&self.known["locations"]));
        ToolFacts { id, name, title, kind, input, locations, output: output.as_ref() }.described()
    }

    /// Output of the call: its texts, or else the program's raw output.
    fn output(&self) -> Option<Value> {
        // Some programs show the input as a text before the call runs.
        if self.known["status"] == "pending" {
            return None;
        }
        let texts = self.content().filter_map(|block| block["content"]["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        let raw = Some(&self.known["rawOutput"]).filter(|output| !output.is_null());
        Some(text).filter(|text| !text.is_empty()).map(Value::from).or_else(|| raw.cloned())
    }

    /// Facts of the call for a question about it: `id`, `kind`, `title` and `locations`.
    fn question_facts(&self) -> Value {
        let mut facts = self.facts();
        facts.retain(|name, _| matches!(name.as_str(), "kind" | "title" | "locations"));
        facts.insert("id".to_owned(), self.id().into());
        facts.into()
    }

    fn id(&self) -> &str {
        self.known["toolCallId"].as_str().unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.known["kind"].as_str().unwrap_or("tool")
    }

    fn title(&self) -> &str {
        let id = || self.known["toolCallId"].as_str();
        self.known["title"].as_str().or_else(id).unwrap_or_default()
    }

    fn why(&self) -> &str {
        let texts = self.content().filter_map(|block| block["content"]["text"].as_str());
        texts.last().unwrap_or_else(|| self.title())
    }

    fn content(&self) -> impl Iterator<Item = &Value> {
        self.known["content"].as_array().into_iter().flatten()
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let locations = self.known["locations"].as_array().into_iter().flatten();
        locations.filter_map(|location| location["path"].as_str())
    }

    /// Files that an ended call changed. Without a diff, an edit names its files all the same.
    fn changed_files(&self) -> Vec<FileChange> {
        let known = self.output_diff().map(|change| vec![change]);
        let known = known.unwrap_or_else(|| self.changes());
        if !known.is_empty() || !matches!(self.kind(), "edit" | "delete" | "move") {
            return known;
        }
        let created = self.created();
        let named = || self.paths().map(|path| FileChange { path: path.to_owned(), diff: None });
        created.map_or_else(|| named().collect(), |change| vec![change])
    }

    /// Unified diff of OpenCode's output, which has the line numbers of the whole file.
    fn output_diff(&self) -> Option<FileChange> {
        let diff = self.known["rawOutput"]["metadata"]["diff"].as_str()?;
        let begin = if diff.starts_with("--- ") { 0 } else { diff.find("\n--- ")? + 1 };
        let mut paths = self.paths();
        let (path, None) = (paths.next()?, paths.next()) else { return None };
        Some(FileChange { path: path.to_owned(), diff: Some(diff[begin..].to_owned()) })
    }

    /// File that OpenCode wrote anew, which it reports without a diff.
    fn created(&self) -> Option<FileChange> {
        if self.known["rawOutput"]["metadata"]["exists"] != false {
            return None;
        }
        let input = &self.known["rawInput"];
        Some(FileChange::between(input["filePath"].as_str()?, None, input["content"].as_str()?))
    }

    /// Files that the call changes, from the diffs that it reports.
    fn changes(&self) -> Vec<FileChange> {
        if let Some(change) = self.merged_change(&self.diffs) {
            return vec![change];
        }
        let change = |diff: &Value| {
            let before = diff["oldText"].as_str().filter(|text| !text.is_empty());
            Some(FileChange::between(diff["path"].as_str()?, before, diff["newText"].as_str()?))
        };
        self.diffs.iter().filter_map(change).collect()
    }

    /// Builds one diff with the right line numbers from Vibe's output: the replaced pieces, and the
    /// file's previous content.
    fn merged_change(&self, diffs: &[Value]) -> Option<FileChange> {
        let before = self.known["rawOutput"]["previousContent"].as_str()?;
        let path = diffs.first()?["path"].as_str()?;
        let mut after = String::new();
        let mut rest = before;
        for diff in diffs {
            let (old, new) = (diff["oldText"].as_str()?, diff["newText"].as_str()?);
            let (unchanged, tail) = rest.split_once(old)?;
            after.push_str(unchanged);
            after.push_str(new);
            rest = tail;
        }
        after.push_str(rest);
        Some(FileChange::between(path, Some(before), &after))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changes(updates: &[Value]) -> Vec<FileChange> {
        let mut call = ToolCall::default();
        let actions = updates.iter().flat_map(|update| call.update(update)).collect::<Vec<_>>();
        let change =
            |action| if let Action::Changed(change) = action { Some(change) } else { None };
        actions.into_iter().filter_map(change).collect()
    }

    fn edit(path: &str) -> Value {
        json!({ "toolCallId": "1", "title": "write", "kind": "edit", "locations": [{ "path": path }] })
    }

    /// Reported text and facts of each update.
    fn reports(call: &mut ToolCall, updates: &[Value]) -> Vec<(String, Value)> {
        let actions = updates.iter().flat_map(|update| call.update(update));
        let report = |action| {
            let Action::Report { text, mut facts } = action else { return None };
            Some((text, facts["tool"].take()))
        };
        actions.filter_map(report).collect()
    }

    #[test]
    fn later_facts_of_call_are_reported() {
        let output = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let reported = reports(
            &mut ToolCall::default(),
            &[
                json!({ "toolCallId": "1", "title": "Terminal", "kind": "execute", "status": "pending" }),
                json!({ "toolCallId": "1", "title": "ls -l", "rawInput": { "command": "ls -l" } }),
                json!({ "toolCallId": "1", "status": "in_progress" }),
                json!({ "toolCallId": "1", "locations": [{ "path": "/w", "line": 2 }], "content": output("a") }),
                json!({ "toolCallId": "1", "status": "completed", "content": output("a\nb") }),
                json!({ "toolCallId": "1", "status": "completed", "title": "Listed" }),
            ],
        );
        let wanted = [
            (
                "execute: Terminal",
                json!({ "id": "1", "status": "in_progress", "title": "Terminal", "kind": "execute" }),
            ),
            (
                "execute: ls -l",
                json!({ "id": "1", "title": "ls -l", "input": { "command": "ls -l" } }),
            ),
            ("", json!({ "id": "1", "locations": [{ "path": "/w", "line": 2 }], "output": "a" })),
            ("", json!({ "id": "1", "status": "completed", "output": "a\nb" })),
            ("execute: Listed", json!({ "id": "1", "title": "Listed" })),
        ];
        assert_eq!(reported, wanted.map(|(text, facts)| (text.to_owned(), facts)));
    }

    #[test]
    fn reports_of_call_are_limited() {
        let mut call = ToolCall::default();
        let title = |n| json!({ "toolCallId": "1", "title": format!("step {n}") });
        let reported = reports(&mut call, &(0..100).map(title).collect::<Vec<_>>());
        assert_eq!(reported.len(), MAX_REPORTS + 1);
        let ended = reports(&mut call, &[json!({ "status": "failed" })]);
        assert_eq!(ended[0].1["status"], "failed");
        assert_eq!(ended[0].1["title"], "step 99");
    }

    #[test]
    fn earlier_diff_survives_other_content() {
        let asked = json!({ "content": [{ "type": "diff", "path": "/w/a", "oldText": "1\n", "newText": "2\n" }] });
        let text =
            json!([{ "type": "content", "content": { "type": "text", "text": "Wrote it." } }]);
        let ended = json!({ "status": "completed", "content": text });
        let made = changes(&[edit("/w/a"), asked.clone(), ended]);
        assert_eq!(made, [FileChange::between("/w/a", Some("1\n"), "2\n")]);
        let failed = json!({ "status": "failed", "content": text });
        assert_eq!(changes(&[edit("/w/a"), asked, failed]), []);
    }

    #[test]
    fn edit_without_diff_names_files() {
        let ended = json!({ "status": "completed" });
        let named = FileChange { path: "/w/a".into(), diff: None };
        assert_eq!(changes(&[edit("/w/a"), ended.clone()]), [named]);
        let read = json!({ "toolCallId": "1", "kind": "read", "locations": [{ "path": "/w/a" }] });
        assert_eq!(changes(&[read, ended]), []);
        let wrote = json!({ "status": "completed", "rawInput": { "filePath": "/w/a", "content": "x\n" },
            "rawOutput": { "metadata": { "exists": false } } });
        assert_eq!(changes(&[edit("/w/a"), wrote]), [FileChange::between("/w/a", None, "x\n")]);
    }

    #[test]
    fn unified_diff_of_output_wins() {
        let piece = json!([{ "type": "diff", "path": "/w/a", "oldText": "2", "newText": "3" }]);
        let diff = "--- /w/a\n+++ /w/a\n@@ -7,1 +7,1 @@\n-2\n+3\n";
        let output = |diff: &str| json!({ "status": "completed", "content": piece, "rawOutput": { "metadata": { "diff": diff } } });
        let made = changes(&[edit("/w/a"), output(&format!("Index: /w/a\n===\n{diff}"))]);
        assert_eq!(made, [FileChange { path: "/w/a".into(), diff: Some(diff.into()) }]);
        let made = changes(&[edit("/w/a"), output("no diff")]);
        assert_eq!(made, [FileChange::between("/w/a", Some("2"), "3")]);
    }
}
