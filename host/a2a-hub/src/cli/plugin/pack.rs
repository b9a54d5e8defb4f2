//! `plugin pack`: puts a manifest into a component that somebody else's tool made.

use super::{
    component::{Component, read_at_most},
    inspect,
};
use crate::cli::{Exit, Global, failure::CommandError, text::PLAIN};
use a2a_hub_agents::beside;
use a2a_hub_config::own_file;
use a2a_hub_sandbox::manifest;
use anyhow::{Context as _, anyhow};
use clap::Args;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// More is read of no manifest; what is longer is refused for that.
const MAX_MANIFEST: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct Pack {
    /// The component
    component: PathBuf,
    /// What it asks for
    #[arg(long, value_name = "FILE", default_value = super::project::MANIFEST)]
    manifest: PathBuf,
    /// Where the component goes that has it; otherwise in the place of the one without
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn pack(global: &Global, pack: &Pack) -> anyhow::Result<Exit> {
    // What it asks for now does not count: it may be what is to be mended.
    let bytes = Component::bytes_of(&pack.component)?;
    let text = read_at_most(&pack.manifest, MAX_MANIFEST).map_err(|why| {
        let what = format!(
            "read the manifest {}: {why}; `--manifest FILE` names another one",
            pack.manifest.display()
        );
        CommandError::usage(what)
    })?;
    // Its text says all, and its cause would say it once more.
    let (packed, _) = manifest::embed(&bytes, &text).map_err(|why| {
        anyhow!("put {} into {}: {why}", pack.manifest.display(), pack.component.display())
    })?;
    let output = pack.output.as_deref().unwrap_or(&pack.component);
    write(output, &packed)?;
    let component = Component::of(output.to_owned(), packed)?;
    let told = component.to_json();
    global.show(&told, || {
        let mut shown = inspect::shown(&told, global.console().columns());
        if beside(output).exists() {
            shown.push(PLAIN, "The signature beside it is of the one before: sign it again.\n");
        }
        Ok(shown)
    })?;
    Ok(Exit::Done)
}

/// Writes a component whole or not at all; through a link to where that leads, so that the link stays.
fn write(output: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let place = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let place = std::path::absolute(place)?;
    own_file::replace(&place, bytes).with_context(|| format!("write {}", output.display()))
}
