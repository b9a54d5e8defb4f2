//! Tests of blackboards that agents read and change while they work, by tools.

use super::topics::call_tool;
use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, eventually_async, get, send, state},
};
use a2a_hub_tests::{
    Client,
    delegation::tree,
    durable_guest, message_to,
    tenants::{TENANTS, token},
    test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);

/// Two agents do what the first line of the prompt says; the others are for the durable guest.
const FLOW: &str = r#"
description = "Shares a board"
[[step]]
id = "work"
prompt = """
sh python3 WORKSPACE/turn.py; exit 0
sleep 3000
"""
[step.blackboard]
agents = [AGENTS]
rounds = 3
items = [{ id = "plan", text = "Which parts?" }, { id = "docs", text = "Write", needs = ["plan"] }]
"#;

/// Tools of the hub's MCP server on the unix socket, for a program of an agent. The turn ends with
/// an answer on standard error, which is the text of the task.
const TOOLS: &str = r#"
import json, os, socket, sys, time
it = socket.socket(socket.AF_UNIX)
it.connect("SOCKET")
lines = it.makefile()
def say(method, params):
    it.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    return json.loads(lines.readline())
say("hub/speak", {"protocol": "mcp", "onlyBlackboards": True})
say("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
def tool(name, **arguments):
    result = say("tools/call", {"name": name, "arguments": arguments})["result"]
    told = result.get("structuredContent") or result["content"][0]["text"]
    print(json.dumps(told), flush=True)
    return told
def mark(name):
    open(os.path.join("WORKSPACE", name), "w").close()
def until(name):
    while not os.path.exists(os.path.join("WORKSPACE", name)):
        time.sleep(0.05)
def ends():
    print('{"contributions": []}', file=sys.stderr)
    sys.exit(0)
"#;

/// One agent claims the item; the other, which tries as well, adds one meanwhile.
const TURNS: &str = r#"
try:
    os.mkdir("WORKSPACE/first")
except FileExistsError:
    if os.path.exists("WORKSPACE/tried"):
        until("over")
        ends()
    until("claimed")
    print(json.dumps([tool["name"] for tool in say("tools/list", {})["result"]["tools"]]))
    print(json.dumps(say("tools/call", {"name": "list_agents", "arguments": {}})))
    tool("claim_item", id="plan", version=1)
    tool("add_item", id="more", text="Look for more", kind="question")
    tool("add_item", id="forged", text="x", author="ann")
    tool("read_blackboard")
    mark("tried")
    ends()
tool("claim_item", id="plan", version=1)
mark("claimed")
until("tried")
tool("finish_item", id="plan", version=2, text="two parts")
for item in tool("read_blackboard")["boards"][0]["items"]:
    if item["state"] == "open":
        claimed = tool("claim_item", id=item["id"], version=item["version"])
        tool("finish_item", id=item["id"], version=claimed["item"]["version"], text="done")
mark("over")
ends()
"#;

/// An agent claims the item in its first turn, and finishes all in its second one.
const TWO_TURNS: &str = r#"
try:
    os.mkdir("WORKSPACE/first")
except FileExistsError:
    for item in tool("read_blackboard")["boards"][0]["items"]:
        claimed = tool("claim_item", id=item["id"], version=item["version"])
        tool("finish_item", id=item["id"], version=claimed["item"]["version"], text="done")
    ends()
tool("claim_item", id="plan", version=1)
ends()
"#;

/// Configuration of test guests whose programs may use the hub.
fn granted(agents: &[&str]) -> String {
    let common = GRANT.split("    [agents.guest.grant.process.sleep]").next().unwrap_or_default();
    let own = agents.iter().map(|agent| {
        format!(
            "[agents.{agent}]\nconfine = false\n[agents.{agent}.grant]\nmemory = true\ndelegate = ['echo']\n\
             [agents.{agent}.grant.process.sh]\n"
        )
    });
    format!("{common}\n{}", own.collect::<String>())
}

fn put(hub: &InProcessHub, agents: &str, turn: &str) -> Result<()> {
    let workspace = hub.workspace().display().to_string();
    let flow = FLOW.replace("WORKSPACE", &workspace).replace("AGENTS", agents);
    let file = hub.data_dir().join("flows").join("share.flow.toml");
    fs::write(&file, flow)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    put_script(hub, "turn.py", turn)
}

fn put_script(hub: &InProcessHub, name: &str, script: &str) -> Result<()> {
    let script = format!("{TOOLS}{script}");
    let script = script.replace("SOCKET", &hub.socket().display().to_string());
    let script = script.replace("WORKSPACE", &hub.workspace().display().to_string());
    Ok(fs::write(hub.workspace().join(name), script)?)
}

async fn begin(client: &Client) -> Result<String> {
    let mut message = message_to("share", "");
    message["configuration"] = json!({ "blocking": false });
    let task = client.call("message/send", message).await?;
    Ok(task["id"].as_str().context("no id")?.to_owned())
}

async fn ended(client: &Client, id: &str) -> Result<Value> {
    let is_over = async || {
        get(client, id).await.is_ok_and(|task| ["completed", "failed"].contains(&state(&task)))
    };
    eventually_async(PATIENCE, is_over).await?;
    get(client, id).await
}

/// Answers of the tools to the programs of this agent, as lines.
async fn told(client: &Client, flow: &str, agent: &str) -> Result<String> {
    let mut told = String::new();
    for task in tree(client, &json!(flow)).await? {
        if task["agentId"] == agent {
            let task = get(client, task["id"].as_str().context("no id")?).await?;
            told.push_str(&artifact(&task));
        }
    }
    Ok(told)
}

#[tokio::test]
async fn agents_share_board_by_tools() -> Result<()> {
    let hub = InProcessHub::builder().config(granted(&["ann", "bob", "eve"]));
    let hub = hub.plugin("ann", test_guests()?).plugin("bob", test_guests()?);
    let hub = hub.plugin("eve", test_guests()?).start().await?;
    put(&hub, "'ann', 'bob'", TURNS)?;
    hub.joined("share").await?;
    let client = Client::http(&hub);
    let flow = begin(&client).await?;
    let is_claimed = || hub.workspace().join("claimed").exists();
    eventually_async(PATIENCE, async || is_claimed()).await?;

    // Neither a program of another task nor a client changes the board, or sees it unasked.
    let eve = format!(
        "tool('claim_item', id='docs', version=1)\ntool('read_blackboard')\ntool('read_blackboard', task='{flow}')\n"
    );
    put_script(&hub, "eve.py", &eve)?;
    let path = hub.workspace().join("eve.py").display().to_string();
    let strange = artifact(&send(&client, "eve", &format!("sh python3 {path}")).await?);
    ensure!(strange.contains("is no turn at a blackboard"), "{strange}");
    ensure!(strange.contains("no flow with a blackboard called task"), "{strange}");
    ensure!(!strange.contains("\"boards\""), "{strange}");

    let task = ended(&client, &flow).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let both = [told(&client, &flow, "ann").await?, told(&client, &flow, "bob").await?];
    let (first, other) = if both[0].contains("\"two parts\"") && !both[0].contains("claimed it") {
        (("ann", &both[0]), ("bob", &both[1]))
    } else {
        (("bob", &both[1]), ("ann", &both[0]))
    };
    ensure!(other.1.contains(&format!("\"refused\": \"{} claimed it\"", first.0)), "{both:?}");
    ensure!(other.1.contains("it has no argument `author`"), "{both:?}");
    let names = r#"["read_blackboard", "add_item", "claim_item", "finish_item", "release_item"]"#;
    ensure!(other.1.contains(names), "{both:?}");
    ensure!(other.1.contains("no tool is called `list_agents`"), "{both:?}");
    ensure!(other.1.contains(&format!("\"author\": \"{}\"", other.0)), "{both:?}");
    let parts = task["artifacts"].as_array().context("no artifacts")?;
    let output = &parts.last().context("no output")?["parts"][0]["data"];
    let items = output["items"].as_array().context("no items")?;
    let facts: Vec<_> =
        items.iter().map(|item| (&item["id"], &item["by"], &item["state"])).collect();
    let (done, first) = (json!("done"), json!(first.0));
    let ids = [json!("plan"), json!("docs"), json!("more")];
    assert_eq!(facts, ids.each_ref().map(|id| (id, &first, &done)), "{output}");
    assert_eq!((&output["outcome"], &output["rounds"]), (&json!("goal"), &json!(1)), "{output}");
    Ok(())
}

/// The hub restarts after a change by a tool, in the middle of the round.
#[tokio::test]
async fn restart_makes_each_change_once() -> Result<()> {
    let config = granted(&["ann"]) + "[agents.slow.grant]\nmemory = true\n";
    let hub = InProcessHub::builder().config(config).plugin("ann", test_guests()?);
    let mut hub = hub.plugin("slow", durable_guest()?).start().await?;
    put(&hub, "'ann', 'slow'", TWO_TURNS)?;
    hub.joined("share").await?;
    let flow = begin(&Client::http(&hub)).await?;
    let is_claimed = async || {
        let task = get(&Client::http(&hub), &flow).await;
        let told = task.map(|task| task["metadata"]["blackboard.work"]["items"][0]["by"].clone());
        told.is_ok_and(|by| by == "ann")
    };
    eventually_async(PATIENCE, is_claimed).await?;
    hub.restart().await?;
    // The script names the socket, which stays the same.
    let client = Client::http(&hub);
    let task = ended(&client, &flow).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let parts = task["artifacts"].as_array().context("no artifacts")?;
    let output = &parts.last().context("no output")?["parts"][0]["data"];
    let history = output["items"][0]["history"].as_array().context("no history")?;
    let changes: Vec<_> = history.iter().map(|it| (&it["change"], &it["round"])).collect();
    let expected = [("added", 0), ("claimed", 1), ("claimed", 2), ("done", 2)];
    let expected = expected.map(|(change, round)| (json!(change), json!(round)));
    assert_eq!(changes, expected.each_ref().map(|(change, round)| (change, round)), "{output}");
    Ok(())
}

#[tokio::test]
async fn clients_read_boards_of_their_tenant() -> Result<()> {
    let config =
        format!("{TENANTS}\n{}", granted(&["ann"]).replace("[breaker]\n    failures = 1000\n", ""));
    let hub = InProcessHub::builder().config(config).plugin("ann", test_guests()?).start().await?;
    put(&hub, "'ann'", "ends()")?;
    hub.joined("share").await?;
    let client = Client::http(&hub);
    let flow = begin(&client).await?;
    ended(&client, &flow).await?;
    let operator = fs::read_to_string(hub.data_dir().join("http-token"))?;
    let operator = format!("Bearer {}", operator.trim());
    let read = json!({ "task": flow });
    let shown = call_tool(&hub, &operator, "read_blackboard", read.clone()).await?;
    let board = &shown["structuredContent"]["boards"][0];
    assert_eq!(
        (&board["step"], &board["outcome"]),
        (&json!("work"), &json!("quiescent")),
        "{shown}"
    );
    assert_eq!(board["items"][0]["id"], "plan");
    for (token, tool, arguments, why) in [
        (token(&hub, "acme")?, "read_blackboard", read.clone(), "no task"),
        (operator.clone(), "read_blackboard", json!({}), "name the task of a flow in `task`"),
        (
            operator.clone(),
            "read_blackboard",
            json!({ "task": flow, "step": "x" }),
            "has no blackboard of a step `x`",
        ),
        (
            operator,
            "claim_item",
            json!({ "id": "plan", "version": 1 }),
            "only programs of agents that have a turn",
        ),
    ] {
        let refused = call_tool(&hub, &token, tool, arguments).await?;
        ensure!(
            refused["isError"] == true && refused.to_string().contains(why),
            "{why}: {refused}"
        );
    }
    Ok(())
}
