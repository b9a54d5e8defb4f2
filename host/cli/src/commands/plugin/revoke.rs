//! `plugin deny`, `revoke` and `remove`: withdraw permissions, from running tasks as well.

use super::{
    component::{self, NO_PLUGIN, file_of},
    edit, grant_effect,
};
use crate::{Exit, Global, ui::failure::CommandError};
use a2a_hub_agents::PluginEdit;
use a2a_hub_config::GrantsFile;
use a2a_hub_core::{grant::withdrawal::withdraw, plugin::installation::Installation};
use a2a_hub_protocol::id::AgentId;
use serde_json::json;

pub(super) fn deny(global: &Global, id: &str, capabilities: &[String]) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    edit::require_operator(global, &format!("withdraw permissions of `{id}`"))?;
    let record = recorded(global, &id)?.ok_or_else(|| nothing(&id))?;
    withdraw(&mut record.grant.clone(), capabilities)
        .map_err(|why| CommandError::usage(why.to_string()))?;
    let done = PluginEdit::Deny(id.clone(), capabilities.to_vec());
    carried_out(global, done, &id, &format!("no longer has {}", capabilities.join(", ")))
}

pub(super) fn revoke(global: &Global, id: &str) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    edit::require_operator(global, &format!("revoke the grant of `{id}`"))?;
    recorded(global, &id)?.ok_or_else(|| nothing(&id))?;
    carried_out(global, PluginEdit::Revoke(id.clone()), &id, "no longer has any permission")
}

pub(super) fn remove(global: &Global, id: &str) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    edit::require_operator(global, &format!("remove `{id}`"))?;
    if recorded(global, &id)?.is_none() && file_of(global, &id)?.symlink_metadata().is_err() {
        return Err(nothing(&id).into());
    }
    let plugin = edit::edit(global, PluginEdit::Remove(id.clone()))?;
    let now = match plugin {
        Some(_) => "removed, with its stored data",
        None => {
            "its file and its grant are removed; its stored data is deleted at the next start of \
             the hub"
        }
    };
    global.show(&json!({ "agentId": id, "plugin": plugin }), || {
        Ok(format!("{id}: {now}\n").into())
    })?;
    Ok(Exit::Done)
}

/// Returns the plug-in's record, if it was ever granted anything.
fn recorded(global: &Global, id: &AgentId) -> anyhow::Result<Option<Installation>> {
    Ok(GrantsFile::new(&global.data_dir()?).read()?.plugins.remove(id))
}

fn carried_out(
    global: &Global,
    done: PluginEdit,
    id: &AgentId,
    outcome: &str,
) -> anyhow::Result<Exit> {
    let plugin = edit::edit(global, done)?;
    let line = format!("{id} {outcome}: {}\n", grant_effect::line(plugin.as_ref()));
    global.show(&json!({ "agentId": id, "plugin": plugin }), || Ok(line.into()))?;
    Ok(Exit::Done)
}

fn nothing(id: &AgentId) -> CommandError {
    let why = format!("nothing is granted to `{id}`; `a2a-hub plugin list` shows all grants");
    CommandError::new(NO_PLUGIN, why).mended_by("a2a-hub plugin list")
}
