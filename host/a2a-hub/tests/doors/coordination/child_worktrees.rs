//! Plug-ins that have other agents work in worktrees: by a term of their grant.

use super::worktrees::repository;
use crate::{
    hub::InProcessHub,
    stage::{GRANT, said, state},
};
use a2a_hub_tests::{Client, git, message_to, test_guests};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Hub whose guest may call `helper`, with these terms.
async fn hub_with(terms: &str) -> Result<InProcessHub> {
    let granted = format!("memory = true\n    delegate = {{ {terms} }}");
    let guest = GRANT.replace("memory = true", &granted);
    let helper = "[agents.helper.grant.process.sh]\n";
    let hub = InProcessHub::builder().config(format!("{guest}\n{helper}"));
    hub.plugin("guest", test_guests()?).plugin("helper", test_guests()?).start().await
}

async fn ask(hub: &InProcessHub) -> Result<Value> {
    let mut asks = message_to("guest", "call-in-worktree helper echo made > made");
    asks["message"]["metadata"]["workingDirectory"] = json!(repository(hub)?);
    Ok(Client::http(hub).call("message/send", asks).await?)
}

#[tokio::test]
async fn granted_plugin_has_agent_work_in_worktree() -> Result<()> {
    let hub = hub_with("helper = { worktrees = true }").await?;
    let task = ask(&hub).await?;
    assert_eq!((state(&task), said(&task)), ("completed", "1 +1 -0 true: a made "), "{task}");
    let repository = hub.workspace().join("repository");
    assert_eq!(git(&repository, &["status", "--porcelain"])?, "", "the checkout stays as it was");
    // The worktree belongs to the child that began it, and the operator takes it over.
    let operator = Client::unix(&hub);
    let listed = operator.call("hub/worktrees/list", json!({})).await?;
    let id = json!({ "taskId": listed[0]["taskId"] });
    let applied = operator.call("hub/tasks/apply", id).await?;
    assert_eq!(applied["files"], json!(["made"]), "{listed}");
    Ok(())
}

#[tokio::test]
async fn plugin_needs_term_for_worktrees() -> Result<()> {
    let hub = hub_with("helper = { permissions = \"edit\" }").await?;
    let task = ask(&hub).await?;
    let way_out = "`a2a-hub plugin grant guest --delegate helper:worktrees` allows it";
    ensure!(said(&task).contains(way_out), "{task}");
    let listed = Client::unix(&hub).call("hub/worktrees/list", json!({})).await?;
    assert_eq!(listed, json!([]), "nothing was made");
    Ok(())
}
