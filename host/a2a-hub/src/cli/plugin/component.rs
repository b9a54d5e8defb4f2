//! A component as it lies there: what it says of itself and asks for is read without running it.

use crate::{
    builtin,
    cli::{Global, failure::CommandError},
};
use a2a_hub_agents::asked;
use a2a_hub_core::grant::Ask;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::{digest_of, manifest};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Larger ones do not join.
pub(super) const MAX_BYTES: u64 = 128 << 20;

/// A component, read and not run.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// Its SHA-256 digest, in hex.
    pub(super) sha256: String,
    pub(super) ask: Ask,
}

impl Component {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        Self::of(path.to_owned(), Self::bytes_of(path)?)
    }

    /// The bytes of a file that is a component, whatever it asks for.
    pub(super) fn bytes_of(path: &Path) -> anyhow::Result<Vec<u8>> {
        let what = || format!("read the component {}", path.display());
        let bytes = read_at_most(path, MAX_BYTES).with_context(what)?;
        must_be_component(path, &bytes)?;
        Ok(bytes)
    }

    /// What was read from `path`.
    pub(super) fn of(path: PathBuf, bytes: Vec<u8>) -> anyhow::Result<Self> {
        must_be_component(&path, &bytes)?;
        let ask = manifest::read(&bytes)
            .with_context(|| format!("read the component {}", path.display()))?;
        let sha256 = digest_of(&bytes);
        Ok(Self { path, bytes, sha256, ask })
    }

    /// The component that the hub finds under this name in its plugins folder.
    pub(super) fn of_plugin(global: &Global, id: &AgentId) -> anyhow::Result<Self> {
        let path = file_of(global, id)?;
        if !path.exists() {
            let folder = path.parent().unwrap_or(&path).display();
            let why = format!(
                "there is no plug-in `{id}`: no {id}.wasm is in {folder}; `a2a-hub plugin add FILE` puts one there, and \
                 `a2a-hub plugin list` lists those there are"
            );
            return Err(CommandError::new(NO_PLUGIN, why).mended_by("a2a-hub plugin list").into());
        }
        Self::read(&path)
    }

    /// What is told of it to programs.
    pub(super) fn to_json(&self) -> Value {
        let Ask { id, version, publisher, description, .. } = &self.ask;
        json!({ "file": self.path, "sha256": self.sha256, "bytes": self.bytes.len(), "id": id, "version": version,
            "publisher": publisher, "description": description, "asks": asked(&self.ask) })
    }
}

/// Refuses what begins as no component does, and what is larger than any that joins.
fn must_be_component(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let what = format!("read the component {}", path.display());
    let why = if bytes.len() as u64 > MAX_BYTES {
        format!("{what}: it is larger than {} MiB, and none that joins is", MAX_BYTES >> 20)
    } else if !bytes.starts_with(b"\0asm\x0d\0\x01\0") {
        format!("{what}: it is no WebAssembly component; build it for the target wasm32-wasip2")
    } else {
        return Ok(());
    };
    Err(CommandError::new(NO_COMPONENT, why))
}

/// A file, and no more of it than one byte beyond `most`.
pub(super) fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// There is nothing of the kind in the plugins folder.
pub(super) const NO_PLUGIN: &str = "NO_SUCH_PLUGIN";

/// The file is no component.
const NO_COMPONENT: &str = "NOT_A_COMPONENT";

/// The name of a plug-in, as it was typed.
pub(super) fn name(text: &str) -> anyhow::Result<AgentId> {
    AgentId::parse(text)
        .map_err(|why| CommandError::usage(format!("name a plug-in `{text}`: {why}")).into())
}

/// Refuses the names of the agents that come with the hub: no file takes the place of one.
pub(super) fn must_be_free(id: &AgentId) -> Result<(), CommandError> {
    if builtin::COMPONENTS.0.iter().any(|(name, _)| *name == id.as_str()) {
        return Err(CommandError::usage(format!(
            "make an agent called `{id}`: one of that name comes with the hub, and a file could not take its place; choose another name"
        )));
    }
    Ok(())
}

/// Where the hub looks for the plug-in.
pub(super) fn file_of(global: &Global, id: &AgentId) -> anyhow::Result<PathBuf> {
    let folder = global.data_dir()?.join("plugins");
    // What is not there yet is made by the hub, for its user only.
    Ok(fs::canonicalize(&folder).unwrap_or(folder).join(format!("{id}.wasm")))
}
