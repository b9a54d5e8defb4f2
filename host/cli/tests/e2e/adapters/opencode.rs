//! Tests of OpenCode behind the configuration's key `acp`, beside the promises in the table.

use super::{KEY, vendors::OPENCODE};
use crate::stage::state;
use anyhow::Result;
use serde_json::json;
use std::fs;

/// The program's usual mode writes; its mode `plan` does not.
#[tokio::test]
async fn read_only_permissions_choose_plan_mode() -> Result<()> {
    let stage = OPENCODE.stage_with(Some(KEY), "permissions = 'read-only'").await?;
    let file = stage.hub.workspace().join("new.txt");
    let task = stage.send(&(OPENCODE.write)(&file.display().to_string())).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert!(!file.exists());
    Ok(())
}

/// A part of a file is replaced: the diff has the line numbers of the whole file.
#[tokio::test]
async fn edit_reports_diff_of_whole_file() -> Result<()> {
    let stage = OPENCODE.stage_with(Some(KEY), "permissions = 'edit'").await?;
    let file = stage.hub.workspace().join("list.txt");
    fs::write(&file, "one\ntwo\nthree\n")?;
    let edit = json!({ "filePath": file, "oldString": "two", "newString": "2" });
    let task = stage.send(&format!("[[tool:raw:edit:{edit}]]")).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let id = json!(format!("change:{}", file.display()));
    let made = task["artifacts"].as_array().into_iter().flatten();
    let change = made.into_iter().find(|artifact| artifact["artifactId"] == id);
    let diff = change.map(|change| change["parts"][0]["text"].as_str().unwrap_or_default());
    assert!(
        diff.is_some_and(|diff| diff.ends_with("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")),
        "{task}"
    );
    Ok(())
}
