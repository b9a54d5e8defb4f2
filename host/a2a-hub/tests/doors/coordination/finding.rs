//! Tests of the agent search by name and abilities: for clients on every transport, for other
//! agents, and for other hubs.

use crate::{
    hub::InProcessHub,
    stage::{said, send, state},
};
use a2a_hub_config::GrantsFile;
use a2a_hub_core::{
    grant::{Grant, byte_limit::Allowance},
    plugin::installation::NewGrant,
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::{component::manifest::embed, digest_of};
use a2a_hub_tests::{
    Client,
    finding::{config, ids},
    grants::by_command,
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;

async fn hub() -> Result<InProcessHub> {
    InProcessHub::builder().config(config()).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn agents_are_found_by_words_with_reasons() -> Result<()> {
    let hub = hub().await?;
    for client in [Client::http(&hub), Client::unix(&hub)] {
        let find = async |params: Value| client.call("hub/agents/find", params).await;
        let found = find(json!({ "query": "who changed this file in my git history?" })).await?;
        assert_eq!(ids(&found)[0], "git-historian", "{found}");
        let best = &found["agents"][0];
        assert!(best["score"].as_f64() > Some(1.0) && best["card"]["url"].is_string(), "{best}");
        let words: Vec<_> =
            best["why"].as_array().context("no reason")?.iter().map(|why| &why["what"]).collect();
        assert!(words.contains(&&json!("history")), "{words:?}");

        assert_eq!(ids(&find(json!({ "name": "mirror" })).await?), ["echo"]);
        let near = find(json!({ "name": "git-historain" })).await?;
        assert_eq!(
            (ids(&near), &near["didYouMean"]),
            (vec!["git-historian"], &json!("git-historian"))
        );
        let versions = find(json!({ "name": "echo", "version": ">=99" }))
            .await
            .expect_err("none is of that version");
        assert!(versions.to_string().contains("there are echo "), "{versions}");
        let older = find(json!({ "name": "echo", "version": ">=99", "allowOlder": true })).await?;
        assert_eq!((ids(&older), &older["older"]), (vec!["echo"], &json!(true)));
        assert!(find(json!({ "query": "x", "limit": 0 })).await.is_err());
    }
    Ok(())
}

/// Sends the requests of a registry's clients, which read each result as a card.
#[tokio::test]
async fn registry_client_finds_cards_by_tags() -> Result<()> {
    let hub = hub().await?;
    let url = format!("http://{}/agents", hub.http());
    let get = async |query: &str| {
        let answer = reqwest::get(format!("{url}?{query}")).await?;
        Ok::<_, anyhow::Error>((answer.status().as_u16(), answer.json::<Value>().await?))
    };
    let (status, all) = get("skill=*").await?;
    let cards = all["agents"].as_array().context("no agents")?;
    assert_eq!(status, 200);
    for card in cards {
        for member in ["name", "description", "url", "version", "skills", "why"] {
            assert!(!card[member].is_null(), "{member}: {card}");
        }
    }
    let (_, git) = get("skill=*&tags=git&q=history").await?;
    assert_eq!(git["agents"][0]["agentId"], "git-historian", "{git}");
    let url_of = git["agents"][0]["url"].as_str().unwrap_or_default();
    assert!(url_of.ends_with("/agents/git-historian"), "{url_of}");
    let (status, refused) = get("version=%3E%3D99&name=echo").await?;
    assert_eq!((status, &refused["error"]["status"]), (404, &json!("NOT_FOUND")), "{refused}");
    let (status, refused) = get("capability=x").await?;
    assert_eq!(status, 400, "{refused}");
    Ok(())
}

#[tokio::test]
async fn alias_works_over_every_transport() -> Result<()> {
    let hub = hub().await?;
    for client in [Client::http(&hub), Client::unix(&hub)] {
        let task = send(&client, "parrot", "hello").await?;
        assert_eq!((state(&task), said(&task)), ("completed", "hello"));
        let echo = client.call("hub/agents/get", json!({ "agentId": "parrot" })).await?;
        assert_eq!(echo["id"], "echo");
        let tasks = client.call("hub/tasks/list", json!({ "agentId": "mirror" })).await?;
        assert_eq!(tasks[0]["agentId"], "echo", "{tasks}");
        let wrong = send(&client, "parot", "hello").await.expect_err("nobody is called so");
        assert!(format!("{wrong:#}").contains("did you mean `parrot`?"), "{wrong:#}");
    }
    // An official client at the alias's endpoint reaches the agent.
    let at = format!("http://{}/agents/mirror/.well-known/agent-card.json", hub.http());
    let card: Value = reqwest::get(&at).await?.json().await?;
    assert!(card["url"].as_str().is_some_and(|url| url.contains("/agents/echo")), "{card}");
    let at = format!("http://{}/agents/miror", hub.http());
    let refused = reqwest::Client::new()
        .post(&at)
        .header("content-type", "application/json")
        .body("{}")
        .send()
        .await?
        .text()
        .await?;
    assert!(refused.contains("did you mean `mirror`?"), "{refused}");
    Ok(())
}

/// A component in the plugins folder cannot take over an alias that the operator gave to another
/// agent.
#[tokio::test]
async fn component_cannot_take_operator_alias() -> Result<()> {
    let hub = hub().await?;
    let client = Client::unix(&hub);
    let params = json!({ "agentId": "parrot", "path": test_guests()? });
    let refused = client.call("hub/agents/register", params).await.expect_err("it is echo's");
    assert!(refused.to_string().contains("is an alias of the agent `echo`"), "{refused}");
    assert_eq!(said(&send(&client, "parrot", "still me").await?), "still me");
    Ok(())
}

#[tokio::test]
async fn agent_finds_only_callable_agents() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let found = send(&client, "guest", r#"find {"limit":100}"#).await?;
    assert_eq!(said(&found).split(' ').next(), Some("echo"), "{found}");
    assert!(!said(&found).contains("codex"), "{found}");
    let other = send(&client, "guest", "find git history of a repository").await?;
    assert_eq!((state(&other), said(&other)), ("completed", ""), "{other}");
    let by_alias = send(&client, "guest", "call parrot well well").await?;
    assert_eq!(said(&by_alias), "parrot said: well well");
    Ok(())
}

/// Aliases in a manifest take effect once the operator granted the component something, and never
/// override another name.
#[tokio::test]
async fn manifest_aliases_require_a_grant() -> Result<()> {
    let hub = hub().await?;
    let client = Client::unix(&hub);
    let bytes = fs::read(test_guests()?.with_file_name("echo.wasm"))?;
    let manifest = "aliases = ['polly', 'parrot', 'codex']\n[memory]\nmax_bytes = 1000\n";
    let (packed, _) = embed(&bytes, manifest.as_bytes())?;
    let file = hub.workspace().join("lori.wasm");
    fs::write(&file, &packed)?;
    client.call("hub/agents/register", json!({ "agentId": "lori", "path": file })).await?;
    let unknown = send(&client, "polly", "hello").await.expect_err("it is a stranger");
    assert!(format!("{unknown:#}").contains("no agent is called `polly`"), "{unknown:#}");

    let granted = Grant { memory: Allowance::Bytes(1000), ..Grant::default() };
    let new = NewGrant { grant: granted, ..by_command(digest_of(&packed)) };
    let lori = AgentId::parse("lori")?;
    GrantsFile::new(&hub.data_dir()).change(|all| all.grant(&lori, new, 0xbeef))?;
    client.call("hub/plugins/refresh", json!({})).await?;
    let task = send(&client, "polly", "hello").await?;
    assert_eq!(said(&task), "hello");
    let found = client.call("hub/agents/find", json!({ "name": "polly" })).await?;
    assert_eq!((ids(&found), &found["agents"][0]["aliases"]), (vec!["lori"], &json!(["polly"])));
    let parrot = client.call("hub/agents/get", json!({ "agentId": "parrot" })).await?;
    let codex = client.call("hub/agents/get", json!({ "agentId": "codex" })).await?;
    assert_eq!((&parrot["id"], &codex["id"]), (&json!("echo"), &json!("codex")));
    let status = client.call("hub/status", json!({})).await?;
    let told = status["warnings"].to_string();
    assert!(
        told.contains("the alias `codex` of `lori`") && told.contains("the alias `parrot`"),
        "{told}"
    );
    Ok(())
}

#[tokio::test]
async fn unknown_agent_names_in_config_warn() -> Result<()> {
    let config = "default_agent = 'lori'\nroot_agent = 'ecko'\n[agents.ecko]\n[agents.later]\n[agents.gone]\nenabled = false\n";
    let hub = InProcessHub::builder().config(config).start().await?;
    let client = Client::unix(&hub);
    let warnings = async || -> Result<String> {
        let status = client.call("hub/status", json!({})).await?;
        Ok(status["warnings"].to_string())
    };
    let told = warnings().await?;
    for told_of in [
        "`default_agent` is `lori`, and no agent is called so",
        "`root_agent` is `ecko`, and no agent is called so; did you mean `echo`?",
        "`agents.ecko` sets something for an agent that is not there; did you mean `agents.echo`?",
    ] {
        assert!(told.contains(told_of), "{told}");
    }
    assert!(!told.contains("later") && !told.contains("gone"), "its agent may come: {told}");
    let file = test_guests()?.with_file_name("echo.wasm");
    client.call("hub/agents/register", json!({ "agentId": "lori", "path": file })).await?;
    assert!(!warnings().await?.contains("lori"), "it is there now");
    Ok(())
}

/// A hub queries the hubs that it has as registries, which do not query further ones; an agent
/// found there can be called once the operator has configured it.
#[tokio::test]
async fn registry_agents_need_configuration_for_calls() -> Result<()> {
    let there = hub().await?;
    let url = format!("http://{}", there.http());
    let config = format!(
        "registry.team.url = '{url}'\nregistry.gone.url = 'http://127.0.0.1:1'\nremote.far.url = '{url}/agents/echo'\n"
    );
    let here = InProcessHub::builder().config(config).start().await?;
    let client = Client::http(&here);
    let query = json!({ "query": "behaves as told", "limit": 3 });
    let found = client.call("hub/agents/find", query.clone()).await?;
    let guest = &found["elsewhere"][0];
    assert_eq!(guest["registry"], "team", "{found}");
    assert!(
        guest["url"].as_str().is_some_and(|it| it.starts_with(&url)) && guest["agent"].is_null(),
        "{guest}"
    );
    assert_eq!(found["unasked"][0]["registry"], "gone", "{found}");
    assert!(!ids(&found).contains(&"guest"), "{found}");
    let refused = send(&client, "guest", "hello").await.expect_err("it is not here");
    assert!(format!("{refused:#}").contains("no agent is called `guest`"), "{refused:#}");

    let echo = client.call("hub/agents/find", json!({ "name": "echo" })).await?;
    assert_eq!(echo["elsewhere"][0]["agent"], "far", "{echo}");
    let task = send(&client, "far", "hello").await?;
    assert_eq!((state(&task), said(&task)), ("completed", "hello"));
    let hop =
        reqwest::Client::new().get(format!("http://{}/agents?q=behaves+as+told", here.http()));
    let asked: Value = hop.header("a2a-hub-hops", "1").send().await?.json().await?;
    assert!(asked["elsewhere"].is_null() && asked["unasked"].is_null(), "{asked}");
    let local =
        client.call("hub/agents/find", json!({ "name": "guest", "localOnly": true })).await?;
    assert!(local["elsewhere"].is_null(), "{local}");
    Ok(())
}
