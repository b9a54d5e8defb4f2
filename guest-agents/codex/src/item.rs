//! Items of a turn: messages, commands, changes, calls.

use a2a_hub_sdk::cli::{FileChange, ToolFacts, cut, running};
use a2a_hub_sdk::foreign::{self, lenient_list, lenient_string, lenient_text};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// Item of a turn, reported at its start and at its end.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum TurnItem {
    AgentMessage {
        #[serde(default, deserialize_with = "lenient_string")]
        text: String,
    },
    CommandExecution {
        #[serde(default, deserialize_with = "lenient_string")]
        command: String,
        #[serde(default, deserialize_with = "lenient_list")]
        command_actions: Vec<CommandAction>,
    },
    FileChange {
        #[serde(default, deserialize_with = "lenient_string")]
        id: String,
        #[serde(default, deserialize_with = "lenient_list")]
        changes: Vec<PatchedFile>,
        #[serde(default, deserialize_with = "lenient_string")]
        status: String,
    },
    McpToolCall {
        #[serde(default, deserialize_with = "lenient_string")]
        server: String,
        #[serde(default, deserialize_with = "lenient_string")]
        tool: String,
        #[serde(default)]
        arguments: Value,
    },
    WebSearch {
        #[serde(default, deserialize_with = "lenient_string")]
        query: String,
    },
    ImageView {
        #[serde(default, deserialize_with = "lenient_string")]
        path: String,
    },
    CollabAgentToolCall {
        #[serde(default, deserialize_with = "lenient_string")]
        tool: String,
        #[serde(default, deserialize_with = "lenient_text")]
        prompt: Option<String>,
    },
    ContextCompaction,
    #[serde(other)]
    Unknown,
}

/// Command as the model wrote it, without the shell around it.
#[derive(Debug, Deserialize)]
pub(crate) struct CommandAction {
    command: String,
}

/// Change of a file by a patch.
#[derive(Debug, Clone)]
pub(crate) struct PatchedFile {
    pub(crate) path: String,
    pub(crate) kind: PatchKind,
    /// Whole text of an added or deleted file; hunks of an updated one.
    pub(crate) diff: String,
}

#[derive(Debug, Clone)]
pub(crate) enum PatchKind {
    Add,
    Delete,
    Update { move_path: Option<String> },
}

/// Reads a change of any shape, since its file may not be missing in a question.
impl<'de> Deserialize<'de> for PatchedFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let change = Value::deserialize(from)?;
        let text = |of: &Value| foreign::text(of).map(|text| text.into_owned());
        let kind = &change["kind"];
        let kind = match text(&kind["type"]).or_else(|| text(kind)).as_deref() {
            Some("add") => PatchKind::Add,
            Some("delete") => PatchKind::Delete,
            _ => PatchKind::Update { move_path: text(&kind["move_path"]) },
        };
        let path = text(&change["path"]).unwrap_or_else(|| change.to_string());
        Ok(Self { path, kind, diff: text(&change["diff"]).unwrap_or_default() })
    }
}

impl TurnItem {
    /// Status text for the start of the item.
    pub(crate) fn status_text(&self) -> Option<String> {
        match self {
            Self::CommandExecution { command, command_actions } => {
                let plain: Vec<&str> = command_actions.iter().map(|a| a.command.as_str()).collect();
                let command = if plain.is_empty() { command.clone() } else { plain.join(" && ") };
                Some(running("shell", &json!({ "command": command })))
            }
            Self::FileChange { changes, .. } => {
                Some(cut(&format!("running apply_patch: {}", files(changes))))
            }
            Self::McpToolCall { server, tool, arguments } => {
                Some(running(&format!("{server}.{tool}"), arguments))
            }
            Self::WebSearch { query } => Some(running("web_search", &json!({ "query": query }))),
            Self::ImageView { path } => Some(running("view_image", &json!({ "path": path }))),
            Self::CollabAgentToolCall { tool, prompt } => {
                Some(running(tool, &json!({ "description": prompt })))
            }
            Self::ContextCompaction => Some("summing up the conversation so far".into()),
            Self::AgentMessage { .. } | Self::Unknown => None,
        }
    }

