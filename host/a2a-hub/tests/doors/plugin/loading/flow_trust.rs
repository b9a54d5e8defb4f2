//! Tests of flows that run programs: held back until trusted, and attacked.

use crate::{
    hub::InProcessHub,
    stage::{eventually_async, get, said, send, state},
};
use a2a_hub_config::TrustedFlows;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_tests::{Client, delegation::tree, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);

/// The guest may call every agent. Programs of flows are not confined: some machines cannot.
const CONFIG: &str = "
    [agents.guest.grant]
    memory = true
    delegate = [\"*\", \"script\", \"flow\"]
    [agents.script]
    confine = false
";

/// One step, whose program prints a value that it gets.
const SHIP: &str = r#"
description = "Prints its input"
[input]
what = { type = "string" }
[[step]]
id = "print"
run = ["sh", "-c", "printf 'got %s' \"$A2A_INPUT_WHAT\""]
"#;

async fn hub() -> Result<InProcessHub> {
    InProcessHub::builder().config(CONFIG).plugin("guest", test_guests()?).start().await
}

fn put(hub: &InProcessHub, text: &str) -> Result<()> {
    let file = hub.data_dir().join("flows/ship.flow.toml");
    fs::write(&file, text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

fn trusted(hub: &InProcessHub) -> Result<(TrustedFlows, AgentId)> {
    Ok((TrustedFlows::new(&hub.data_dir()), AgentId::parse("ship")?))
}

/// Waits for a reason of this text why the file is not an agent.
async fn held_back(client: &Client, why: &str) -> Result<()> {
    let found = async || {
        let status = client.call("hub/status", json!({})).await.unwrap_or_default();
        status["rejectedPlugins"].to_string().contains(why)
    };
    eventually_async(PATIENCE, found).await.with_context(|| format!("nothing says {why}"))
}

async fn is_there(client: &Client, agent: &str) -> bool {
    client.call("hub/agents/get", json!({ "agentId": agent })).await.is_ok()
}

async fn data(client: &Client, agent: &str, data: Value) -> Result<Value> {
    let mut message = message_to(agent, "");
    message["message"]["parts"] = json!([{ "kind": "data", "data": data }]);
    Ok(client.call("message/send", message).await?)
}

#[tokio::test]
async fn flow_with_program_waits_for_trust() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    put(&hub, SHIP)?;
    held_back(&client, "held back until you trust it: it runs `sh -c").await?;
    assert!(!is_there(&client, "ship").await && !is_there(&client, "script").await);

    let (flows, id) = trusted(&hub)?;
    flows.trust(&id, SHIP)?;
    hub.joined("ship").await?;
    hub.joined("script").await?;
    let task = send(&client, "ship", "$(touch made); `id` \"x\"").await?;
    assert_eq!(said(&task), "got $(touch made); `id` \"x\"", "{task}");
    let card = client.call("hub/agents/get", json!({ "agentId": "ship" })).await?;
    assert!(!card.to_string().contains("printf"), "clients do not see commands: {card}");

    // Another file of that name gets nothing, and the trusted one serves on.
    let evil = SHIP.replace("got", "owned");
    put(&hub, &evil)?;
    held_back(&client, "it has changed, and the file before it serves on").await?;
    assert_eq!(said(&send(&client, "ship", "x").await?), "got x");
    fs::set_permissions(flows.path(&id), fs::Permissions::from_mode(0o666))?;
    held_back(&client, "nobody has trusted it yet").await?;
    assert!(!is_there(&client, "ship").await, "a copy that others may write to is none");

    put(&hub, SHIP)?;
    flows.trust(&id, SHIP)?;
    hub.joined("ship").await?;
    flows.revoke(&id)?;
    held_back(&client, "nobody has trusted it yet").await?;
    let is_gone = async || !is_there(&client, "ship").await && !is_there(&client, "script").await;
    eventually_async(PATIENCE, is_gone).await
}

#[tokio::test]
async fn only_trusted_flow_reaches_programs() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    put(&hub, SHIP)?;
    let (flows, id) = trusted(&hub)?;
    flows.trust(&id, SHIP)?;
    hub.joined("ship").await?;
    hub.joined("script").await?;

    let command = json!({ "run": ["sh", "-c", "printf 'got %s' \"$A2A_INPUT_WHAT\""], "env": {} });
    let refused = data(&client, "script", command).await.err().context("a client reached it")?;
    assert!(refused.to_string().contains("only these call it"), "{refused}");
    let of_guest = send(&client, "guest", "call script hello").await?;
    assert!(!said(&of_guest).contains("got"), "{of_guest}");
    assert!(said(&of_guest).contains("script"), "{of_guest}");

    // The text of a flow in a message gets no rights.
    let inline = json!({ "do": "run", "flow": SHIP, "text": "x" });
    let refused = data(&client, "flow", inline).await?;
    assert_eq!(state(&refused), "rejected");
    assert!(said(&refused).contains("flow trust NAME"), "{refused}");

    let mut message = message_to("ship", "x");
    message["message"]["metadata"]["permissions"] = json!("read-only");
    let limited = client.call("message/send", message).await?;
    assert_eq!(state(&limited), "failed");
    assert!(said(&limited).contains("limited to `read-only`"), "{limited}");
    Ok(())
}

/// Program that runs until it is ended, beside an agent's task that waits for its client.
const LONG: &str = r#"
description = "Runs for long"
[input]
file = { type = "string" }
[[step]]
id = "run"
run = ["sh", "-c", "echo $$ > \"$A2A_INPUT_FILE\"; sleep 300"]
[[step]]
id = "asks"
agent = "guest"
prompt = "ask which one"
"#;

/// Starts the flow `ship`; returns its task and the id of its program's process.
async fn begin_long(hub: &InProcessHub, client: &Client, name: &str) -> Result<(String, i32)> {
    let file = hub.data_dir().join(name);
    let mut message = message_to("ship", &file.display().to_string());
    message["configuration"] = json!({ "blocking": false });
    let task: Value = client.call("message/send", message).await?;
    let pid = || fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok();
    eventually_async(PATIENCE, async || pid().is_some()).await.context("no program runs")?;
    let id = task["id"].as_str().context("no id")?.to_owned();
    Ok((id, pid().context("no process")?))
}

/// Waits until the process is gone, and the task has failed for want of the right.
async fn ended(client: &Client, (task, pid): &(String, i32)) -> Result<()> {
    // The command line of a process that has ended is empty or gone.
    let is_gone = || fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().is_empty();
    eventually_async(PATIENCE, async || is_gone()).await.context("the program runs on")?;
    let is_over = async || get(client, task).await.is_ok_and(|task| state(&task) == "failed");
    let over = eventually_async(PATIENCE, is_over).await;
    let task = get(client, task).await?;
    over.with_context(|| format!("{task}"))?;
    for child in tree(client, &task["id"]).await? {
        assert!(["failed", "canceled"].contains(&state(&child)), "{child}");
    }
    Ok(())
}

#[tokio::test]
async fn withdrawn_trust_ends_running_program() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let (flows, id) = trusted(&hub)?;
    put(&hub, LONG)?;
    flows.trust(&id, LONG)?;
    hub.joined("ship").await?;
    hub.joined("script").await?;
    let running = begin_long(&hub, &client, "one").await?;
    flows.revoke(&id)?;
    ended(&client, &running).await?;

    // So does another text in place of the trusted one, while another flow may still run programs.
    let other = hub.data_dir().join("flows/other.flow.toml");
    fs::write(&other, LONG)?;
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600))?;
    flows.trust(&AgentId::parse("other")?, LONG)?;
    flows.trust(&id, LONG)?;
    hub.joined("ship").await?;
    hub.joined("other").await?;
    let running = begin_long(&hub, &client, "two").await?;
    flows.trust(&id, SHIP)?;
    ended(&client, &running).await?;
    assert!(is_there(&client, "script").await, "the other flow needs it");
    Ok(())
}

