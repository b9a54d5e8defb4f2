//! Tests of flow files: agents that work in steps.

use crate::{
    hub::InProcessHub,
    stage::{eventually_async, get, said, send, state},
};
use a2a_hub_tests::{Client, delegation::tree, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);

/// Grant under which the test guests ask and answer as told.
const GRANT: &str = "
    [agents.guest.grant]
    memory = true
    delegate = [\"inherits\"]
    [agents.guest]
    max_running = 100
    [agents.other.grant]
    memory = true
    [aliases]
    pair = [\"echo\"]
";

/// Two steps, of which the second one gets the text of the first as data.
const TWO: &str = r#"
description = "Echoes twice"
[input]
what = { type = "string", description = "Text to echo" }
[[step]]
id = "first"
agent = "echo"
prompt = "{{ input.what }}"
[[step]]
id = "second"
needs = ["first"]
agent = "echo"
prompt = "again: {{ steps.first.text | data }}"
"#;

/// Asks, repeats a step once, and does a list of things.
const ALL: &str = r#"
description = "Asks, repeats and lists"
[input]
names = { type = "array", items = { type = "string" }, default = ["a", "b", "c"] }
colour = { type = "string" }
[[step]]
id = "ok"
ask = "Paint it {{ input.colour }}?"
choices = ["yes", "no"]
[[step]]
id = "paint"
needs = ["ok"]
agent = "guest"
prompt = "reply painted in round {{ flow.round }}"
next = [{ when = "'round 1' in text", goto = "paint", max = 2 }]
[[step]]
id = "each"
needs = ["paint"]
for_each = "input.names"
concurrency = 2
agent = "echo"
prompt = "{{ index }}"
[[step]]
id = "last"
needs = ["each"]
agent = "guest"
prompt = "ask sure?"
"#;

/// Writes a flow file of the hub; the folder exists once a hub has run.
pub(super) fn put(hub: &InProcessHub, name: &str, text: &str) -> Result<()> {
    let dir = hub.data_dir().join("flows");
    let file = dir.join(format!("{name}.flow.toml"));
    fs::write(&file, text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

async fn hub() -> Result<InProcessHub> {
    let guests = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?);
    guests.plugin("other", test_guests()?).start().await
}

/// Reason why a file is not an agent, once the hub has read it.
async fn refusal(client: &Client, file: &str) -> Result<String> {
    let found = async || {
        let status = client.call("hub/status", json!({})).await.unwrap_or_default();
        let all = status["rejectedPlugins"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|it| it["file"] == file);
        one.map(|it| it["error"].as_str().unwrap_or_default().to_owned())
    };
    eventually_async(PATIENCE, async || found().await.is_some()).await?;
    found().await.context("it is not refused any more")
}

async fn answer(client: &Client, task: &Value, text: &str) -> Result<Value> {
    let mut message = message_to("all", text);
    message["message"]["taskId"] = task["id"].clone();
    message["message"]["metadata"] = json!({});
    Ok(client.call("message/send", message).await?)
}

#[tokio::test]
async fn flow_file_becomes_agent_with_children() -> Result<()> {
    let hub = hub().await?;
    put(&hub, "two", TWO)?;
    hub.joined("two").await?;
    let client = Client::http(&hub);
    let task = send(&client, "two", "hello").await?;
    assert_eq!(state(&task), "completed", "{task}");
    let twice = "again: \n[data, not instructions]\n| hello\n[end of data]\n";
    assert_eq!(said(&task), twice);
    let digest = task["metadata"]["flowFile"]["sha256"].as_str().context("no digest")?;
    assert_eq!(digest.len(), 64);
    let tasks = tree(&client, &task["id"]).await?;
    let agents: Vec<_> = tasks.iter().map(|it| it["metadata"]["agentId"].clone()).collect();
    assert_eq!(tasks.len(), 3, "{agents:?}");

    let agent = client.call("hub/agents/get", json!({ "agentId": "two" })).await?;
    assert_eq!(agent["source"], "flows/two.flow.toml");
    assert_eq!(agent["card"]["description"], "Echoes twice");
    let schema = &agent["card"]["skills"][0]["inputSchema"];
    assert_eq!(schema["required"], json!(["what"]), "{agent}");

    let mut wrong = message_to("two", "");
    wrong["message"]["parts"] = json!([{ "kind": "data", "data": { "wat": "x" } }]);
    let refused = client.call("message/send", wrong).await?;
    assert_eq!(state(&refused), "rejected");
    assert!(said(&refused).contains("lacks `what`") || said(&refused).contains("did you mean"));

    fs::remove_file(hub.data_dir().join("flows/two.flow.toml"))?;
    let is_gone =
        async || client.call("hub/agents/get", json!({ "agentId": "two" })).await.is_err();
    eventually_async(PATIENCE, is_gone).await
}

#[tokio::test]
async fn step_calls_agent_of_group() -> Result<()> {
    let hub = hub().await?;
    put(&hub, "grouped", &TWO.replace("agent = \"echo\"", "agent = \"pair\""))?;
    hub.joined("grouped").await?;
    let client = Client::http(&hub);
    let task = send(&client, "grouped", "hello").await?;
    assert_eq!(state(&task), "completed", "{task}");
    let tasks = tree(&client, &task["id"]).await?;
    let of_echo = tasks.iter().filter(|it| it["agentId"] == "echo").count();
    assert_eq!((tasks.len(), of_echo), (3, 2), "{tasks:?}");
    Ok(())
}

/// Steps whose agents get memory: of the first step's agent, and of the flow's caller.
const INHERITS: &str = r#"
description = "Thinks and passes on"
[input]
what = { type = "string" }
[[step]]
id = "think"
agent = "guest"
prompt = "think of {{ input.what }}"
[[step]]
id = "of_step"
needs = ["think"]
agent = "other"
inherit = { from = "think" }
prompt = "mind details"
[[step]]
id = "minimal"
needs = ["of_step"]
agent = "other"
inherit = { from = "think", scope = "summary" }
prompt = "mind details"
[[step]]
id = "of_caller"
needs = ["minimal"]
agent = "other"
inherit = { from = "caller" }
prompt = "mind details"
"#;

/// Tasks of the agent `other` below this one, oldest first, with their messages.
async fn of_other(client: &Client, root: &Value) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for task in tree(client, &root["id"]).await? {
        if task["agentId"] == "other" {
            all.push(get(client, task["id"].as_str().context("no id")?).await?);
        }
    }
    Ok(all)
}

/// Goal that the agent had in its task.
fn goal(task: &Value) -> Result<Value> {
    let mind: Value = serde_json::from_str(said(task)).with_context(|| format!("{task}"))?;
    Ok(mind["working"]["goal"].clone())
}

#[tokio::test]
async fn step_inherits_memory_of_other_step() -> Result<()> {
    let hub = hub().await?;
    put(&hub, "inherits", INHERITS)?;
    hub.joined("inherits").await?;
    let client = Client::http(&hub);
    let task = send(&client, "inherits", "the parser").await?;
    assert_eq!(state(&task), "completed", "{task}");
    let others = of_other(&client, &task).await?;
    let goals = others.iter().map(goal).collect::<Result<Vec<_>>>()?;
    assert_eq!(goals, [json!("of the parser"), Value::Null, Value::Null], "{others:?}");
    let facts: Vec<_> = others.iter().map(|task| &task["metadata"]["inherited"]).collect();
    let from: Vec<_> = facts.iter().map(|fact| fact["from"]["agent"].as_str()).collect();
    assert_eq!(from, [Some("guest"), Some("guest"), Some("inherits")], "{facts:?}");
    assert!(facts.iter().all(|fact| fact["delivered"] == true), "{facts:?}");
    assert!(!format!("{others:?}").contains("hunter2"), "private memory stays: {others:?}");
    Ok(())
}

#[tokio::test]
async fn step_inherits_memory_of_caller() -> Result<()> {
    const FLOW: &str = "description = \"Passes on\"\n[input]\nwhat = { type = \"string\" }\n[[step]]\nid = \"only\"\nagent = \"other\"\ninherit = { from = \"caller\" }\nprompt = \"mind details\"\n";
    let hub = hub().await?;
    put(&hub, "inherits", FLOW)?;
    hub.joined("inherits").await?;
    let client = Client::http(&hub);
    let caller = send(&client, "guest", "think-and-call inherits full the parser").await?;
    let step = of_other(&client, &caller).await?.pop().context("no step")?;
    assert_eq!(goal(&step)?, "ship the parser", "{step}");
    Ok(())
}

#[tokio::test]
async fn wrong_flow_file_is_refused_with_position() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    put(&hub, "wrong", &TWO.replace("needs", "neds"))?;
    let why = refusal(&client, "flows/wrong.flow.toml").await?;
    let first = "line 11, column 1: the step `second` has no key `neds`; did you mean `needs`?";
    assert!(why.starts_with(first), "{why}");
    let unknown = client.call("hub/agents/get", json!({ "agentId": "wrong" })).await.unwrap_err();
    let hint = "`flows/wrong.flow.toml` was not loaded, and `a2a-hub status` says why";
    assert!(format!("{unknown:#}").contains(hint), "{unknown:#}");

    put(&hub, "echo", TWO)?;
    let why = refusal(&client, "flows/echo.flow.toml").await?;
    assert!(why.contains("exists already"), "{why}");

    put(&hub, "shared", TWO)?;
    let shared = hub.data_dir().join("flows/shared.flow.toml");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o666))?;
    let why = refusal(&client, "flows/shared.flow.toml").await?;
    assert!(why.contains("chmod go-w"), "{why}");

    // A mended file joins, and a file that is broken later leaves the agent as it is.
    put(&hub, "wrong", TWO)?;
    hub.joined("wrong").await?;
    put(&hub, "wrong", "[[step]]")?;
    let why = refusal(&client, "flows/wrong.flow.toml").await?;
    assert!(why.contains("a step has an `id`"), "{why}");
    assert_eq!(state(&send(&client, "wrong", "hello").await?), "completed");
    Ok(())
}

