//! Changed files as tool calls: editors show the diffs, and follow along. Agents report a change as
//! an artifact whose metadata has the kind `file-change` and the path, with a unified diff.

use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{member, message::joined_text, task::Artifact};
use serde_json::{Value, json};
use std::path::Path;

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 200;

/// Maximum number of changed places that are shown of a diff.
const MAX_HUNKS: usize = 200;

/// Path of the changed file; `None` if the artifact is something else.
pub(super) fn path_of(artifact: &Artifact) -> Option<&str> {
    let facts = artifact.metadata.as_ref()?;
    let path = facts.get("path")?.as_str()?;
    (facts.get("kind")? == "file-change").then_some(path)
}

/// Tool call with the id `call` that changed the file.
pub(super) fn tool_call(call: &str, path: &str, artifact: &Artifact) -> Value {
    let mut update = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call,
        "title": plain_text::line(path, MAX_TITLE),
        "kind": "edit",
        "status": "completed",
        "content": diffs(path, &joined_text(&artifact.parts)),
    });
    // The protocol has absolute paths only.
    if Path::new(path).is_absolute() {
        member::set(&mut update, "locations", json!([{ "path": path }]));
    }
    update
}

/// ACP's diff of each changed place of a unified diff. A last line has a line feed if the file has
/// one there.
pub(super) fn diffs(path: &str, unified: &str) -> Vec<Value> {
    let is_new = unified.starts_with("--- /dev/null");
    let mut hunks: Vec<(String, String)> = Vec::new();
    // First character of the line before.
    let mut before = None;
    for line in unified.split_inclusive('\n') {
        if line.starts_with("@@ ") {
            if hunks.len() == MAX_HUNKS {
                break;
            }
            hunks.push(<_>::default());
            before = None;
            continue;
        }
        // Lines before the first place are the names of the file.
        let Some((old, new)) = hunks.last_mut() else { continue };
        let mark = line.chars().next();
        match (mark, line.get(1..)) {
            (Some(' '), Some(text)) => {
                old.push_str(text);
                new.push_str(text);
            }
            (Some('-'), Some(text)) => old.push_str(text),
            (Some('+'), Some(text)) => new.push_str(text),
            // `\ No newline at end of file` concerns the line before.
            (Some('\\'), _) => {
                if matches!(before, Some(' ' | '-')) && old.ends_with('\n') {
                    old.pop();
                }
                if matches!(before, Some(' ' | '+')) && new.ends_with('\n') {
                    new.pop();
                }
            }
            _ => {}
        }
        before = mark;
    }
    let diff = |(old, new): (String, String)| {
        let old = Some(old).filter(|_| !is_new);
        json!({ "type": "diff", "path": path, "oldText": old, "newText": new })
    };
    hunks.into_iter().map(diff).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{id::ArtifactId, message::Part};

    fn change(path: &str, diff: &str) -> Artifact {
        let facts = json!({ "path": path, "kind": "file-change" });
        let mut made = Artifact::new(ArtifactId::new("change"), vec![Part::text(diff)]);
        made.metadata = facts.as_object().cloned();
        made
    }

    #[test]
    fn each_hunk_becomes_diff() {
        let diff = "--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,0 @@\n-nine\n\\ No newline at end of file\n";
        let made = change("/w/a", diff);
        assert_eq!(path_of(&made), Some("/w/a"));
        let call = tool_call("t/1", "/w/a", &made);
        assert_eq!((&call["kind"], &call["status"]), (&json!("edit"), &json!("completed")));
        assert_eq!(call["locations"], json!([{ "path": "/w/a" }]));
        let wanted = json!([
            { "type": "diff", "path": "/w/a", "oldText": "one\ntwo\n", "newText": "one\n2\n" },
            { "type": "diff", "path": "/w/a", "oldText": "nine", "newText": "" },
        ]);
        assert_eq!(call["content"], wanted);
    }

    #[test]
    fn diff_keeps_missing_line_feeds() {
        const NONE: &str = "\\ No newline at end of file\n";
        for (lines, old, new) in [
            (format!("-a\n{NONE}+a\n"), "a", "a\n"),
            (format!("-a\n+a\n{NONE}"), "a\n", "a"),
            (format!("-a\n{NONE}+b\n{NONE}"), "a", "b"),
            (format!("-a\n+b\n c\n{NONE}"), "a\nc", "b\nc"),
            ("-a\n+b\n".to_owned(), "a\n", "b\n"),
        ] {
            let shown = diffs("a", &format!("@@ -1 +1 @@\n{lines}"));
            assert_eq!((&shown[0]["oldText"], &shown[0]["newText"]), (&json!(old), &json!(new)));
        }
    }

    #[test]
    fn new_file_has_no_old_text() {
        let made = change("b", "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+x\n");
        let call = tool_call("t/1", "b", &made);
        let diff = json!([{ "type": "diff", "path": "b", "oldText": null, "newText": "x\n" }]);
        assert_eq!((&call["content"], &call["locations"]), (&diff, &Value::Null));
        assert_eq!(tool_call("t/1", "b", &change("b", "no diff"))["content"], json!([]));
        assert_eq!(path_of(&Artifact::new(ArtifactId::new("a"), vec![])), None);
    }

    #[test]
    fn hunks_are_limited() {
        let many = "@@ -1 +1 @@\n-a\n+b\n".repeat(MAX_HUNKS + 1);
        assert_eq!(diffs("a", &many).len(), MAX_HUNKS);
    }
}
