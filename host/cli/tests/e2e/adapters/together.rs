//! Tests of agents that cooperate through the vendors' own programs: a real Claude Code delegates
//! to a real Codex, through the hub's MCP tool and through the hub's command in its shell. One
//! model server acts as both models.

use super::{
    KEY,
    vendors::{CLAUDE, CODEX, Vendor},
};
use crate::{
    command_line::run,
    stage::{eventually, eventually_async, get, no_program_left, send, state, stream, until},
};
use a2a_hub_tests::{Client, ModelServer, TestHub, descendants, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{env, fs, time::Duration};
use tempfile::TempDir;

/// Command that outlasts every test.
const LONG: &str = "sleep 612";

/// A hub with Claude and Codex, whose permission to call others the test sets.
struct Pair {
    hub: TestHub,
    model: ModelServer,
    _files: [TempDir; 2],
}

/// Configuration of a built-in agent: its usual grant, and permission to call these agents.
/// Processes are not reused, so that any remaining process is a leak.
fn granted(vendor: &Vendor, agents: &str, settings: &str) -> String {
    let (agent, program) = (vendor.agent, vendor.program);
    format!(
        "[agents.{agent}]\n{}\n{settings}\n[agents.{agent}.limits]\nkept_programs = 0\n[agents.{agent}.grant]\nmemory = true\nfiles = true\ndelegate = [{agents}]\n\
         [agents.{agent}.grant.process.{program}]\nmax_running = 40\n",
        vendor.settings
    )
}

async fn pair(config: &str) -> Result<Pair> {
    let model = ModelServer::start()?.with_key(KEY);
    let files = [tempfile::tempdir()?, tempfile::tempdir()?];
    let others = ["gemini", "git-historian", "vibe"];
    let others = others.map(|other| format!("[agents.{other}]\nenabled = false\n")).concat();
    let port = model.url().rsplit(':').next().unwrap_or_default();
    let config = config.replace("{port}", port);
    let hub = TestHub::builder().config(format!("{config}\n{others}"));
    let mut hub = hub.plugin("guest", test_guests()?);
    let mut places = Vec::new();
    for (vendor, files) in [CLAUDE, CODEX].iter().zip(&files) {
        places.extend(env::split_paths(&vendor.path()?).collect::<Vec<_>>());
        hub = hub.env(vendor.key, KEY);
        for (name, value) in (vendor.env)(&model, files.path()) {
            hub = hub.env(name, value);
        }
    }
    let hub = hub.env("PATH", env::join_paths(places)?).start().await?;
    let pair = Pair { hub, model, _files: files };
    pair.checked().await?;
    Ok(pair)
}

impl Pair {
    fn client(&self) -> Client {
        Client::http(&self.hub)
    }

    /// Waits until both agents are healthy, so that their health checks do not interfere.
    async fn checked(&self) -> Result<()> {
        let are_well = async || {
            let list = json!({ "includeHealth": true });
            let agents: Value =
                self.client().call("hub/agents/list", list).await.unwrap_or_default();
            let all = agents.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut ours = all.iter().filter(|agent| agent["id"] != "echo");
            ours.all(|agent| {
                ["healthy", "degraded"]
                    .contains(&agent["health"]["status"].as_str().unwrap_or_default())
            })
        };
        eventually_async(Duration::from_secs(60), are_well)
            .await
            .context("the programs are not well")
    }

    /// Returns the tasks of a workflow with its root, oldest first.
    async fn tree(&self, root: &str) -> Result<Vec<Value>> {
        let listed =
            self.client().call("hub/tasks/list", json!({ "workflow": root, "limit": 100 })).await?;
        let mut tasks = listed.as_array().cloned().unwrap_or_default();
        tasks.reverse();
        Ok(tasks)
    }

    /// Returns the command lines of the programs below the hub.
    fn commands(&self) -> String {
        let command = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let commands = descendants(self.hub.pid());
        let commands =
            commands.iter().map(|pid| String::from_utf8_lossy(&command(pid)).replace('\0', " "));
        commands.collect::<Vec<_>>().join("\n")
    }
}

/// Encodes a message's markers as JSON escapes, so that only the model that parses the JSON
/// interprets them, and not the one that repeats it.
fn within(message: &str) -> String {
    json!(message).to_string().replace("[[", "\\u005b\\u005b").replace("]]", "\\u005d\\u005d")
}

/// Prompt that makes Claude call that agent by its tool.
fn by_tool(agent: &str, message: &str) -> String {
    format!(
        "[[tool:raw:mcp__a2a-hub__{agent}:{{\"message\":{},\"wait_seconds\":300}}]]",
        within(message)
    )
}

/// Prompt that makes Claude call that agent by the hub's command in its shell.
fn by_shell(agent: &str, message: &str) -> String {
    let quoted = message.replace('\'', "'\\''");
    format!(
        "[[tool:raw:Bash:{{\"command\":{}}}]]",
        within(&format!("a2a-hub send {agent} '{quoted}'"))
    )
}

/// Checks that Codex asks for permission, that Claude's client grants it, and that Claude receives
/// Codex' result.
async fn a_permission_of_codex_is_given_by_claudes_client(pair: &Pair, prompt: &str) -> Result<()> {
    let client = pair.client();
    let (root, mut updates) = stream(&client, "claude-code", prompt).await?;
    let asked = until(&mut updates, |event| state(event) == "input-required").await?;
    let question = &asked["metadata"]["question"];
    assert_eq!(
        (&question["kind"], &question["path"]),
        (&json!("permission"), &json!(["codex"])),
        "{asked}"
    );
    assert!(asked["status"]["message"].to_string().contains("touch made-by-codex"), "{asked}");
    let made = pair.hub.workspace().join("made-by-codex");
    assert!(!made.exists(), "before it is allowed");

    let drawn = run(&pair.hub, &["task", "tree", &root]).await?;
    assert!(
        drawn.stdout.contains("claude-code") && drawn.stdout.contains("codex"),
        "{}",
        drawn.stdout
    );
    let mut answer = message_to("claude-code", "yes");
    answer["message"]["taskId"] = json!(root);
    let done: Value = client.call("message/send", answer).await?;
    assert_eq!(state(&done), "completed", "{done}");
    assert!(made.exists(), "{done}");
    let tasks = pair.tree(&root).await?;
    let [claude, codex] = &tasks[..] else { anyhow::bail!("a tree of two: {tasks:#?}") };
    assert_eq!((&claude["id"], &codex["metadata"]["parentTaskId"]), (&json!(root), &json!(root)));
    assert_eq!((state(claude), state(codex)), ("completed", "completed"), "{tasks:#?}");
    // Claude's model received Codex' answer, which repeats its prompt.
    let heard: Vec<_> =
        pair.model.requests().into_iter().filter(|seen| seen.path.contains("/messages")).collect();
    let last = heard.last().context("Claude's model was not asked")?.body.to_string();
    assert!(last.contains("ECHO: "), "{last}");
    no_program_left(&pair.hub.data_dir(), Duration::from_secs(10)).await
}

/// A component that names no agent calls Claude Code and Codex alternately by a skill of both. Each
/// receives the parts of the component's context memory that the message names, and no others.
#[tokio::test]
async fn skill_call_inherits_only_named_memory() -> Result<()> {
    let orchestrator = "[agents.guest.grant]\nmemory = true\ndelegate = ['claude-code', 'codex']\n";
    let config = [orchestrator, &granted(&CLAUDE, "", ""), &granted(&CODEX, "", "")].concat();
    let pair = pair(&config).await?;
    let call = "think-and-call skill:code minimal say which database we took, at what depth";
    let mut workers = Vec::new();
    for _ in 0..2 {
        let task = send(&pair.client(), "guest", call).await?;
        assert_eq!(state(&task), "completed", "{task}");
        let tree = pair.tree(task["id"].as_str().context("no id")?).await?;
        let [_, child] = &tree[..] else { anyhow::bail!("a tree of two: {tree:#?}") };
        assert_eq!(state(child), "completed", "{child}");
        assert_eq!(child["metadata"]["inherited"]["went"]["names"], json!(["database", "depth"]));
        let chosen = child["metadata"]["routing"]["agent"].as_str().context("not routed")?;
        workers.push(chosen.to_owned());
        let shown =
            run(&pair.hub, &["task", "show", child["id"].as_str().context("no id")?]).await?;
        assert!(
            shown.stdout.contains("memory   1 decision, 1 variable from guest"),
            "{}",
            shown.stdout
        );
    }
    workers.sort();
    assert_eq!(workers, ["claude-code", "codex"]);
    let seen: Vec<_> = pair.model.requests().iter().map(|seen| seen.body.to_string()).collect();
    let handed_over: Vec<_> = seen.iter().filter(|body| body.contains("handed-over")).collect();
    assert!(handed_over.len() >= 2, "each model hears of it: {seen:#?}");
    for body in handed_over {
        assert!(body.contains("sqlite") && body.contains("depth"), "{body}");
        for kept in ["hunter2", "ship the parser", "the cache is warm", "details of the parser"] {
            assert!(!body.contains(kept), "`{kept}` went along: {body}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn claude_delegates_to_codex_by_tool() -> Result<()> {
    let pair = pair(&[granted(&CLAUDE, "'codex'", ""), granted(&CODEX, "", "")].concat()).await?;
    let prompt = by_tool("codex", &(CODEX.run)("touch made-by-codex"));
    a_permission_of_codex_is_given_by_claudes_client(&pair, &prompt).await?;
    // Claude learns nothing of agents that it may not call, neither by a tool nor in its prompt.
    let asked: String = pair.model.requests().iter().map(|seen| seen.body.to_string()).collect();
    assert!(asked.contains("mcp__a2a-hub__codex") && asked.contains("- codex: "), "{asked}");
    assert!(!asked.contains("mcp__a2a-hub__echo") && !asked.contains("- echo: "), "{asked}");
    Ok(())
}

#[tokio::test]
async fn claude_delegates_to_codex_by_shell() -> Result<()> {
    let config = [
        granted(&CLAUDE, "'codex'", "permissions = 'full'"),
        granted(&CODEX, "", "permissions = 'full'"),
    ];
    let pair = pair(&config.concat()).await?;
    let prompt = by_shell("codex", &(CODEX.run)("touch made-by-codex"));
    a_permission_of_codex_is_given_by_claudes_client(&pair, &prompt).await
}

#[tokio::test]
async fn cancel_ends_whole_delegation_tree() -> Result<()> {
    let config = [granted(&CLAUDE, "'codex'", "permissions = 'full'"), granted(&CODEX, "", "")];
    let pair = pair(&config.concat()).await?;
    let wanted = json!({ "cmd": LONG, "yield_time_ms": 30_000 });
    let prompt = by_shell("codex", &format!("[[tool:raw:exec_command:{wanted}]]"));
    let (root, _updates) = stream(&pair.client(), "claude-code", &prompt).await?;
    let trees = ["claude", "a2a-hub send codex", "codex app-server", LONG];
    let all_run = || {
        let commands = pair.commands();
        trees.iter().all(|tree| commands.contains(tree))
    };
    let ran = eventually(Duration::from_secs(40), all_run).await;
    ran.with_context(|| format!("they do not all run: {}", pair.commands()))?;
    pair.client().call("tasks/cancel", json!({ "id": root })).await?;
    let left = pair.commands();
    assert!(trees.iter().all(|tree| !left.contains(tree)), "{left}");
    let tasks = pair.tree(&root).await?;
    assert_eq!(tasks.len(), 2, "{tasks:#?}");
    assert!(tasks.iter().all(|task| state(task) == "canceled"), "{tasks:#?}");
    Ok(())
}

/// Inside the confinement, the program starts the hub's command, which reaches the only socket
/// there.
#[tokio::test]
async fn confined_claude_delegates_to_echo() -> Result<()> {
    let walls = "confine = true\nconfined = { network = [{port}] }";
    let config = [granted(&CLAUDE, "'echo'", walls), granted(&CODEX, "", "enabled = false")];
    let pair = pair(&config.concat()).await?;
    let task =
        send(&pair.client(), "claude-code", &by_tool("echo", "from behind the walls")).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let tasks = pair.tree(task["id"].as_str().unwrap_or_default()).await?;
    assert_eq!(tasks.len(), 2, "{task} {tasks:#?}");
    assert!(tasks[1].to_string().contains("from behind the walls"), "{tasks:#?}");
    Ok(())
}

/// One run permit for all: each task lends it while it waits, and its child runs with it.
#[tokio::test]
async fn nested_calls_share_one_run_permit() -> Result<()> {
    let config = [
        granted(&CLAUDE, "'claude-code'", "max_running = 1"),
        granted(&CODEX, "", "enabled = false"),
    ];
    let pair = pair(&config.concat()).await?;
    let client = pair.client();
    let mut roots = Vec::new();
    for n in 0..8 {
        let prompt = by_tool("claude-code", &format!("number {n}"));
        roots.push(stream(&client, "claude-code", &prompt).await?);
    }
    let ended = async || {
        let mut all = true;
        for (root, _) in &roots {
            all &= get(&client, root).await.is_ok_and(|task| state(&task) == "completed");
        }
        all
    };
    eventually_async(Duration::from_secs(100), ended).await.context("they do not all end")?;
    for (root, _) in &roots {
        let tasks = pair.tree(root).await?;
        let states: Vec<_> = tasks.iter().map(state).collect();
        assert_eq!(states, ["completed"; 2], "{tasks:#?}");
    }
    Ok(())
}
