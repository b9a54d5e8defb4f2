//! Changes of files: in questions, before they are made, and in tool results.

use a2a_hub_sdk::cli::FileChange;
use a2a_hub_sdk::foreign;
use serde_json::Value;

/// Change in a result of `Write` or `Edit`. Results of other tools contain no file name with a
/// patch.
pub fn from_result(result: &Value) -> Option<FileChange> {
    let path = result["filePath"].as_str()?;
    let hunks = result["structuredPatch"].as_array()?;
    if hunks.is_empty() {
        let (created, content) = (result["type"] == "create", result["content"].as_str());
        return content.filter(|_| created).map(|new| FileChange::between(path, None, new));
    }
    let mut diff = format!("--- {path}\n+++ {path}\n");
    for hunk in hunks {
        let number = |member: &str| foreign::integer(&hunk[member]).unwrap_or_default();
        let (from, to) = (number("oldStart"), number("newStart"));
        let (before, after) = (number("oldLines"), number("newLines"));
        diff.push_str(&format!("@@ -{from},{before} +{to},{after} @@\n"));
        for line in hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            diff.push_str(line);
            diff.push('\n');
        }
    }
    Some(FileChange { path: path.to_owned(), diff: Some(diff) })
}

/// Change that a question's tool would make. The CLI reports neither the content that `Write`
/// replaces nor the lines at which `Edit` finds its text.
pub fn planned(tool: &str, input: &Value) -> Option<FileChange> {
    let path = input["file_path"].as_str().or_else(|| input["notebook_path"].as_str())?;
    let replaced = |edit: &Value| {
        let (old, new) = (edit["old_string"].as_str()?, edit["new_string"].as_str()?);
        let everywhere = if edit["replace_all"] == true { " everywhere" } else { "" };
        let diff = FileChange::between(path, None, new).diff.filter(|_| old.is_empty());
        let diff = diff.or_else(|| FileChange::between(path, Some(old), new).diff)?;
        let hunks = diff.lines().skip(2).filter(|line| !line.starts_with('\\')).map(|line| {
            match line.strip_prefix("@@ ") {
                Some(_) => format!("@@{everywhere} @@\n"),
                None => format!("{line}\n"),
            }
        });
        Some(hunks.collect::<String>())
    };
    let hunks: String = match tool {
        "Write" => input["content"].as_str().map(added)?,
        "NotebookEdit" => {
            input["new_source"].as_str().filter(|text| !text.is_empty()).map(added)?
        }
        "Edit" => replaced(input)?,
        "MultiEdit" => input["edits"].as_array()?.iter().filter_map(replaced).collect(),
        _ => return None,
    };
    let before =
        if matches!(tool, "Edit" | "MultiEdit") { format!("--- {path}\n") } else { String::new() };
    Some(FileChange { path: path.to_owned(), diff: Some(format!("{before}+++ {path}\n{hunks}")) })
}

/// Lines of a text as added lines of a diff.
fn added(text: &str) -> String {
    text.lines().map(|line| format!("+{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn asked_change_shows_new_content() {
        let diff = |tool, input: Value| planned(tool, &input).and_then(|change| change.diff);
        let whole = json!({ "file_path": "/w/a", "content": "one\ntwo" });
        assert_eq!(diff("Write", whole).unwrap(), "+++ /w/a\n+one\n+two\n");
        let edit = json!({ "file_path": "/w/a", "old_string": "one\ntwo\n",
            "new_string": "one\n2\n", "replace_all": true });
        assert_eq!(
            diff("Edit", edit.clone()).unwrap(),
            "--- /w/a\n+++ /w/a\n@@ everywhere @@\n one\n-two\n+2\n"
        );
        let edits = json!({ "file_path": "/w/a", "edits": [edit, { "old_string": "", "new_string": "x\n" }, 3] });
        assert!(diff("MultiEdit", edits).unwrap().ends_with("+2\n@@ @@\n+x\n"));
        let cell = json!({ "notebook_path": "/w/n", "edit_mode": "delete", "new_source": "" });
        assert_eq!(diff("NotebookEdit", cell), None, "its input says more");
        assert_eq!(diff("Bash", json!({ "file_path": "/w/a", "content": "" })), None);
    }

    #[test]
    fn patch_becomes_unified_diff() {
        let edited = json!({ "filePath": "/w/a", "oldString": "two", "newString": "three",
            "structuredPatch": [{ "oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2,
                "lines": [" one", "-two", "+three"] }] });
        let change = from_result(&edited).unwrap();
        assert_eq!(
            change.diff.as_deref(),
            Some("--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n")
        );
        let created =
            json!({ "type": "create", "filePath": "b", "content": "x", "structuredPatch": [] });
        assert!(from_result(&created).unwrap().diff.unwrap().contains("+x"));
        let read = json!({ "type": "text", "file": { "filePath": "a", "content": "x" } });
        assert_eq!(from_result(&read), None);
        assert_eq!(from_result(&json!("Error: denied")), None);
    }
}
