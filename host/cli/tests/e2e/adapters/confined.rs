//! Tests of the vendors' programs under confinement (`confine = true`): each finds what it needs,
//! and nothing else.

use super::{KEY, Vendor};
use crate::stage::state;
use anyhow::Result;
use std::fs;

/// Confinement settings of a vendor's program; Codex confines its own tools by namespaces.
pub(super) fn walls(vendor: &Vendor) -> String {
    let nested = vendor.agent == "codex";
    format!(
        "confine = true\nconfined = {{ network = [{{port}}], nested = {nested}, write = ['{{files}}'] }}\n"
    )
}

/// A confined program answers, asks, and acts after approval, but its confinement limits even
/// approved commands.
pub(super) async fn confined_program_works_without_reading_keys(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage_with(Some(KEY), &walls(vendor)).await?;
    let task = stage.send("hello").await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert!(task["artifacts"].to_string().contains("hello"), "{task}");

    let key = stage.hub.home().join(".ssh/id_ed25519");
    fs::create_dir_all(key.parent().unwrap_or(&key))?;
    fs::write(&key, "open sesame\n")?;
    let command = format!("cat {} > seen.txt; touch acted.txt", key.display());
    let mut task = stage.send(&(vendor.run)(&command)).await?;
    if state(&task) == "input-required" {
        task = stage.answer(&task, "yes").await?;
    }
    assert_eq!(state(&task), "completed", "{task}");
    let work = stage.hub.workspace();
    assert!(work.join("acted.txt").exists(), "{task}");
    assert_eq!(fs::read_to_string(work.join("seen.txt"))?, "", "it read the key");
    Ok(())
}

/// With permission to edit, the program changes files of its workspace without asking, whatever
/// sandbox it has itself.
pub(super) async fn confined_program_edits_its_workspace(vendor: &Vendor) -> Result<()> {
    let settings = format!("permissions = 'edit'\n{}", walls(vendor));
    let stage = vendor.stage_with(Some(KEY), &settings).await?;
    let file = stage.hub.workspace().join("new.txt");
    let task = stage.send(&(vendor.write)(&file.display().to_string())).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert_eq!(fs::read_to_string(&file)?, "new\n", "{task}");
    Ok(())
}
