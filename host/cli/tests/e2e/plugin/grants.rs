//! Tests of grants: each is bound to one component, only the operator grants, and a grant can be
//! revoked at any time.

use crate::stage::{another_build, artifact, hub_with_guest, said, send, until};
use a2a_hub_tests::{
    Client,
    grants::{by_command, digest, grant, is_held_back, plugin, plugin_when},
    test_guests,
};
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn update_is_held_back_across_kill() -> Result<()> {
    let (mut hub, dir) = (hub_with_guest().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let (old, new) = (digest(&test_guests()?)?, another_build(&dir)?);
    assert_eq!(said(&send(&client, "guest", "remember colour blue").await?), "colour is 4 bytes");
    let before = plugin(&client).await?;
    assert_eq!((&before["sha256"], &before["installation"]["id"]), (&json!(old), &json!("guest")));
    assert_eq!(before["installation"]["fromConfiguration"], true);

    let mut events = Client::unix(&hub).stream("hub/events", json!({})).await?;
    hub.plug("guest", &new)?;
    let told = until(&mut events, |event| event["type"] == "plugin-held-back").await?;
    assert_eq!((&told["agentId"], &told["sha256"]), (&json!("guest"), &json!(digest(&new)?)));
    let held = plugin_when(&client, is_held_back).await?;
    assert_eq!((&held["sha256"], &held["heldBack"]["serves"]), (&json!(old), &json!(true)));
    assert_eq!(
        held["heldBack"]["changes"],
        json!([]),
        "it asks for the same, and waits all the same"
    );
    let status = client.call("hub/status", json!({})).await?;
    let why = status["rejectedPlugins"][0]["error"].as_str().unwrap_or_default();
    assert!(why.starts_with("held back: ") && why.contains("a2a-hub plugin grant guest"), "{why}");
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n");
    let refused = Client::unix(&hub).call("hub/agents/reload", json!({ "agentId": "guest" })).await;
    assert!(refused.is_err_and(|why| why.to_string().contains("held back")));

    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let held = plugin_when(&client, |now| is_held_back(now) && now["joined"] == true).await?;
    assert_eq!(held["sha256"], json!(old));
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "blue");

    grant(&hub, by_command(digest(&new)?))?;
    client.call("hub/plugins/refresh", json!({})).await?;
    let now = plugin_when(&client, |now| now["sha256"] == json!(digest(&new).unwrap_or_default()))
        .await?;
    assert!(!is_held_back(&now), "{now}");
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "blue", "it is an update");
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n");
    Ok(())
}
