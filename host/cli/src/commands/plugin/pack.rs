//! `plugin pack`: embeds a manifest into a component that another tool built.

use super::{component, inspect};
use crate::{
    Exit, Global,
    ui::{failure::CommandError, text::PLAIN},
};
use a2a_hub_agents::signature_path;
use a2a_hub_authoring::{self as authoring, FailureKind, MANIFEST};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// Component file
    component: PathBuf,
    /// Manifest file, which lists the permissions that the component asks for
    #[arg(long, value_name = "FILE", default_value = MANIFEST)]
    manifest: PathBuf,
    /// File to write [default: replaces the component]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn pack(global: &Global, pack: &Pack) -> anyhow::Result<Exit> {
    let output = pack.output.as_deref().unwrap_or(&pack.component);
    let packed = authoring::pack(&pack.component, &pack.manifest, output);
    let packed = packed.map_err(|why| match why.kind() == FailureKind::NoManifest {
        true => {
            let why = format!("{why}; `--manifest FILE` names another one");
            CommandError::usage(why).into()
        }
        false => anyhow::Error::from(why),
    })?;
    let details = component::to_json(&packed);
    global.show(&details, || {
        let mut shown = inspect::component_text(&details, global.console().columns());
        if signature_path(output).exists() {
            shown.push(
                PLAIN,
                "The signature beside it is for the previous component: sign it again.\n",
            );
        }
        Ok(shown)
    })?;
    Ok(Exit::Done)
}
