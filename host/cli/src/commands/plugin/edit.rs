//! Executes a change of a plug-in: through the hub that uses the data directory, or in this process
//! if none does.

use super::grant_effect;
use crate::{
    Global, block_on,
    client::{hub_client::Client, owner::Owner},
    ui::{interactive::ProgressLine, render::list},
};
use a2a_hub_agents::{PluginEdit, PluginEditor};
use a2a_hub_protocol::operation::{AddPlugin, ComponentSource, GrantPlugin, PluginGrant};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{io::Write as _, time::Duration};
use tempfile::NamedTempFile;
use tokio::time::sleep;

/// Interval at which the hub is asked for the state of a component that it compiles.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Refuses an operator's command early, before any lookup or prompt. A running hub decides itself;
/// `action` names the operation.
pub(super) fn require_operator(global: &Global, action: &str) -> anyhow::Result<()> {
    block_on(async {
        let dir = global.data_dir()?;
        if let Owner::Hub(mut client) = Owner::for_data_dir(global, &dir, action).await? {
            client.call("hub/plugins/list", json!({})).await?;
        }
        Ok(())
    })
}

/// Executes a change and returns the plug-in's state: JSON null if the hub no longer knows the
/// plug-in, `None` if no hub runs. At a terminal, it waits while the hub compiles the component.
///
/// # Errors
/// If the change is refused and nothing was written, or if the hub cannot apply what it wrote.
pub(super) fn edit(global: &Global, edit: PluginEdit) -> anyhow::Result<Option<Value>> {
    block_on(async {
        let action = format!("{} {}", edit.name(), edit.agent());
        let mut progress = global.progress(&action, true);
        let done = progress.during("asking the hub", edited(global, edit)).await?;
        match done {
            Some(plugin) if progress.is_visible() => {
                loaded(global, &mut progress, plugin).await.map(Some)
            }
            done => Ok(done),
        }
    })
}

/// Waits until the hub has compiled the plug-in's component, and returns the plug-in's state then.
/// The hub goes on if the user interrupts this command.
async fn loaded(
    global: &Global,
    progress: &mut ProgressLine,
    mut plugin: Value,
) -> anyhow::Result<Value> {
    while grant_effect::is_compiling(&plugin) {
        let doing = format!("{}; Ctrl-C leaves it to the hub", grant_effect::compiling(&plugin));
        let poll = async {
            sleep(POLL_INTERVAL).await;
            Client::connect(global).await?.call("hub/plugins/list", json!({})).await
        };
        let all = progress.during(&doing, poll).await?;
        let now = list(&all).iter().find(|it| it["agentId"] == plugin["agentId"]);
        plugin = now.cloned().unwrap_or_default();
    }
    Ok(plugin)
}

/// Async form of [`edit`], for callers that wait for other events as well.
pub(super) async fn edited(global: &Global, edit: PluginEdit) -> anyhow::Result<Option<Value>> {
    let dir = global.data_dir()?;
    let action = format!("{} the plug-in `{}`", edit.name(), edit.agent());
    match Owner::for_data_dir(global, &dir, &action).await? {
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
    // Temporary file, kept until the hub has read it.
    let mut sent = None;
    let (method, params) = match edit {
        PluginEdit::Add(add) => {
            let AddPlugin { id, component, sha256, signature, grant } = *add;
            let path = match component {
                ComponentSource::File(path) => path,
                ComponentSource::Bytes(bytes) => {
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
    if let Some(failure) = changed["trouble"].as_str() {
        bail!("the hub could not apply the grants: {failure}");
    }
    Ok(changed["plugin"].clone())
}

fn granted(grant: PluginGrant) -> Value {
    let PluginGrant { grant, before, key, dev, source } = grant;
    json!({ "grant": grant, "before": before, "key": key, "dev": dev, "source": source })
}
