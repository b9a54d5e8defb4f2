//! Agents are found by what they are called and can do: by clients on every door, on the command line, and by other agents.

use crate::{
    command_line::run,
    stage::{said, send, state},
};
use a2a_hub_tests::{
    Client, TestHub,
    finding::{config, ids},
    test_guests,
};
use anyhow::Result;
use serde_json::{Value, json};

async fn hub() -> Result<TestHub> {
    TestHub::builder().config(config()).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn the_command_line_finds_agents_and_says_why() -> Result<()> {
    let hub = hub().await?;
    let found = run(&hub, &["agents", "--find", "git history", "--tags", "git"]).await?;
    assert!(
        found.stdout.starts_with("git-historian\t") && found.stdout.contains("\"history\" in "),
        "{}",
        found.stdout
    );
    let json =
        run(&hub, &["--format", "json", "agents", "--name", "mirror", "--version", "*"]).await?;
    let json: Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(ids(&json), ["echo"]);
    let refused = run(&hub, &["agents", "--name", "echo", "--version", ">=99"]).await?;
    assert!(refused.stderr.contains("allowOlder"), "{}", refused.stderr);
    Ok(())
}

/// A hub that another one names as its registry tells it of its agents, and asks nobody itself; what is found there can be called once
/// the operator has named it.
#[tokio::test]
async fn agents_of_other_hubs_are_found_and_called_only_once_they_are_named() -> Result<()> {
    let there = hub().await?;
    let url = format!("http://{}", there.http());
    let config = format!(
        "registry.team.url = '{url}'\nregistry.gone.url = 'http://127.0.0.1:1'\nremote.far.url = '{url}/agents/echo'\n"
    );
    let here = TestHub::builder().config(config).start().await?;
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
    let ran = run(&here, &["agents", "--find", "behaves as told"]).await?;
    assert!(
        ran.stdout.contains("(team)") && ran.stdout.contains("The registry gone told of nobody"),
        "{}",
        ran.stdout
    );
    Ok(())
}
