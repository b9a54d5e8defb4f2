//! Changed files in tool results.

use a2a_hub_sdk::cli::FileChange;
use a2a_hub_sdk::foreign;
use serde_json::Value;

/// Change in a result of `Write` or `Edit`. Results of other tools contain no file name with a
/// patch.
pub fn told(result: &Value) -> Option<FileChange> {
    let path = result["filePath"].as_str()?;
    let hunks = result["structuredPatch"].as_array()?;
    if hunks.is_empty() {
        let (created, content) = (result["type"] == "create", result["content"].as_str());
        return content.filter(|_| created).map(|new| FileChange::between(path, None, new));
    }
    let mut diff = format!("--- {path}\n+++ {path}\n");
    for hunk in hunks {
        let number = |member: &str| foreign::whole(&hunk[member]).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patch_becomes_unified_diff() {
        let edited = json!({ "filePath": "/w/a", "oldString": "two", "newString": "three",
            "structuredPatch": [{ "oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2,
                "lines": [" one", "-two", "+three"] }] });
        let change = told(&edited).unwrap();
        assert_eq!(
            change.diff.as_deref(),
            Some("--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n")
        );
        let created =
            json!({ "type": "create", "filePath": "b", "content": "x", "structuredPatch": [] });
        assert!(told(&created).unwrap().diff.unwrap().contains("+x"));
        let read = json!({ "type": "text", "file": { "filePath": "a", "content": "x" } });
        assert_eq!(told(&read), None);
        assert_eq!(told(&json!("Error: denied")), None);
    }
}
