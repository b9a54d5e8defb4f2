//! Tests of MCP tools that an operator configures for an agent: only that agent can call them, per
//! tool, even if the server is hostile.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, said, send, state, stream, until},
};
use a2a_hub_tests::{
    Client, test_guests,
    tools::{SERVER, call, config, servers, which},
};
use anyhow::Result;
use serde_json::json;
use std::{fs, time::Duration};
use tempfile::TempDir;

/// Starts a hub whose agent `guest` has these tools of its server `files`, and whose agent `other`
/// has a tool of a server that cannot start.
async fn hub(tools: &str) -> Result<(InProcessHub, TempDir)> {
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("server.py"), SERVER)?;
    let guests = test_guests()?;
    let hub = InProcessHub::builder().config(config(place.path(), tools));
    let hub = hub.plugin("guest", &guests).plugin("other", &guests).start().await?;
    Ok((hub, place))
}

#[tokio::test]
async fn hostile_server_fails_only_its_calls() -> Result<()> {
    let all =
        "'read', 'big', 'line', 'chatter', 'never', 'hang', 'die', 'wrong', 'shapeless', 'asks'";
    let (hub, _place) = hub(all).await?;
    let before = which(&hub).await?;
    // The server survives these calls.
    for (tool, why) in [
        ("big", "longer than 1 MiB"),
        ("never 500", "time"),
        ("wrong", "the server refuses: \"wants a path\""),
        ("shapeless", "none of the protocol's"),
        ("asks", "only a result is of use"),
    ] {
        let told = call(&hub, tool).await?;
        assert!(told.contains(why), "{tool}: {told}");
    }
    assert_eq!(which(&hub).await?, before);
    // Each of these calls restarts the server.
    let mut before = before;
    for (tool, why) in [
        ("line", "it said a line of more than 4 MiB"),
        ("hang 500", "time"),
        ("die", "it ended with code 3, and said last: \"[2Jno key\""),
    ] {
        let told = call(&hub, tool).await?;
        assert!(told.contains(why), "{tool}: {told}");
        let now = which(&hub).await?;
        assert_ne!(now, before, "{tool}");
        before = now;
        assert_eq!(servers(hub.pid()), 1, "{tool}");
    }
    // The fifth start within a minute is the last one.
    call(&hub, "die").await?;
    which(&hub).await?;
    call(&hub, "die").await?;
    let told = call(&hub, "read").await?;
    assert!(told.contains("it was started 5 times within") && told.contains("no key"), "{told}");
    let echo = send(&Client::unix(&hub), "echo", "all else goes on").await?;
    assert_eq!(state(&echo), "completed");
    Ok(())
}

#[tokio::test]
async fn flooding_server_is_throttled_and_ended() -> Result<()> {
    let (hub, _place) = hub("'read', 'chatter'").await?;
    let told = call(&hub, "chatter 2000").await?;
    assert!(told.contains("time"), "{told}");
    which(&hub).await?;
    assert_eq!(servers(hub.pid()), 1);
    Ok(())
}

/// The server is another hub, whose agents are its tools.
#[tokio::test]
async fn remote_server_follows_agent_http_grant() -> Result<()> {
    let server = InProcessHub::start().await?;
    let port = server.http().rsplit(':').next().unwrap_or_default().to_owned();
    let config = |methods: &str| {
        format!(
            "{GRANT}\n[agents.guest.mcp.hub]\nurl = 'http://127.0.0.1:{port}/mcp'\n[agents.guest.grant.tools]\nhub = ['echo']\n\
             [agents.guest.grant.http.'127.0.0.1']\nscheme = 'http'\nprivate = true\nports = [{port}]\nmethods = [{methods}]\n"
        )
    };
    let guests = test_guests()?;
    let hub =
        InProcessHub::builder().config(config("'POST'")).plugin("guest", &guests).start().await?;
    let client = Client::unix(&hub);
    let listed = send(&client, "guest", "tools").await?;
    assert!(said(&listed).starts_with("hub:echo Has the agent `echo` work"), "{listed}");
    let told = send(&client, "guest", r#"tool hub:echo 20000 {"message":"over there"}"#).await?;
    assert!(said(&told).contains("over there"), "{told}");
    let refused = send(&client, "guest", "tool hub:list_agents 20000 {}").await?;
    assert!(said(&refused).contains("--tool hub:list_agents"), "{refused}");

    let hub =
        InProcessHub::builder().config(config("'GET'")).plugin("guest", &guests).start().await?;
    let told = send(&Client::unix(&hub), "guest", "tool hub:echo 20000 {}").await?;
    assert!(said(&told).contains("POST"), "a rule of the agent's requests: {told}");
    Ok(())
}

#[tokio::test]
async fn revocation_ends_calls_and_server() -> Result<()> {
    let (hub, place) = hub("'read', 'never'").await?;
    let client = Client::unix(&hub);
    which(&hub).await?;
    let (_, mut updates) = stream(&client, "guest", "tool files:never 60000").await?;
    until(&mut updates, |event| state(event) == "working").await?;
    hub.configure(&config(place.path(), ""))?;
    client.call("hub/reload", json!({})).await?;
    let end = until(&mut updates, |event| event["final"] == true).await?;
    assert!(said(&end).contains("revoked by the operator"), "{end}");
    eventually(Duration::from_secs(10), || servers(hub.pid()) == 0).await?;
    let told = call(&hub, "read").await?;
    assert!(told.contains("not granted") || told.contains("none is granted"), "{told}");
    Ok(())
}
