//! Kills the hub between requests for permission and their answers, by a rule or by a person: no
//! program does anything whose permission is not in the record.

use crate::stage::{eventually, tell, write_program};
use a2a_hub_tests::{Client, Numbers, TestHub, message_to};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{env, fs, path::Path, time::Duration};
use tokio::time::sleep;

/// Number of kills; `A2A_HUB_PERMISSION_KILLS` overrides it. The proof takes ten times as many.
const KILLS: u64 = 10;

/// Maximum time until the hub is killed after the first command was allowed.
const KILLED_WITHIN_MS: u64 = 250;

/// Time until the program asks for its first command.
const FIRST_REQUEST: Duration = Duration::from_secs(20);

/// Stand-in for `claude` that asks for two commands in turn, and notes each that was allowed.
const CLAUDE: &str = r#"#!/usr/bin/env python3
import json, os, sys

if sys.argv[1:2] == ["--version"]:
    sys.exit(print("2.1.332"))
if sys.argv[1:2] == ["auth"]:
    sys.exit(print('{"loggedIn":true}'))


def say(it):
    print(json.dumps(it), flush=True)


sys.stdin.readline()
say({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": os.getcwd()})
say({"type": "stream_event", "event": {"type": "message_start"}, "parent_tool_use_id": None})
for number in range(400):
    id, command = f"{os.getpid()}-{number}", "id" if number % 4 == 3 else "date"
    say({"type": "control_request", "request_id": id, "request": {
        "subtype": "can_use_tool", "tool_name": "Bash", "display_name": "Bash",
        "input": {"command": command, "description": "Runs it"}, "description": "Runs it",
        "tool_use_id": f"toolu_{id}"}})
    answer = {}
    while answer.get("type") != "control_response":
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        answer = json.loads(line)
    if answer["response"]["response"]["behavior"] == "allow":
        with open("allowed", "a") as file:
            file.write(command + "\n")
say({"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s"})
"#;

/// Answers every open request for permission, until the hub is killed.
async fn allow_all(client: &Client) -> Result<()> {
    loop {
        let open = client.call("hub/questions/list", json!({ "kind": "permission" })).await?;
        let ids: Vec<_> =
            open["questions"].as_array().into_iter().flatten().map(|it| &it["id"]).collect();
        if ids.is_empty() {
            sleep(Duration::from_millis(5)).await;
            continue;
        }
        client.call("hub/questions/answer", json!({ "ids": ids, "answer": "allow" })).await?;
    }
}

/// All earlier questions.
async fn history(client: &Client) -> Result<Vec<Value>> {
    let (mut all, mut before) = (Vec::new(), Value::Null);
    loop {
        let mut params = json!({ "limit": 1_000 });
        if !before.is_null() {
            params["before"] = before;
        }
        let page = client.call("hub/questions/history", params).await?;
        all.extend(page["questions"].as_array().context("no history")?.iter().cloned());
        before = page["next"].clone();
        if before.is_null() {
            return Ok(all);
        }
    }
}

fn allowed(workspace: &Path, command: &str) -> usize {
    let text = fs::read_to_string(workspace.join("allowed")).unwrap_or_default();
    text.lines().filter(|line| *line == command).count()
}

#[tokio::test]
async fn killed_hub_allows_nothing_without_record() -> Result<()> {
    let kills = match env::var_os("A2A_HUB_PERMISSION_KILLS") {
        Some(kills) => kills.to_str().and_then(|kills| kills.parse().ok()),
        None => Some(KILLS),
    };
    let kills: u64 = kills.context("A2A_HUB_PERMISSION_KILLS is not a number")?;
    let bin = tempfile::tempdir()?;
    let claude = bin.path().join("claude");
    write_program(&claude, CLAUDE)?;
    let config = format!("[agents.claude-code]\nprograms = {{ claude = '{}' }}", claude.display());
    let mut hub = TestHub::builder().config(config).start().await?;
    let workspace = hub.workspace().to_owned();
    let rule = json!({
        "effect": "allow", "agentId": "claude-code", "directory": workspace,
        "pattern": { "kind": "run", "words": ["date"], "directory": "" },
    });
    Client::unix(&hub).call("hub/permissions/add", rule).await?;
    let mut numbers = Numbers::new(7);
    for round in 0..kills {
        let client = Client::unix(&hub);
        let mut message = message_to("claude-code", "go");
        message["message"]["metadata"]["workingDirectory"] = json!(workspace);
        message["configuration"] = json!({ "blocking": false });
        let task = client.call("message/send", message).await?;
        let (before, pause) =
            (allowed(&workspace, "date"), Duration::from_millis(numbers.below(KILLED_WITHIN_MS)));
        let begins = eventually(FIRST_REQUEST, || allowed(&workspace, "date") > before);
        let killed = async {
            begins.await?;
            sleep(pause).await;
            anyhow::Ok(())
        };
        tokio::select! {
            ended = allow_all(&client) => ended.context("the hub answers no more")?,
            is_time = killed => is_time?,
        }
        hub.kill9().await?;
        hub.restart().await?;
        let client = Client::unix(&hub);
        // A restart answers nothing: what was asked is asked anew, in the hub's words.
        let told = client.call("tasks/get", json!({ "id": task["id"] })).await?;
        if told["status"]["state"] == "input-required" {
            ensure!(told["metadata"]["question"]["id"].is_string(), "round {round}: {told}");
        }
        let _ = client.call("tasks/cancel", json!({ "id": task["id"] })).await;
    }
    let client = Client::unix(&hub);
    let past = history(&client).await?;
    let count = |outcome: &str| past.iter().filter(|it| it["outcome"] == outcome).count();
    let by_person = past.iter().filter(|it| {
        it["outcome"] == "answered" && it["answer"] == "allow" && it["kind"] == "permission"
    });
    let (by_rule, by_person) = (count("allowed-by-rule"), by_person.count());
    let (dates, ids) = (allowed(&workspace, "date"), allowed(&workspace, "id"));
    let lost = usize::try_from(kills)?;
    assert!(dates > 0 && ids > 0, "{dates} and {ids} commands were allowed");
    tell(&format!(
        "{kills} kills: {dates} of {by_rule} answers by the rule and {ids} of {by_person} by a person came"
    ));
    // What was recorded as the hub was killed may not have reached the program.
    assert!((dates..=dates + lost).contains(&by_rule), "{dates} by {by_rule} answers of the rule");
    assert!((ids..=ids + lost).contains(&by_person), "{ids} by {by_person} answers of a person");
    let rules = client.call("hub/permissions/list", json!({})).await?;
    assert_eq!(rules["rules"][0]["uses"], by_rule, "{rules}");
    Ok(())
}
