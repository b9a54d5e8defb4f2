//! Tests of agents that the configuration makes of any program of the Agent Client Protocol.

use crate::{
    hub::InProcessHub,
    stage::{artifact, eventually_async, get, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, message_to, processes_with_marker};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Time until an agent joins, or has been checked, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Smallest useful program: it answers each prompt with its text.
const ECHO: &str = r#"import json, sys
def say(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            info = {"name": "mini", "title": "Mini Agent", "version": "0.7"}
            say(id=asked["id"], result={"protocolVersion": 1, "agentInfo": info})
        case "session/new":
            say(id=asked["id"], result={"sessionId": "s1"})
        case "session/prompt":
            text = "you said: " + asked["params"]["prompt"][0]["text"]
            chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            say(method="session/update", params={"sessionId": "s1", "update": chunk})
            say(id=asked["id"], result={"stopReason": "end_turn"})
"#;

/// Program that works until it is cancelled, with a tool that it starts in another session. It
/// takes a second to start, and sends the history of a session after it has loaded it.
const SLOW: &str = r#"import json, os, subprocess, sys, time
time.sleep(1)
prompt = None
def say(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
def update(of, **members): say(method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": of, **members}})
def text(text): update("agent_message_chunk", content={"type": "text", "text": text})
modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            say(id=asked["id"], result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
        case "session/new":
            say(id=asked["id"], result={"sessionId": "s1", "modes": modes})
        case "session/load":
            say(id=asked["id"], result={"modes": modes})
            time.sleep(0.05)
            text("of the history")
        case "session/set_mode":
            say(id=asked["id"], result={})
        case "session/prompt" if "slow" in asked["params"]["prompt"][0]["text"]:
            prompt = asked["id"]
            subprocess.Popen(["sleep", "1234"], start_new_session=True)
            update("tool_call", toolCallId="1", title="sleep", kind="execute", status="in_progress")
        case "session/prompt":
            text("pid ")
            say(id=asked["id"], result={"stopReason": "end_turn"})
            text(str(os.getpid()))
        case "session/cancel":
            say(id=prompt, result={"stopReason": "cancelled"})
"#;

/// Program with all that the protocol offers: it records each request in the file `log`, and asks
/// before it writes.
const FULL: &str = r#"import json, os, sys
log = open("log", "a")
def say(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
def update(of, **members): say(method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": of, **members}})
def read():
    line = sys.stdin.readline()
    if not line: sys.exit()
    log.write(line); log.flush()
    return json.loads(line)
options = [
    {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "auto", "options": [{"value": "auto"}, {"value": "default"}, {"value": "plan"}]},
    {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small", "options": [{"value": "small"}, {"value": "large"}]},
    {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "low", "options": [{"value": "low"}, {"value": "high"}]},
]
is_logged_in = os.environ.get("MINI_KEY") != "none"
while True:
    asked = read()
    id = asked.get("id")
    match asked.get("method"):
        case "initialize":
            say(id=id, result={"protocolVersion": 1, "agentInfo": {"name": "full", "version": "2.1"},
                "authMethods": [{"id": "web", "name": "Log in with Mini"}],
                "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}, "mcpCapabilities": {"http": False}}})
        case "session/new" if not is_logged_in:
            say(id=id, error={"code": -32000, "message": "Authentication required"})
        case "authenticate":
            is_logged_in = asked["params"]["methodId"] == "web"
            say(id=id, result={})
        case "session/new":
            say(id=id, result={"sessionId": "s1", "configOptions": options})
        case "session/load":
            update("agent_message_chunk", content={"type": "text", "text": "of the history"})
            say(id=id, result={"configOptions": options})
        case "session/set_config_option":
            say(id=id, result={"configOptions": options})
        case "session/prompt":
            update("plan", entries=[{"content": "look around", "status": "in_progress"}, {"content": "write", "status": "pending"}])
            call = {"toolCallId": "c1", "title": "touch made", "kind": "execute", "status": "pending", "rawInput": {"command": "touch made"}}
            update("tool_call", **call)
            say(id=99, method="session/request_permission", params={"sessionId": "s1", "toolCall": call, "options": [
                {"optionId": "o1", "name": "Allow", "kind": "allow_once"}, {"optionId": "o2", "name": "Allow in this project", "kind": "allow_always"},
                {"optionId": "o3", "name": "Reject", "kind": "reject_once"}]})
            chosen = read()["result"]["outcome"].get("optionId")
            update("usage_update", used=10, size=100, cost={"amount": 0.25, "currency": "USD"})
            update("agent_message_chunk", content={"type": "text", "text": "chosen: " + str(chosen)})
            say(id=id, result={"stopReason": "end_turn", "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}})
"#;

/// A hub whose agent `mini` drives a program in Python, and the folder of the program.
async fn hub_with(program: &str, settings: &str) -> Result<(InProcessHub, TempDir)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("agent.py");
    fs::write(&file, program)?;
    let config =
        format!("{}\n[agents.mini]\nacp = ['python3', '{}']\n{settings}", OTHERS, file.display());
    Ok((InProcessHub::builder().config(config).start().await?, folder))
}

/// Settings by which no other agent starts programs.
const OTHERS: &str = "agents.claude-code.enabled = false\nagents.codex.enabled = false\nagents.gemini.enabled = false\nagents.vibe.enabled = false";

/// Requests that the program got, by their methods.
fn requests(hub: &InProcessHub, method: &str) -> Vec<Value> {
    let log = fs::read_to_string(hub.workspace().join("log")).unwrap_or_default();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["method"] == method).collect()
}

/// A task that is at its question, with the question.
async fn asked(client: &Client, message: Value) -> Result<Value> {
    let task = client.call("message/send", message).await?;
    ensure!(state(&task) == "input-required", "{task}");
    Ok(task)
}

/// The task after this answer to its question.
async fn answered(client: &Client, task: &Value, answer: &str) -> Result<Value> {
    let mut message = message_to("mini", answer);
    message["message"]["taskId"] = task["id"].clone();
    message["message"]["contextId"] = task["contextId"].clone();
    Ok(client.call("message/send", message).await?)
}

/// A program of twenty lines is an agent by one line of configuration.
#[tokio::test]
async fn twenty_line_program_becomes_agent() -> Result<()> {
    assert!(ECHO.lines().count() <= 20);
    let (hub, _folder) = hub_with(ECHO, "").await?;
    let client = Client::http(&hub);
    let (task, mut updates) = stream(&client, "mini", "hello").await?;
    let end = until(&mut updates, |event| event["final"] == true).await?;
    assert_eq!((state(&end), said(&end)), ("completed", "you said: hello"), "{end}");
    assert_eq!(artifact(&get(&client, &task).await?), "you said: hello");

    // The program has said its name by then.
    let introduced = async || {
        let agent = client.call("hub/agents/get", json!({ "agentId": "mini" })).await;
        agent.is_ok_and(|agent| agent["name"] == "Mini Agent" && agent["card"]["version"] == "0.7")
    };
    eventually_async(SOON, introduced).await?;
    let agent = client.call("hub/agents/get", json!({ "agentId": "mini" })).await?;
    assert_eq!(agent["source"], "acp", "{agent}");
    assert_eq!(
        (&agent["health"]["status"], &agent["health"]["version"]),
        (&json!("healthy"), &json!("0.7"))
    );
    let again = send(&client, "mini", "and again").await?;
    assert_eq!(said(&again), "you said: and again");
    Ok(())
}

#[tokio::test]
async fn question_offers_programs_own_choices() -> Result<()> {
    let (hub, _folder) = hub_with(FULL, "").await?;
    let client = Client::http(&hub);
    let (task, mut updates) = stream(&client, "mini", "make it").await?;
    let statuses = RefCell::new(String::new());
    let question = until(&mut updates, |event| {
        statuses.borrow_mut().push_str(&format!("{}\n", said(event)));
        state(event) == "input-required"
    });
    let question = question.await?;
    let statuses = statuses.into_inner();
    assert!(statuses.contains("plan, step 1 of 2: look around"), "{statuses}");
    assert!(statuses.contains("execute: touch made"), "{statuses}");
    let parts = question["status"]["message"]["parts"].as_array().context("no parts")?;
    let data = parts.iter().find_map(|part| part["data"].as_object()).context("no data")?;
    let option = json!({ "id": "o2", "name": "Allow in this project", "kind": "allow_always" });
    assert_eq!(data["options"][1], option);
    assert!(said(&question).contains("touch made"), "{question}");
    let task = get(&client, &task).await?;
    let task = answered(&client, &task, "Allow in this project").await?;
    assert_eq!(said(&task), "chosen: o2", "{task}");
    let metadata = &task["metadata"];
    assert_eq!(metadata["usage"], json!({ "input_tokens": 7, "output_tokens": 3 }), "{task}");
    assert_eq!(metadata["cost_usd"], 0.25);

    // The mode in which the program would not ask is changed before the prompt.
    let set = requests(&hub, "session/set_config_option");
    assert_eq!(
        (&set[0]["params"]["configId"], &set[0]["params"]["value"]),
        (&json!("mode"), &json!("default"))
    );
    Ok(())
}

/// True if the hub keeps the program of the agent.
async fn is_kept(client: &Client) -> Result<bool> {
    let status = client.call("hub/status", json!({})).await?;
    let agents = status["agents"].as_array().context("no agents")?;
    Ok(agents.iter().any(|agent| agent["id"] == "mini" && agent["kept"] == 1))
}

/// First turn of a conversation whose program is kept. The agent joins anew after its first check,
/// which takes as long as a start of its program; a program of the time before is not kept.
async fn kept_turn(client: &Client) -> Result<Value> {
    for _ in 0..5 {
        let turn = send(client, "mini", "who are you?").await?;
        if is_kept(client).await? {
            return Ok(turn);
        }
    }
    bail!("the program is never kept")
}

/// The next turn needs no start, and finds no process of the cancelled one.
#[tokio::test]
async fn cancelled_task_keeps_program_without_tools() -> Result<()> {
    let (hub, _folder) = hub_with(SLOW, "").await?;
    let client = Client::http(&hub);
    let first = kept_turn(&client).await?;
    let in_context = |text: &str| {
        let mut message = message_to("mini", text);
        message["message"]["contextId"] = first["contextId"].clone();
        message
    };
    let mut slow = in_context("be slow");
    slow["configuration"] = json!({ "blocking": false });
    let slow = client.call("message/send", slow).await?;
    let works = async || {
        let task = get(&client, slow["id"].as_str().unwrap_or_default()).await;
        task.is_ok_and(|task| task["metadata"]["tool"]["status"] == "in_progress")
    };
    eventually_async(SOON, works).await?;
    let id = json!({ "id": slow["id"] });
    assert_eq!(state(&client.call("tasks/cancel", id).await?), "canceled");
    let data = hub.data_dir().canonicalize()?;
    let line = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let tools =
        processes_with_marker(&data).iter().filter(|pid| line(pid).starts_with(b"sleep")).count();
    assert_eq!((tools, is_kept(&client).await?), (0, true));
    let next = client.call("message/send", in_context("and now?")).await?;
    assert!(said(&first).starts_with("pid "), "{first}");
    assert_eq!(said(&next), said(&first), "the same process");
    Ok(())
}

#[tokio::test]
async fn metadata_chooses_mode_model_and_effort() -> Result<()> {
    let servers = r#"settings.mcp_servers = '{"docs":{"command":"/bin/docs","args":["-v"]},"web":{"url":"http://127.0.0.1:9/"}}'"#;
    let settings = format!("settings.session_modes = 'plan'\n{servers}");
    let (hub, _folder) = hub_with(FULL, &settings).await?;
    let client = Client::http(&hub);
    let mut message = message_to("mini", "look");
    let picture = json!({ "kind": "file", "file": { "name": "a.png", "mimeType": "image/png", "bytes": "iVBORw0KGgo=" } });
    message["message"]["parts"].as_array_mut().context("no parts")?.push(picture);
    for (name, value) in [("mode", "plan"), ("model", "large"), ("effort", "high")] {
        message["message"]["metadata"][name] = json!(value);
    }
    let task = asked(&client, message).await?;
    assert_eq!(said(&answered(&client, &task, "no").await?), "chosen: o3");
    let set: Vec<_> = requests(&hub, "session/set_config_option")
        .iter()
        .map(|it| it["params"]["value"].clone())
        .collect();
    // A health check sets its mode, too.
    let set: Vec<_> = set.into_iter().filter(|value| value != "default").collect();
    assert_eq!(set, ["plan", "large", "high"]);
    let opened = requests(&hub, "session/new");
    let servers = opened
        .iter()
        .find_map(|it| it["params"]["mcpServers"].as_array().filter(|all| !all.is_empty()));
    let servers = servers.context("no server was handed over")?;
    assert_eq!((servers.len(), &servers[0]["name"]), (1, &json!("docs")), "{servers:?}");
    let prompt = requests(&hub, "session/prompt").remove(0);
    assert_eq!(prompt["params"]["prompt"][1]["mimeType"], "image/png", "{prompt}");

    let mut message = message_to("mini", "look");
    message["message"]["metadata"]["mode"] = json!("auto");
    let refused = client.call("message/send", message).await?;
    assert_eq!(refused["metadata"]["reason"], "invalid_request", "{refused}");
    assert!(said(&refused).contains("`session_modes`"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn conversation_is_resumed_by_loading() -> Result<()> {
    // Each task starts a program.
    let (hub, _folder) = hub_with(FULL, "limits.kept_programs = 0").await?;
    let client = Client::http(&hub);
    let task = asked(&client, message_to("mini", "one")).await?;
    answered(&client, &task, "yes").await?;
    let mut message = message_to("mini", "two");
    message["message"]["contextId"] = task["contextId"].clone();
    let task = asked(&client, message).await?;
    let task = answered(&client, &task, "yes").await?;
    assert_eq!(said(&task), "chosen: o1", "the history is no answer: {task}");
    let loaded = requests(&hub, "session/load");
    assert_eq!(loaded[0]["params"]["sessionId"], "s1");
    let prompt = requests(&hub, "session/prompt").remove(1);
    assert_eq!(prompt["params"]["prompt"][0]["text"], "two");
    Ok(())
}

#[tokio::test]
async fn missing_login_is_reported_and_mended() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let wrapper = folder.path().join("mini-agent");
    let file = folder.path().join("agent.py");
    fs::write(&file, FULL)?;
    let script = format!("#!/bin/sh\nMINI_KEY=none exec python3 '{}'\n", file.display());
    executable(&wrapper, &script)?;
    let command = format!("[agents.mini]\nacp = ['{}']", wrapper.display());
    let config = format!("{OTHERS}\n{command}");
    let hub = InProcessHub::builder().config(config).start().await?;
    let client = Client::http(&hub);
    let task = send(&client, "mini", "hello").await?;
    assert_eq!(state(&task), "auth-required", "{task}");
    assert!(said(&task).contains("it offers: Log in with Mini"), "{task}");
    client.call("tasks/cancel", json!({ "id": task["id"] })).await?;

    let config = format!("{OTHERS}\n{command}\nsettings.login_method = 'web'");
    hub.configure(&config)?;
    client.call("hub/reload", json!({})).await?;
    let task = send(&client, "mini", "hello").await?;
    assert_eq!(state(&task), "input-required", "{task}");
    Ok(())
}

#[tokio::test]
async fn reload_adds_and_removes_agents() -> Result<()> {
    let mut hub = InProcessHub::builder().config(OTHERS).start().await?;
    let client = Client::http(&hub);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("agent.py");
    fs::write(&file, ECHO)?;
    let configure = async |text: String| {
        hub.configure(&format!("{OTHERS}\n{text}"))?;
        Ok::<_, anyhow::Error>(client.call("hub/reload", json!({})).await?)
    };
    configure(format!("agents.mini.acp = ['python3', '{}']", file.display())).await?;
    assert_eq!(said(&send(&client, "mini", "hi").await?), "you said: hi");
    let another = ECHO.replace("you said", "another heard");
    let second: PathBuf = folder.path().join("second.py");
    fs::write(&second, another)?;
    configure(format!("agents.mini.acp = ['python3', '{}']", second.display())).await?;
    assert_eq!(said(&send(&client, "mini", "hi").await?), "another heard: hi");
    configure(String::new()).await?;
    let gone = client.call("hub/agents/get", json!({ "agentId": "mini" })).await;
    assert!(gone.is_err(), "{gone:?}");
    // A bundled agent keeps its name.
    let taken = configure(format!("agents.echo.acp = ['python3', '{}']", file.display())).await?;
    assert_eq!(taken["leftOut"].as_array().map(Vec::len).unwrap_or_default(), 0, "{taken}");
    hub.stop().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    assert_eq!(said(&send(&client, "echo", "hi").await?), "hi");
    let status = client.call("hub/status", json!({})).await?;
    assert!(status["warnings"].to_string().contains("`agents.echo.acp` is left out"), "{status}");
    Ok(())
}

#[tokio::test]
async fn confined_program_works_in_workspace_only() -> Result<()> {
    // The program's own file is outside of the workspace, so the operator names it.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("agent.py");
    let secret = folder.path().join("secret");
    fs::write(&secret, "hush")?;
    let program = ECHO.replace(
        r#""you said: " +"#,
        &format!(r#"str(__import__("os").path.exists("{}")) + ": " +"#, secret.display()),
    );
    fs::write(&file, program)?;
    let config = format!(
        "{OTHERS}\n[agents.mini]\nacp = ['/usr/bin/python3', '{0}']\nconfine = true\nconfined.read = ['{0}']",
        file.display()
    );
    let hub = InProcessHub::builder().config(config).start().await?;
    let client = Client::http(&hub);
    let task = send(&client, "mini", "hello").await?;
    assert_eq!(said(&task), "False: hello", "{task}");
    Ok(())
}

/// Writes a script that can be run.
fn executable(path: &Path, script: &str) -> Result<()> {
    fs::write(path, script)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}
