//! `workspace`: directories in which agents may work.

use crate::{
    Exit, Global, ask, block_on,
    client::owner::Owner,
    ui::{failure::CommandError, render::shell_word},
};
use a2a_hub_config::{add_workspace, own_file};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::{Value, json};
use std::{fs, io, path::PathBuf};

/// Reason of a refusal: the configuration file cannot be changed by a command.
const NOT_CHANGED: &str = "CONFIGURATION_NOT_CHANGED";

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Let agents work in a directory and below it: adds it to `workspaces` of the configuration
    /// file, and reloads a running hub
    Add {
        /// Directory
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
}

pub(crate) fn workspace(global: &Global, command: &WorkspaceCommand) -> anyhow::Result<Exit> {
    let WorkspaceCommand::Add { dir } = command;
    let dir = fs::canonicalize(dir).with_context(|| format!("use {}", dir.display()))?;
    if !dir.is_dir() {
        bail!("add the workspace {}: it is not a directory", dir.display());
    }
    let shown = dir.to_str().context("add a workspace whose path is no text")?;
    let settings = global.settings(Vec::new())?;
    let data = settings.config.data_dir()?;
    let runs = block_on(async {
        let what = format!("add the workspace {shown}");
        match Owner::of(global, data, &what).await? {
            // Only the operator may list the plug-ins.
            Owner::Hub(mut client) => {
                client.call("hub/plugins/list", json!({})).await?;
                anyhow::Ok(true)
            }
            Owner::Command => Ok(false),
        }
    })?;
    let file = settings.file.clone().unwrap_or_else(|| data.join("config.toml"));
    let text = match fs::read_to_string(&file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("read {}", file.display()))?,
    };
    let changed = add_workspace(&text, shown).map_err(|why| {
        let why = format!(
            "add the workspace {shown} to {}: {why}; add it there by hand, and run `a2a-hub reload`",
            file.display()
        );
        CommandError::new(NOT_CHANGED, why).mended_by("a2a-hub reload")
    })?;
    if let Some(text) = &changed {
        fs::create_dir_all(data).with_context(|| format!("make {}", data.display()))?;
        let written = own_file::replace(&file, text.as_bytes());
        written.with_context(|| format!("write {}", file.display()))?;
    }
    let reloaded = if runs { ask(global, "hub/reload", json!({}))? } else { Value::Null };
    let told =
        json!({ "workspace": shown, "file": file, "added": changed.is_some(), "reload": reloaded });
    global.show(&told, || {
        let at = shell_word(&file.display().to_string());
        let done = match (&changed, settings.config.workspaces.is_empty()) {
            (None, _) => format!("{shown} is a workspace already, in {at}\n"),
            (Some(_), false) => format!("agents may work in {shown}; added to {at}\n"),
            (Some(_), true) => format!(
                "agents may work in {shown}; added to {at}\nThe directory in which the hub was \
                 started is a workspace only while the file names none: add it too, if you need \
                 it\n"
            ),
        };
        Ok(done.into())
    })?;
    Ok(Exit::Done)
}
