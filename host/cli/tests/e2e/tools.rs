//! Tests of MCP servers that an operator configures for an agent: only that agent reaches them,
//! tool by tool, whatever the server does.

use crate::{
    command_line::run,
    stage::{said, send},
};
use a2a_hub_tests::{
    Client, TestHub, test_guests,
    tools::{SERVER, call, config, servers, which},
};
use anyhow::Result;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Starts a hub whose agent `guest` may call these tools of its server `files`; `other` may call a
/// tool of an undefined server.
async fn hub(tools: &str) -> Result<(TestHub, TempDir)> {
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("server.py"), SERVER)?;
    let guests = test_guests()?;
    let hub =
        TestHub::builder().config(config(place.path(), tools)).env("SERVER_KEY", "sesame-sesame");
    let hub = hub.plugin("guest", &guests).plugin("other", &guests).start().await?;
    Ok((hub, place))
}

#[tokio::test]
async fn agent_calls_only_granted_tools() -> Result<()> {
    let (hub, _place) = hub("'read', 'noise'").await?;
    let client = Client::unix(&hub);
    assert_eq!(servers(hub.pid()), 0, "nobody has asked for it");
    let listed = send(&client, "guest", "tools").await?;
    let lines: Vec<_> = said(&listed).lines().collect();
    assert_eq!(
        lines,
        [
            r#"files:noise Does [2J noise, list 1 {"type":"object"}"#,
            r#"files:read Does [2J read, list 1 {"type":"object"}"#,
        ],
        "{listed}"
    );
    let told = call(&hub, r#"read 20000 {"path":"a"}"#).await?;
    // The server's environment is redacted from output to the agent's clients.
    assert!(told.starts_with(r#"None read {"path": "a"} by "#), "{told}");
    assert!(told.ends_with("of [redacted SERVER_KEY]"), "{told}");
    let first = which(&hub).await?;
    assert_eq!((which(&hub).await?, servers(hub.pid())), (first, 1), "it serves several tasks");
    assert!(call(&hub, "noise").await?.starts_with("None read"), "what is no message is nothing");

    let refused = call(&hub, "secret").await?;
    assert!(refused.contains("a2a-hub plugin grant guest --tool files:secret"), "{refused}");
    for (tool, why) in [
        ("files:read", "`a2a-hub plugin grant other --tool files:read"),
        ("web:get", "`[agents.other.mcp.web]` of the hub's configuration does not say where it is"),
    ] {
        let told = send(&client, "other", &format!("tool {tool}")).await?;
        let told = said(&told).replace("with `a2a-hub", "`a2a-hub");
        assert!(told.contains(why), "{tool}: {told}");
    }
    let agents = run(&hub, &["--format", "json", "agents"]).await?;
    let agents: Value = serde_json::from_str(&agents.stdout)?;
    let lacks = |id: &str| {
        let agent = agents.as_array().and_then(|all| all.iter().find(|agent| agent["id"] == id));
        agent.map(|agent| agent["notGranted"].to_string()).unwrap_or_default()
    };
    assert!(!lacks("guest").contains("tools"), "{}", lacks("guest"));
    assert!(lacks("git-historian").is_empty() || !lacks("git-historian").contains("tools"));
    Ok(())
}
