//! Tests of agents that work for several tenants.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, said, state},
};
use a2a_hub_tests::{
    tenants::{TENANTS, Web, token},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;

/// An agent's memory and its child tasks belong to the tenant that it works for.
#[tokio::test]
async fn agent_keeps_tenants_apart() -> Result<()> {
    let config = format!("{GRANT}{TENANTS}")
        .replace("    memory = true", "    memory = true\n    delegate = ['echo']");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let [acme, other] =
        ["acme", "other"].map(|name| token(&hub, name).map(|token| Web::of(&hub, token)));
    let (acme, other) = (acme?, other?);
    acme.send("remember colour blue").await?;
    let recalled = acme.send("recall colour").await?;
    assert!(said(&recalled).contains("blue"), "{recalled}");
    let nothing = other.send("recall colour").await?;
    assert!(!said(&nothing).contains("blue"), "{nothing}");

    let parent = acme.send("call echo below").await?;
    let parent = parent["id"].as_str().context("no task")?;
    let tree = acme.call("/", "hub/tasks/tree", json!({ "id": parent })).await?;
    let child = tree["result"]["tasks"][1]["id"].as_str().with_context(|| tree.to_string())?;
    let found = acme.call("/", "tasks/get", json!({ "id": child })).await?;
    assert_eq!(state(&found["result"]), "completed", "{found}");
    let hidden = other.call("/", "tasks/get", json!({ "id": child })).await?;
    assert_eq!(hidden["error"]["code"], -32001, "a child is its parent's tenant's: {hidden}");
    Ok(())
}
