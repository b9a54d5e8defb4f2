//! `backup` and `restore`: copies of the hub's store.

use crate::{
    Exit, Global, block_on,
    client::owner::{Owner, refuse_below_agent},
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
        anyhow::Ok(match Owner::of(global, &dir, "back up the hub's store").await? {
            Owner::Hub(mut client) => client.call("hub/backup", json!({ "file": file })).await?,
            Owner::Command => {
                told(&file, sqlite::back_up(&dir, &file).context("back up the hub's store")?)
            }
        })
    })?;
    global.show(&copied, || Ok(format!("{}: {}\n", file.display(), held(&copied)).into()))?;
    global.console().note(BESIDE);
    Ok(Exit::Done)
}

/// Contents that the copy lacks: a user copies these files like any others.
const BESIDE: &str = "the file holds tasks, conversations, agents' memories and notification URLs, \
                      with their secrets; it does not hold the configuration, plugins, keys and \
                      the token, which are files in the data directory";

/// Replaces the store with a copy. No hub may use the store.
pub(crate) fn restore(global: &Global, Restore { file }: &Restore) -> anyhow::Result<Exit> {
    let dir = global.data_dir()?;
    refuse_below_agent("restore the hub's store")?;
    let (restored, kept) = sqlite::restore(&dir, file).map_err(|why| {
        let is_used = matches!(why, a2a_hub_store::StorageError::Locked { .. });
        let told = CommandError::new(NOT_RESTORED, format!("restore the hub's store: {why}"));
        if is_used { told.mended_by("a2a-hub stop") } else { told }
    })?;
    let restored = told(file, restored);
    global.show(&restored, || Ok(restored_text(kept.as_deref(), &restored).into()))?;
    Ok(Exit::Done)
}

/// Error code of a failed restore: the store is unchanged.
const NOT_RESTORED: &str = "NOT_RESTORED";

fn restored_text(kept: Option<&Path>, restored: &Value) -> String {
    let kept = kept.map(|old| format!("\nthe old store is kept as {}", old.display()));
    format!("restored: {}{}\n", held(restored), kept.unwrap_or_default())
}

fn held(copied: &Value) -> String {
    let number = |name: &str| copied[name].as_u64().unwrap_or_default();
    let (total, bytes) = (number("tasks"), number("bytes"));
    let tasks = if total == 1 { "task" } else { "tasks" };
    format!("{total} {tasks}, {}", size(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

fn told(file: &Path, copied: Copied) -> Value {
    json!({ "file": file, "tasks": copied.counts.total, "bytes": copied.bytes })
}
