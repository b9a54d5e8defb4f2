//! `backup` and `restore`: copies of the hub's store.

use crate::{
    Exit, Global, block_on,
    client::owner::{Owner, refuse_in_agent_tree},
    ui::{failure::CommandError, render::size},
};
use a2a_hub_store::{Copied, sqlite};
use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// File to create; it must not exist
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// File that `a2a-hub backup` made
    file: PathBuf,
}

/// Copies the store, through the running hub if one uses the store, else in this process.
pub(crate) fn backup(global: &Global, Backup { file }: &Backup) -> anyhow::Result<Exit> {
    let dir = global.data_dir()?;
    let file = std::path::absolute(file)?;
    let copied = block_on(async {
        anyhow::Ok(match Owner::for_data_dir(global, &dir, "back up the hub's store").await? {
            Owner::Hub(mut client) => client.call("hub/backup", json!({ "file": file })).await?,
            Owner::Command => {
                to_json(&file, sqlite::back_up(&dir, &file).context("back up the hub's store")?)
            }
        })
    })?;
    global.show(&copied, || Ok(format!("{}: {}\n", file.display(), summary(&copied)).into()))?;
    global.console().note(EXCLUDED_NOTE);
    Ok(Exit::Done)
}

/// Contents that the copy lacks: a user copies these files like any others.
const EXCLUDED_NOTE: &str = "the file holds tasks, conversations, agents' memories and notification URLs, \
                      with their secrets; it does not hold the configuration, plugins, keys and \
                      the token, which are files in the data directory";

/// Replaces the store with a copy. No hub may use the store.
pub(crate) fn restore(global: &Global, Restore { file }: &Restore) -> anyhow::Result<Exit> {
    let dir = global.data_dir()?;
    refuse_in_agent_tree("restore the hub's store")?;
    let (restored, old_store) = sqlite::restore(&dir, file).map_err(|why| {
        let is_used = matches!(why, a2a_hub_store::StorageError::Locked { .. });
        let error = CommandError::new(NOT_RESTORED, format!("restore the hub's store: {why}"));
        if is_used { error.mended_by("a2a-hub stop") } else { error }
    })?;
    let restored = to_json(file, restored);
    global.show(&restored, || Ok(restored_text(old_store.as_deref(), &restored).into()))?;
    Ok(Exit::Done)
}

/// Error code of a failed restore: the store is unchanged.
const NOT_RESTORED: &str = "NOT_RESTORED";

fn restored_text(old_store: Option<&Path>, restored: &Value) -> String {
    let note = old_store.map(|old| format!("\nthe old store is kept as {}", old.display()));
    format!("restored: {}{}\n", summary(restored), note.unwrap_or_default())
}

fn summary(copied: &Value) -> String {
    let number = |name: &str| copied[name].as_u64().unwrap_or_default();
    let (total, bytes) = (number("tasks"), number("bytes"));
    let tasks = if total == 1 { "task" } else { "tasks" };
    format!("{total} {tasks}, {}", size(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

fn to_json(file: &Path, copied: Copied) -> Value {
    json!({ "file": file, "tasks": copied.counts.total, "bytes": copied.bytes })
}