/// Two agents, of which the first may edit; the last is found by its skill.
const EDITS: &str = r#"
description = "Edits"
[[step]]
id = "edit"
agent = "guest"
permissions = "edit"
prompt = "reply done"
[[step]]
id = "look"
needs = ["edit"]
skill = "echo"
prompt = "looked"
"#;

#[tokio::test]
async fn trusted_permissions_are_for_named_agent_only() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    put(&hub, EDITS)?;
    held_back(&client, "`guest` works with the permissions `edit`").await?;
    let (flows, id) = trusted(&hub)?;
    flows.trust(&id, EDITS)?;
    hub.joined("ship").await?;
    assert!(!is_there(&client, "script").await, "no flow runs a program");

    let granted = async |permissions: Option<&str>| -> Result<Vec<Value>> {
        let mut message = message_to("ship", "");
        message["message"]["parts"] = json!([{ "kind": "data", "data": {} }]);
        if let Some(word) = permissions {
            message["message"]["metadata"]["permissions"] = json!(word);
        }
        let task = client.call("message/send", message).await?;
        assert_eq!((state(&task), said(&task)), ("completed", "looked"), "{task}");
        let tasks = tree(&client, &task["id"]).await?;
        let most = |task: &Value| task["metadata"]["grantedPermissions"].clone();
        let of = |agent: &str| tasks.iter().find(|it| it["agentId"] == agent).map(most);
        Ok([of("guest"), of("echo")].into_iter().flatten().collect())
    };
    assert_eq!(granted(None).await?, [json!("edit"), Value::Null]);
    assert_eq!(granted(Some("ask")).await?, [Value::Null, Value::Null], "the caller has less");
    Ok(())
}
