//! `plugin new`: creates the project of a new agent, which builds, has tests, and vendors its build
//! dependencies.

use super::{build::shell_path, component};
use crate::{Exit, Global, ui::failure::CommandError};
use a2a_hub_authoring::{FailureKind, Language, create};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;

/// Language of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Lang {
    /// Compiled by cargo
    Rust,
    /// JavaScript or TypeScript, by componentize-qjs
    Js,
    /// Python, by componentize-py
    Python,
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Self::Rust,
            Lang::Js => Self::Js,
            Lang::Python => Self::Python,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Id of the agent and name of the project's folder: lower-case letters, digits and hyphens,
    /// beginning with a letter
    name: String,
    /// Programming language of the agent
    #[arg(long, value_enum, default_value_t = Lang::Rust)]
    lang: Lang,
    /// Directory in which the folder is created
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    within: PathBuf,
}

pub(super) fn new(global: &Global, new: &New) -> anyhow::Result<Exit> {
    let id = component::name(&new.name)?;
    component::require_free_name(&id)?;
    let files = create(&new.within, &id, new.lang.into()).map_err(|why| {
        let is_taken = why.kind() == FailureKind::Exists;
        let why = CommandError::from_error(&why.into());
        if is_taken { why.saying(" with `--in`") } else { why }
    })?;
    let project = std::path::absolute(new.within.join(id.as_str()))?;
    let created = json!({ "agentId": id, "project": project, "files": files });
    global.show(&created, || {
        let folder = shell_path(&project);
        let words = format!(
            "created {id} in {folder}: {files} files; begin with README.md; GUIDE.md is the \
             reference\n\n  cd {folder}\n  a2a-hub plugin build      builds the component\n  \
             a2a-hub plugin dev        builds it into the running hub on each \
             change\n",
        );
        Ok(words.into())
    })?;
    Ok(Exit::Done)
}