    /// Facts of the item with that id as a tool call, for editors; `None` if it is none. `title` is
    /// the item's status text.
    pub(crate) fn facts(&self, id: &str, title: &str) -> Option<Map<String, Value>> {
        let (name, kind, input) = match self {
            Self::CommandExecution { command, .. } => {
                ("shell", "execute", json!({ "command": command }))
            }
            Self::FileChange { changes, .. } => {
                let paths: Vec<_> = changes.iter().map(|change| change.path.as_str()).collect();
                ("apply_patch", "edit", json!({ "paths": paths }))
            }
            Self::McpToolCall { tool, arguments, .. } => {
                (tool.as_str(), "other", arguments.clone())
            }
            Self::WebSearch { query } => ("web_search", "fetch", json!({ "query": query })),
            Self::ImageView { path } => ("view_image", "read", json!({ "path": path })),
            Self::CollabAgentToolCall { tool, prompt } => {
                (tool.as_str(), "other", json!({ "description": prompt }))
            }
            Self::AgentMessage { .. } | Self::ContextCompaction | Self::Unknown => return None,
        };
        let title = title.strip_prefix("running ").unwrap_or(title);
        let input = Some(&input);
        Some(ToolFacts { id, name, title, kind, input, ..ToolFacts::default() }.begun())
    }
}

/// Text such as "add a.txt, update b.txt".
pub(crate) fn files(changes: &[PatchedFile]) -> String {
    let words: Vec<_> = changes.iter().map(PatchedFile::words).collect();
    words.join(", ")
}

impl PatchedFile {
    /// Paths that the patch touches: of the file, and of its new place.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let moved = match &self.kind {
            PatchKind::Update { move_path } => move_path.as_deref(),
            PatchKind::Add | PatchKind::Delete => None,
        };
        [self.path.as_str()].into_iter().chain(moved)
    }

    fn words(&self) -> String {
        match &self.kind {
            PatchKind::Add => format!("add {}", self.path),
            PatchKind::Delete => format!("delete {}", self.path),
            PatchKind::Update { move_path: None } => format!("update {}", self.path),
            PatchKind::Update { move_path: Some(to) } => format!("move {} to {to}", self.path),
        }
    }

    /// Change of the file with a unified diff.
    pub(crate) fn change(&self) -> FileChange {
        match &self.kind {
            PatchKind::Add => FileChange::between(&self.path, None, &self.diff),
            PatchKind::Delete => FileChange::removal(&self.path, &self.diff),
            PatchKind::Update { move_path } => {
                let path = move_path.clone().unwrap_or_else(|| self.path.clone());
                // The new path of a moved file follows the hunks.
                let hunks = self.diff.split("\n\nMoved to: ").next().unwrap_or_default();
                // An empty line of the context is a blank, and a line of Windows ends with a CR.
                let hunks = hunks.trim_end_matches('\n');
                let diff = format!("--- {}\n+++ {path}\n{hunks}\n", self.path);
                FileChange { path, diff: Some(diff) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_of_patch_stays() {
        let changed = |diff: &str| {
            let file = json!({ "path": "/w/a", "kind": { "type": "update" }, "diff": diff });
            PatchedFile::deserialize(file).unwrap().change().diff.unwrap_or_default()
        };
        for hunks in ["@@ -1,2 +1,2 @@\n-1\n+2\n \n", "@@ -1 +1 @@\n-1\r\n+2\r\n"] {
            assert_eq!(changed(hunks), format!("--- /w/a\n+++ /w/a\n{hunks}"));
        }
        let unended = "@@ -1 +1 @@\n-1\n+2\n\\ No newline at end of file";
        assert_eq!(changed(unended), format!("--- /w/a\n+++ /w/a\n{unended}\n"));
    }
}
