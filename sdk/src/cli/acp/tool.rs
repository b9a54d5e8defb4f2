//! Tool call, assembled from successive updates.

use serde_json::{Map, Value};

use crate::cli::{Action, FileChange, Kind, Question, cut, is_below};

/// State of a tool call. A later update carries only what is new.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ToolCall {
    /// Members of `tool_call` and `tool_call_update`, merged by name.
    known: Value,
    /// True if a status about the call was sent.
    told: bool,
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
    }

    /// Merges an update. Sends one status about the call, its error, and the files that it changed.
    pub(super) fn update(&mut self, update: &Value) -> Vec<Action> {
        self.merge(update);
        let mut actions = Vec::new();
        if !self.told && self.known["title"].is_string() {
            self.told = true;
            actions.push(Action::Say(cut(&format!("{}: {}", self.kind(), self.title()))));
        }
        match update["status"].as_str() {
            Some("completed") if !self.done => {
                self.done = true;
                actions.extend(self.changes().into_iter().map(Action::Changed));
            }
            Some("failed") if !self.done => {
                self.done = true;
                actions.push(Action::Say(cut(&format!("{} failed: {}", self.kind(), self.why()))));
            }
            _ => {}
        }
        actions
    }

    /// True if the call has ended.
    pub(super) fn is_over(&self) -> bool {
        self.done
    }

    /// Question whether the call may run; its id is left null.
    pub(super) fn question(&self, directory: &str) -> Question {
        let mut input = self.input();
        if self.kind() == "execute" && !input.contains_key("command") {
            input.insert("command".to_owned(), self.title().into());
        }
        let paths: Vec<&str> = self.paths().collect();
        if let ([path], None) = (paths.as_slice(), input.get("path")) {
            input.insert("path".to_owned(), (*path).into());
        }
        let inside = !paths.is_empty() && paths.iter().all(|path| is_below(path, directory));
        let kind = match self.kind() {
            "read" | "search" => Kind::Read,
            // Permission to edit ends at the task's directory.
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
            directory: Some(directory.to_owned()),
            for_session: false,
            own_choices: Vec::new(),
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

    /// Files that the call changed, from the diffs that it reports.
    fn changes(&self) -> Vec<FileChange> {
        let diffs: Vec<_> = self.content().filter(|block| block["type"] == "diff").collect();
        if let Some(change) = self.whole_change(&diffs) {
            return vec![change];
        }
        let change = |diff: &&Value| {
            let before = diff["oldText"].as_str().filter(|text| !text.is_empty());
            Some(FileChange::between(diff["path"].as_str()?, before, diff["newText"].as_str()?))
        };
        diffs.iter().filter_map(change).collect()
    }

    /// Builds one diff with the right line numbers from Vibe's output: the replaced pieces, and the
    /// file's previous content.
    fn whole_change(&self, diffs: &[&Value]) -> Option<FileChange> {
        let before = self.known["rawOutput"]["previousContent"].as_str()?;
        let path = diffs.first()?["path"].as_str()?;
        let mut after = String::new();
        let mut rest = before;
        for diff in diffs {
            let (old, new) = (diff["oldText"].as_str()?, diff["newText"].as_str()?);
            let (kept, behind) = rest.split_once(old)?;
            after.push_str(kept);
            after.push_str(new);
            rest = behind;
        }
        after.push_str(rest);
        Some(FileChange::between(path, Some(before), &after))
    }
}
