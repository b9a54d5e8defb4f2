//! Red-team tests: attacks that a stranger may try after the simple ones have failed. Each names
//! the guarantee that it attacks; `docs/SECURITY.md` defines the guarantees.

use crate::{
    plugin::command::plugin,
    stage::{another_build, eventually_async, said, send},
};
use a2a_hub_config::GrantsFile;
use a2a_hub_core::plugin::installation::NewGrant;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_tests::{
    Client, TestHub,
    grants::{by_command, digest, grant, plugin_when},
    test_guests,
};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(3);

/// A plug-in under the name of a removed one receives the permissions that the operator names for
/// it, and none of its predecessor's.
#[tokio::test]
async fn namesake_inherits_no_grant_or_memory() -> Result<()> {
    let (hub, dir) = (TestHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    grant(&hub, NewGrant { key: Some("RWQ".to_owned()), ..by_command(digest(&test_guests()?)?) })?;
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    send(&client, "guest", "remember colour blue").await?;
    hub.unplug("guest")?;
    plugin_when(&client, |now| now["joined"] != true).await?;
    eventually_async(SOON, async || {
        let id = AgentId::parse("guest");
        let all = GrantsFile::new(&hub.data_dir()).read();
        all.is_ok_and(|all| id.is_ok_and(|id| all.plugins[&id].gone))
    })
    .await?;

    hub.plug("guest", &another_build(&dir)?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    let granted = plugin(&hub, &["grant", "guest", "--memory=100"]).await?;
    ensure!(granted.code == Some(0), "{}", granted.stderr);
    let now = plugin_when(&client, |now| now["installation"]["grant"]["memory"] == 100).await?;
    assert_eq!(now["installation"]["grant"], json!({ "memory": 100 }), "{now}");
    assert_eq!(now["installation"]["key"], Value::Null, "nor whose updates come in");
    let refused = send(&client, "guest", "sh echo hi").await?;
    ensure!(said(&refused).contains("not granted"), "{}", said(&refused));
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "nothing");
    Ok(())
}
