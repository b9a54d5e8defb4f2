//! A change of a plug-in, carried out by the hub that uses the data directory, or here where none does.

use crate::{Global, block_on, client::Client, owner::Owner};
use a2a_hub_agents::{PluginEdit, PluginEditor};
use a2a_hub_protocol::operation::{AddPlugin, Component, GrantPlugin, PluginGrant};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::io::Write as _;
use tempfile::NamedTempFile;

/// Refuses what only the operator may do before anything is looked up or asked: `what` says what that is. A hub that runs is asked.
pub(super) fn must_be_the_operator(global: &Global, what: &str) -> anyhow::Result<()> {
    block_on(async {
        let dir = global.data_dir()?;
        if let Owner::Hub(mut client) = Owner::of(global, &dir, what).await? {
            client.call("hub/plugins/list", json!({})).await?;
        }
        Ok(())
    })
}

/// Carries out a change, and returns how the plug-in stands now: null if the hub knows it no more, none if no hub runs.
///
/// # Errors
/// If it is refused, and nothing has changed; or if the hub cannot follow what it wrote.
pub(super) fn edit(global: &Global, edit: PluginEdit) -> anyhow::Result<Option<Value>> {
    block_on(edited(global, edit))
}

/// The same for a caller that waits for other things as well.
pub(super) async fn edited(global: &Global, edit: PluginEdit) -> anyhow::Result<Option<Value>> {
    let dir = global.data_dir()?;
    let what = format!("{} the plug-in `{}`", edit.name(), edit.agent());
    match Owner::of(global, &dir, &what).await? {
        Owner::Hub(client) => ask(client, edit).await.map(Some),
        Owner::Command => {
            let config = global.settings(Vec::new())?.config;
            let by =
                format!("operator, by a command while no hub ran (process {})", std::process::id());
            PluginEditor::new(&dir, &config, &by).carry_out(edit)?;
            Ok(None)
        }
    }
}

async fn ask(mut client: Client, edit: PluginEdit) -> anyhow::Result<Value> {
    let of = |id| json!({ "agentId": id });
    // Kept until the hub has read it.
    let mut sent = None;
    let (method, params) = match edit {
        PluginEdit::Add(add) => {
            let AddPlugin { id, component, sha256, signature, grant } = *add;
            let path = match component {
                Component::File(path) => path,
                Component::Bytes(bytes) => {
                    let mut file = NamedTempFile::new().context("hand the component to the hub")?;
                    file.write_all(&bytes).context("hand the component to the hub")?;
                    sent.insert(file).path().to_owned()
                }
            };
            let grant = grant.map(granted);
            let params = json!({ "agentId": id, "path": path, "sha256": sha256, "signature": signature, "grant": grant });
            ("hub/plugins/add", params)
        }
        PluginEdit::Grant(grant) => {
            let GrantPlugin { id, sha256, grant } = *grant;
            let mut params = granted(grant);
            (params["agentId"], params["sha256"]) = (json!(id), json!(sha256));
            ("hub/grants/grant", params)
        }
        PluginEdit::Deny(id, capabilities) => {
            ("hub/grants/deny", json!({ "agentId": id, "capabilities": capabilities }))
        }
        PluginEdit::Revoke(id) => ("hub/grants/revoke", of(id)),
        PluginEdit::Remove(id) => ("hub/grants/remove", of(id)),
    };
    let changed = client.call(method, params).await?;
    if let Some(trouble) = changed["trouble"].as_str() {
        bail!("the hub does not follow the grants: {trouble}");
    }
    Ok(changed["plugin"].clone())
}

fn granted(grant: PluginGrant) -> Value {
    let PluginGrant { grant, before, key, dev, source } = grant;
    json!({ "grant": grant, "before": before, "key": key, "dev": dev, "source": source })
}
