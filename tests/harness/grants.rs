//! Grants of a plug-in, and the hub's view of them.

use crate::{Client, Endpoints};
use a2a_hub_config::GrantsFile;
use a2a_hub_core::{
    grant::{Grant, ProgramGrant, byte_limit::Allowance},
    plugin::installation::NewGrant,
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::digest_of;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tokio::time::Instant;

/// Id of the agent with grants.
pub fn guest() -> Result<AgentId> {
    Ok(AgentId::parse("guest")?)
}

/// Digest of a component.
pub fn digest(component: &Path) -> Result<String> {
    Ok(digest_of(&fs::read(component)?))
}

/// Grant by command: a shell, `sleep` and some bytes.
pub fn by_command(sha256: String) -> NewGrant {
    let programs = ["sh", "sleep"].map(|name| (name.to_owned(), ProgramGrant::default()));
    let (memory, files) = (Allowance::Bytes(4096), Allowance::Bytes(4096));
    let grant = Grant { process: programs.into(), memory, files, ..Grant::default() };
    let (source, at) = ("guest.wasm".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    let by = "a test".to_owned();
    NewGrant { sha256, version: None, source, at, key: None, dev: false, by, grant }
}

/// Grants as the command line does: by the file, without the hub.
pub fn grant(hub: &Endpoints, new: NewGrant) -> Result<()> {
    let id = guest()?;
    Ok(GrantsFile::new(&hub.data_dir()).change(|all| all.grant(&id, new, 0xbeef))?)
}

/// Revokes the grant.
pub fn revoke(hub: &Endpoints) -> Result<()> {
    let id = guest()?;
    let known = GrantsFile::new(&hub.data_dir()).change(|all| all.revoke(&id, "a test"))?;
    ensure!(known, "there is nothing to revoke");
    Ok(())
}

/// State of the plug-in `guest` in the hub.
pub async fn plugin(client: &Client) -> Result<Value> {
    let all = client.call("hub/plugins/list", json!({})).await?;
    let all = all.as_array().context("no list")?;
    let one = all.iter().find(|one| one["agentId"] == "guest");
    Ok(one.cloned().unwrap_or_default())
}

/// State of the plug-in, once it is as wanted.
pub async fn plugin_when(client: &Client, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let deadline = Instant::now() + Duration::from_secs(50);
    loop {
        let now = plugin(client).await?;
        if wanted(&now) {
            return Ok(now);
        }
        ensure!(Instant::now() < deadline, "it does not come to that: {now:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// True if an update of the plug-in waits for the operator.
pub fn is_held_back(plugin: &Value) -> bool {
    plugin["heldBack"].is_object()
}
