//! `workspace`: directories in which agents may work.

use crate::{
    Exit, Global, ask, block_on,
    client::owner::Owner,
    ui::{
        failure::CommandError,
        render::shell_word,
        table::{Cell, Table},
        text::style_of,
    },
};
use a2a_hub_config::{Settings, WorkspaceError, add_workspace, private_file, remove_workspace};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Reason of a refusal: the configuration file cannot be changed by a command.
const NOT_CHANGED: &str = "CONFIGURATION_NOT_CHANGED";

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List the workspaces of the configuration file
    List,
    /// Let agents work in a directory and below it: adds it to `workspaces` of the configuration
    /// file, and reloads a running hub
    Add {
        /// Directory
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Remove a directory from `workspaces` of the configuration file, and reload a running hub
    Remove {
        /// Directory, which need not exist any more
        dir: PathBuf,
    },
}

pub(crate) fn workspace(global: &Global, command: &WorkspaceCommand) -> anyhow::Result<Exit> {
    match command {
        WorkspaceCommand::List => show(global),
        WorkspaceCommand::Add { dir } => {
            let dir = fs::canonicalize(dir).with_context(|| format!("use {}", dir.display()))?;
            if !dir.is_dir() {
                bail!("add the workspace {}: it is not a directory", dir.display());
            }
            add(global, dir.to_str().context("add a workspace whose path is no text")?)
        }
        WorkspaceCommand::Remove { dir } => {
            let absolute = fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
            let absolute = absolute.with_context(|| format!("use {}", dir.display()))?;
            remove(global, absolute.to_str().context("remove a workspace whose path is no text")?)
        }
    }
}

/// Lists the workspaces, and says which of them do not exist.
fn show(global: &Global) -> anyhow::Result<Exit> {
    let settings = global.settings(Vec::new())?;
    let all = &settings.config.workspaces;
    let listed: Vec<_> =
        all.iter().map(|dir| json!({ "directory": dir, "exists": dir.is_dir() })).collect();
    global.show(&json!(listed), || {
        if all.is_empty() {
            return Ok("none: the workspace is the directory in which the hub is started\n".into());
        }
        let mut table = Table::new(["WORKSPACE", "STATE"]);
        for dir in all {
            let state = if dir.is_dir() { "ok" } else { "missing" };
            table.row([dir.display().to_string().into(), Cell::styled(style_of(state), state)]);
        }
        Ok(table.text(global.console().columns()))
    })?;
    Ok(Exit::Done)
}

/// Result of a change of the configuration file.
struct WorkspaceChange {
    file: PathBuf,
    /// False if the file said the same before.
    is_changed: bool,
    /// Answer of the running hub to the reload; null without one.
    reloaded: Value,
}

/// Changes the text of the configuration file, and has a running hub read it again. `action` is the
/// name of the operation, for errors.
fn change(
    global: &Global,
    settings: &Settings,
    action: &str,
    edit: impl FnOnce(&str) -> Result<Option<String>, WorkspaceError>,
) -> anyhow::Result<WorkspaceChange> {
    let data = settings.config.data_dir()?;
    let runs = block_on(async {
        match Owner::for_data_dir(global, data, action).await? {
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
    let changed = edit(&text).map_err(|why| {
        let why = format!(
            "{action} in {}: {why}; change it there by hand, and run `a2a-hub reload`",
            file.display()
        );
        CommandError::new(NOT_CHANGED, why).mended_by("a2a-hub reload")
    })?;
    if let Some(text) = &changed {
        fs::create_dir_all(data).with_context(|| format!("make {}", data.display()))?;
        let written = private_file::replace(&file, text.as_bytes());
        written.with_context(|| format!("write {}", file.display()))?;
    }
    let reloaded = if runs { ask(global, "hub/reload", json!({}))? } else { Value::Null };
    Ok(WorkspaceChange { file, is_changed: changed.is_some(), reloaded })
}

fn add(global: &Global, dir: &str) -> anyhow::Result<Exit> {
    let settings = global.settings(Vec::new())?;
    let action = format!("add the workspace {dir}");
    let WorkspaceChange { file, is_changed, reloaded } =
        change(global, &settings, &action, |text| add_workspace(text, dir))?;
    let output = json!({ "workspace": dir, "file": file, "added": is_changed, "reload": reloaded });
    global.show(&output, || {
        let at = shell_word(&file.display().to_string());
        let done = match (is_changed, settings.config.workspaces.is_empty()) {
            (false, _) => format!("{dir} is a workspace already, in {at}\n"),
            (true, false) => format!("agents may work in {dir}; added to {at}\n"),
            (true, true) => format!(
                "agents may work in {dir}; added to {at}\nThe directory in which the hub was \
                 started is a workspace only while the file names none: add it too, if you need \
                 it\n"
            ),
        };
        Ok(done.into())
    })?;
    Ok(Exit::Done)
}

/// Directory as a person writes it below the home directory, such as `~/src`.
fn with_tilde(dir: &str) -> Option<String> {
    let home = std::env::home_dir()?;
    let rest = Path::new(dir).strip_prefix(home).ok()?;
    Some(format!("~/{}", rest.to_str()?))
}

fn remove(global: &Global, dir: &str) -> anyhow::Result<Exit> {
    let settings = global.settings(Vec::new())?;
    let action = format!("remove the workspace {dir}");
    let WorkspaceChange { file, is_changed, reloaded } =
        change(global, &settings, &action, |text| match remove_workspace(text, dir)? {
            Some(text) => Ok(Some(text)),
            None => with_tilde(dir).map_or(Ok(None), |dir| remove_workspace(text, &dir)),
        })?;
    let at = shell_word(&file.display().to_string());
    if !is_changed {
        let why = format!("{action}: {at} has no such workspace");
        return Err(CommandError::new(NOT_CHANGED, why).mended_by("a2a-hub workspace list").into());
    }
    let output = json!({ "workspace": dir, "file": file, "removed": true, "reload": reloaded });
    global.show(&output, || {
        let is_last = settings.config.workspaces.len() == 1;
        let note = match is_last {
            true => "\nThe file names none now: the workspace is the directory in which the hub is started\n",
            false => "\n",
        };
        Ok(format!("agents may not work in {dir} any more; removed from {at}{note}").into())
    })?;
    Ok(Exit::Done)
}
