//! Files that the program changed, as artifacts: path and diff.

use serde_json::json;
use similar::TextDiff;

use crate::{Artifact, Part, PartContent};

/// Maximum size of a diff; a longer one is cut. The file itself has all of it.
const MAX_DIFF: usize = 128 * 1024;

/// One change of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    /// Path, as the program reports it.
    pub path: String,
    /// Unified diff; `None` if the program does not report one.
    pub diff: Option<String>,
}

impl FileChange {
    /// Creates a change between two texts. Without `before` the file is new.
    pub fn between(path: impl Into<String>, before: Option<&str>, after: &str) -> Self {
        let path = path.into();
        let (old, new) = (before.map_or("/dev/null", |_| path.as_str()), path.as_str());
        let texts = TextDiff::from_lines(before.unwrap_or_default(), after);
        let diff = texts.unified_diff().header(old, new).to_string();
        Self { path, diff: Some(diff) }
    }

    /// Creates the removal of a file with that text.
    pub fn removal(path: impl Into<String>, before: &str) -> Self {
        let path = path.into();
        let texts = TextDiff::from_lines(before, "");
        let diff = texts.unified_diff().header(&path, "/dev/null").to_string();
        Self { path, diff: Some(diff) }
    }

    /// Artifact of the change, with the id `change:PATH`. Each change of the file is one part of
    /// the media type `text/x-diff`.
    pub fn artifact(&self) -> Artifact {
        let diff = self.diff.as_deref().unwrap_or_default();
        let (shown, rest) = diff.split_at(diff.floor_char_boundary(MAX_DIFF));
        let mut text = shown.to_owned();
        if !rest.is_empty() {
            text.push_str("\n… cut here\n");
        }
        let part = Part {
            filename: Some(self.path.clone()),
            media_type: Some("text/x-diff".to_owned()),
            ..Part::new(PartContent::Text(text))
        };
        Artifact::new(format!("change:{}", self.path), vec![part])
            .named(&self.path)
            .described("A changed file")
            .with_metadata(&json!({ "path": self.path, "kind": "file-change" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_unified_diff() {
        let change = FileChange::between("/w/a.txt", Some("one\ntwo\n"), "one\nthree\n");
        assert_eq!(
            change.diff.as_deref(),
            Some("--- /w/a.txt\n+++ /w/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n")
        );
        let unended = FileChange::between("a", Some("1"), "2").diff.unwrap_or_default();
        let end = "\n\\ No newline at end of file\n";
        assert_eq!(unended, format!("--- a\n+++ a\n@@ -1 +1 @@\n-1{end}+2{end}"));
        let created = FileChange::between("b", None, "x\n").diff.unwrap_or_default();
        assert!(created.starts_with("--- /dev/null\n+++ b\n"), "{created}");
        let removed = FileChange::removal("c", "x\n").diff.unwrap_or_default();
        assert_eq!(removed, "--- c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn huge_diff_is_cut_between_characters() {
        let change = FileChange { path: "p".into(), diff: Some("ä€".repeat(MAX_DIFF)) };
        let text = change.artifact().joined_text();
        assert!(text.ends_with("… cut here\n"));
        assert!(text.len() < MAX_DIFF + 20);
    }
}
