//! Tests of `a2a-hub acp` with the official ACP SDK as the editor: its driver is in `tests/sdks`,
//! and every step must pass.

mod agents;

use crate::{
    drivers::{drive, script, sdk},
    stage::{GRANT, eventually_async},
};
use a2a_hub_tests::{Client, TestHub, delegation, hub_binary, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{collections::BTreeMap, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// Steps of the driver.
const STEPS: &[&str] = &[
    "initialize",
    "new_session",
    "prompted",
    "blocks",
    "permission",
    "question",
    "cancel",
    "modes",
    "load",
    "list",
    "resume",
    "options",
    "form",
    "cancel_request",
    "close_and_delete",
    "errors",
    "schema",
];

/// Steps of the Python driver.
const PYTHON: &[&str] =
    &["initialize", "prompted", "permission", "options", "form", "listed", "resumed", "closed"];

async fn hub() -> Result<TestHub> {
    let config = format!("default_agent = 'guest'\n{GRANT}");
    TestHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

#[expect(clippy::disallowed_methods, reason = "an editor starts it")]
async fn javascript(agent: &[&str]) -> Result<()> {
    let hub = hub().await?;
    let mut node = Command::new("node");
    node.arg(script("acp_js.mjs")).arg(format!("http://{}/", hub.http())).arg("1");
    node.arg(sdk("acp-js")?).arg(hub_binary()?).arg("--socket").arg(hub.socket());
    node.arg("acp").args(agent);
    drive(node, &hub, STEPS).await
}

#[tokio::test]
async fn javascript_with_an_agent() -> Result<()> {
    javascript(&["guest"]).await
}

#[tokio::test]
async fn javascript_with_the_default_agent() -> Result<()> {
    javascript(&[]).await
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "an editor starts it")]
async fn python_with_an_agent() -> Result<()> {
    let hub = hub().await?;
    let mut python = Command::new(sdk("acp-py")?.join("bin/python"));
    python.arg("-B").arg(script("acp_py.py")).arg(hub_binary()?).arg("--socket").arg(hub.socket());
    python.args(["acp", "guest"]);
    drive(python, &hub, PYTHON).await
}

/// Editor that exchanges lines with `a2a-hub acp`.
struct Editor {
    acp: Child,
    say: ChildStdin,
    told: Lines<BufReader<ChildStdout>>,
    asked: u64,
}

impl Editor {
    #[expect(clippy::disallowed_methods, reason = "an editor starts it")]
    fn start(hub: &TestHub) -> Result<Self> {
        let mut acp = Command::new(hub_binary()?);
        acp.arg("--socket").arg(hub.socket()).args(["acp", "guest"]);
        let mut acp =
            acp.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let say = acp.stdin.take().context("no input")?;
        let told = BufReader::new(acp.stdout.take().context("no output")?).lines();
        Ok(Self { acp, say, told, asked: 0 })
    }

    async fn say(&mut self, method: &str, params: Value) -> Result<()> {
        self.asked += 1;
        let line =
            json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        Ok(self.say.write_all(format!("{line}\n").as_bytes()).await?)
    }

    async fn hear(&mut self) -> Result<Value> {
        let line = timeout(Duration::from_secs(60), self.told.next_line()).await??;
        Ok(serde_json::from_str(&line.context("it ended")?)?)
    }

    /// Sends a request; returns the response and the messages before it.
    async fn ask(&mut self, method: &str, params: Value) -> Result<(Value, Vec<Value>)> {
        self.say(method, params).await?;
        let mut told = Vec::new();
        loop {
            let line = self.hear().await?;
            if line["id"] == self.asked {
                return Ok((line, told));
            }
            told.push(line);
        }
    }
}

fn prompt(session: &Value, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn revoked_mode_is_reported_and_refused() -> Result<()> {
    let config = |permissions: &str| {
        let own = format!("[agents.guest]\n    permissions = '{permissions}'\n");
        GRANT.replace("[agents.guest]\n", &own)
    };
    let hub = TestHub::builder().config(config("full")).plugin("guest", test_guests()?);
    let hub = hub.start().await?;
    let mut editor = Editor::start(&hub)?;
    let begin = json!({ "cwd": hub.workspace(), "mcpServers": [] });
    let begun = editor.ask("session/new", begin).await?.0["result"].take();
    assert_eq!(begun["modes"]["currentModeId"], "full");
    let session = &begun["sessionId"];
    let edit = json!({ "sessionId": session, "modeId": "edit" });
    assert_eq!(editor.ask("session/set_mode", edit.clone()).await?.0["result"], json!({}));
    let (_, told) = editor.ask("session/prompt", prompt(session, "setting permissions")).await?;
    assert!(json!(told).to_string().contains("\"text\":\"edit\""), "{told:?}");

    hub.configure(&config("read-only"))?;
    Client::http(&hub).call("hub/reload", json!({})).await?;
    let (_, told) = editor.ask("session/prompt", prompt(session, "setting permissions")).await?;
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "read-only" });
    assert_eq!(told[0]["params"]["update"], update, "{told:?}");
    assert!(json!(told).to_string().contains("\"text\":\"read-only\""), "{told:?}");
    let refused = editor.ask("session/set_mode", edit).await?.0;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    Ok(())
}

#[tokio::test]
async fn delegated_tasks_are_tool_calls() -> Result<()> {
    let config = delegation::granted("'echo', 'guest'");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let mut editor = Editor::start(&hub)?;
    let begin = json!({ "cwd": hub.workspace(), "mcpServers": [] });
    let begun = editor.ask("session/new", begin.clone()).await?.0;
    let session = &begun["result"]["sessionId"];
    let turn = editor.ask("session/prompt", prompt(session, "call guest call echo hello")).await?;
    let calls = tool_calls(&turn.1);
    assert_eq!(calls.len(), 2, "{turn:?}");
    let titles: Vec<_> = calls.values().map(|call| &call["title"]).collect();
    assert!(titles.contains(&&json!("guest: call echo hello")), "{calls:?}");
    assert!(titles.contains(&&json!("echo: hello")), "{calls:?}");
    for call in calls.values() {
        assert_eq!(call["status"], "completed", "{call}");
        assert!(call["content"][0]["content"]["text"].to_string().contains("hello"), "{call}");
    }
    let failed = editor.ask("session/prompt", prompt(session, "call guest fail")).await?;
    assert_eq!(
        tool_calls(&failed.1).values().next().map(|call| &call["status"]),
        Some(&json!("failed"))
    );

    let mut load = begin;
    load["sessionId"] = session.clone();
    let (_, told) = editor.ask("session/load", load).await?;
    let loaded = tool_calls(&told);
    assert_eq!(loaded.len(), 3, "{told:?}");
    for (id, call) in &calls {
        assert_eq!(loaded[id]["status"], call["status"]);
    }
    let listed = editor.ask("session/list", json!({})).await?.0;
    let listed = listed["result"]["sessions"].as_array().context("no list")?.len();
    assert_eq!(listed, 1, "conversations of agents are no sessions");
    Ok(())
}

/// Tool calls by their ids, each with its updates applied.
fn tool_calls(told: &[Value]) -> BTreeMap<String, Value> {
    let mut calls = BTreeMap::<String, Value>::new();
    for update in told.iter().map(|line| &line["params"]["update"]) {
        let Some(id) = update["toolCallId"].as_str() else { continue };
        match (update["sessionUpdate"].as_str(), calls.get_mut(id)) {
            (Some("tool_call"), None) => {
                calls.insert(id.to_owned(), update.clone());
            }
            (Some("tool_call_update"), Some(Value::Object(call))) => {
                let members = update.as_object().into_iter().flatten();
                call.extend(members.map(|(name, value)| (name.clone(), value.clone())));
            }
            other => panic!("{other:?}: {update}"),
        }
    }
    calls
}

/// A killed editor must not leave a task running.
#[tokio::test]
async fn killed_editor_cancels_its_task() -> Result<()> {
    let hub = hub().await?;
    let mut editor = Editor::start(&hub)?;
    let begin = json!({ "cwd": hub.workspace(), "mcpServers": [] });
    let begun = editor.ask("session/new", begin).await?.0;
    editor.say("session/prompt", prompt(&begun["result"]["sessionId"], "tick 300 100")).await?;
    editor.hear().await?;
    editor.acp.kill().await?;
    let client = Client::http(&hub);
    eventually_async(Duration::from_secs(20), async || {
        let tasks = client.call("hub/tasks/list", json!({ "limit": 1 })).await;
        tasks.is_ok_and(|tasks| tasks[0]["status"]["state"] == "canceled")
    })
    .await
}
