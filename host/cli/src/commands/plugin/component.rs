//! Lookup and JSON of a plug-in's component.

use crate::{Global, ui::failure::CommandError};
use a2a_hub::builtin;
use a2a_hub_agents::{plugin_file, requested_capabilities};
use a2a_hub_authoring::Component;
use a2a_hub_core::grant::Ask;
use a2a_hub_protocol::id::AgentId;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Reads the component of this name from the plugins folder.
pub(super) fn of_plugin(global: &Global, id: &AgentId) -> anyhow::Result<Component> {
    let path = file_of(global, id)?;
    if !path.exists() {
        let folder = path.parent().unwrap_or(&path).display();
        let why = format!(
            "there is no plug-in `{id}`: no {id}.wasm is in {folder}; `a2a-hub plugin add FILE` \
             adds one, and `a2a-hub plugin list` lists all"
        );
        return Err(CommandError::new(NO_PLUGIN, why).mended_by("a2a-hub plugin list").into());
    }
    Ok(Component::read(&path)?)
}

/// Returns the JSON description of a component.
pub(super) fn to_json(component: &Component) -> Value {
    let Ask { id, version, publisher, description, .. } = &component.ask;
    json!({ "file": component.path, "sha256": component.sha256, "bytes": component.bytes.len(), "id": id, "version": version,
        "publisher": publisher, "description": description, "asks": requested_capabilities(&component.ask) })
}

/// Reason of a refusal: the plugins folder has no such plug-in.
pub(super) const NO_PLUGIN: &str = "NO_SUCH_PLUGIN";

/// Parses the name of a plug-in.
pub(super) fn name(text: &str) -> anyhow::Result<AgentId> {
    AgentId::parse(text)
        .map_err(|why| CommandError::usage(format!("name a plug-in `{text}`: {why}")).into())
}

/// Refuses names of built-in agents, which no other agent can replace.
pub(in crate::commands) fn require_free_name(id: &AgentId) -> Result<(), CommandError> {
    if builtin::COMPONENTS.0.iter().any(|(name, _)| *name == id.as_str()) {
        return Err(CommandError::usage(format!(
            "create an agent called `{id}`: a built-in agent has this name, and keeps it; choose \
             another name"
        )));
    }
    Ok(())
}

/// Path of the plug-in's file in the plugins folder.
pub(super) fn file_of(global: &Global, id: &AgentId) -> anyhow::Result<PathBuf> {
    Ok(plugin_file(&global.data_dir()?, id))
}
