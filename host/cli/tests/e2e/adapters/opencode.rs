//! Tests of OpenCode behind the configuration's key `acp`, beside the promises in the table.

use super::{KEY, vendors::OPENCODE};
use crate::stage::state;
use anyhow::Result;

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
