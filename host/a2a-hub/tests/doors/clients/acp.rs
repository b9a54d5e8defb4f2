//! Tests of ACP's working directory, which the agent's workspaces decide about.

mod agents;
mod replays;

use crate::{hub::InProcessHub, stage::GRANT};
use a2a_hub_tests::{
    mcp::{speak, spoken},
    test_guests,
};
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;

#[tokio::test]
async fn session_outside_workspaces_is_refused() -> Result<()> {
    let hub = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let workspace = hub.workspace();
    fs::create_dir(workspace.join("inner"))?;
    fs::write(workspace.join("file"), "")?;
    let paths = [
        (workspace.to_owned(), None),
        (workspace.join("inner"), None),
        (workspace.join("missing"), Some("No such file")),
        (workspace.join("file"), Some("Not a directory")),
        ("/usr".into(), Some("outside the granted workspaces")),
        (workspace.join("../.."), Some("outside the granted workspaces")),
        ("inner".into(), Some("absolute path")),
    ];
    for (path, why) in paths {
        let request = |id: u8, method: &str, params: Value| json!({ "id": id, "method": method, "params": params });
        let params = json!({ "cwd": path, "mcpServers": [] });
        let lines = [
            speak(&json!({ "protocol": "acp", "agentId": "guest" })),
            request(2, "session/new", params.clone()),
        ];
        let told = spoken(&hub, &lines, 2).await?;
        let answer = &told[1];
        let Some(why) = why else {
            assert!(answer["result"]["sessionId"].is_string(), "{answer}");
            continue;
        };
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("`cwd`") && message.contains(why), "{message}");
    }
    Ok(())
}

/// A session can be loaded in a workspace only, too.
#[tokio::test]
async fn loading_outside_workspaces_is_refused() -> Result<()> {
    let hub = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let acp = speak(&json!({ "protocol": "acp", "agentId": "guest" }));
    let text = json!({ "kind": "text", "text": "sh echo done" });
    let message = json!({ "messageId": "1", "role": "user", "parts": [text], "contextId": "c" });
    let params = json!({ "message": message, "metadata": { "targetAgent": "guest" } });
    let send = json!({ "jsonrpc": "2.0", "id": 7, "method": "message/send", "params": params });
    spoken(&hub, &[send], 1).await?;
    for (cwd, why) in
        [("/usr", Some("outside the granted")), (&hub.workspace().display().to_string(), None)]
    {
        let params = json!({ "sessionId": "c", "cwd": cwd, "mcpServers": [] });
        let load = json!({ "id": 2, "method": "session/load", "params": params });
        let answers = if why.is_some() { 2 } else { 5 };
        let told = spoken(&hub, &[acp.clone(), load], answers).await?;
        let answer = told.iter().find(|line| line["id"] == 2).cloned().unwrap_or_default();
        match why {
            Some(why) => assert!(answer["error"].to_string().contains(why), "{told:?}"),
            None => assert!(answer.get("result").is_some(), "{told:?}"),
        }
    }
    Ok(())
}