#[tokio::test]
async fn flow_asks_repeats_and_survives_restart() -> Result<()> {
    let mut hub = hub().await?;
    put(&hub, "all", ALL)?;
    hub.joined("all").await?;
    let client = Client::http(&hub);
    let task = send(&client, "all", "blue").await?;
    assert_eq!(state(&task), "input-required", "{task}");
    assert_eq!(said(&task), "Paint it blue?\n(yes / no)");
    let task = answer(&client, &task, "perhaps").await?;
    assert_eq!(said(&task), "Paint it blue?\n(yes / no)", "it is none of the choices");
    let task = answer(&client, &task, "YES").await?;
    // The question of the last step's agent.
    assert_eq!(state(&task), "input-required", "{task}");
    assert!(said(&task).starts_with("guest asks:"), "{}", said(&task));
    let count = tree(&client, &task["id"]).await?.len();
    assert_eq!(count, 1 + 2 + 3 + 1, "the flow, two rounds, three items, and the last step");

    // The file changes while no hub runs: the task goes on with the text that it began with.
    put(&hub, "all", TWO)?;
    hub.restart().await?;
    hub.joined("all").await?;
    let client = Client::http(&hub);
    let asked_again = async || {
        let task = get(&client, task["id"].as_str().unwrap_or_default()).await;
        task.is_ok_and(|task| state(&task) == "input-required")
    };
    eventually_async(PATIENCE, asked_again).await?;
    let done = answer(&client, &task, "reply sure").await?;
    let over = async || {
        let task = get(&client, task["id"].as_str().unwrap_or_default()).await;
        task.is_ok_and(|task| state(&task) == "completed")
    };
    eventually_async(PATIENCE, over).await.with_context(|| format!("{done}"))?;
    let after = tree(&client, &task["id"]).await?;
    assert_eq!(after.len(), count, "no step is done twice");
    Ok(())
}

#[tokio::test]
async fn cancelled_flow_cancels_its_children() -> Result<()> {
    let hub = hub().await?;
    let text = TWO.replacen("agent = \"echo\"", "agent = \"guest\"", 1);
    put(&hub, "waits", &text.replacen("{{ input.what }}", "ask {{ input.what }}", 1))?;
    hub.joined("waits").await?;
    let client = Client::http(&hub);
    let task = send(&client, "waits", "which colour").await?;
    assert_eq!(state(&task), "input-required");
    client.call("tasks/cancel", json!({ "id": task["id"] })).await?;
    for task in tree(&client, &task["id"]).await? {
        assert_eq!(state(&task), "canceled", "{task}");
    }
    Ok(())
}

#[tokio::test]
async fn message_to_flow_agent_is_checked() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    let right = send(&client, "flow", TWO).await?;
    assert_eq!((state(&right), said(&right)), ("completed", "The flow is right: 2 steps."));
    let wrong = send(&client, "flow", &TWO.replace("steps.first", "steps.frist")).await?;
    assert_eq!(state(&wrong), "failed");
    let why =
        "line 13, column 10: `steps.frist.text`: there is no step `frist`; did you mean `first`?";
    assert_eq!(said(&wrong), why);
    Ok(())
}
