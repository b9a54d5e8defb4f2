//! Tests of settings by the operator, and of a client's choices within them.

use super::{KEY, Stage, vendors::Vendor};
use crate::stage::state;
use a2a_hub_tests::{ReceivedRequest, message_to};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;

pub(super) async fn chosen_model_reaches_program(vendor: &Vendor) -> Result<()> {
    // Each program has a table of efforts per model; the loopback's models accept none or any.
    let stage = vendor.stage().await?;
    let mut message = message_to(vendor.agent, "hello");
    let wanted = vendor.model;
    message["message"]["metadata"]["model"] = json!(wanted);
    let task: Value = stage.client().call("message/send", message).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let asked = stage.model.requests();
    // OpenCode names a model by its provider as well, which the request leaves out.
    let name = wanted.rsplit('/').next().unwrap_or(wanted);
    let is_wanted =
        |seen: &ReceivedRequest| seen.path.contains(name) || seen.body["model"] == *name;
    assert!(asked.iter().any(is_wanted), "{asked:?}");

    let mut message = message_to(vendor.agent, "hello");
    message["message"]["metadata"]["model"] = json!("--yolo");
    let task: Value = stage.client().call("message/send", message).await?;
    let told = (state(&task), &task["metadata"]["reason"]);
    assert_eq!(told, ("failed", &json!("invalid_request")), "{task}");
    Ok(())
}

pub(super) async fn operator_settings_reach_program(vendor: &Vendor) -> Result<()> {
    let trace = tempfile::tempdir()?;
    let started = trace.path().join("started");
    // The command is no MCP server; it only records that it was started.
    let server = json!({ "docs": { "command": "/bin/sh", "args": ["-c", format!("touch {}", started.display())] } });
    let settings = format!(
        "{}\nsettings.system_prompt = 'Answer as a parrot would.'\nsettings.mcp_servers = '{server}'",
        vendor.trusts.0
    );
    let stage = vendor.stage_with(Some(KEY), &settings).await?;
    let task = stage.send("hello").await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert!(stage.asked_of_the_model().contains("Answer as a parrot would."));
    assert!(started.exists(), "the operator's server was started");

    fs::remove_file(&started)?;
    let mut without = message_to(vendor.agent, "hello");
    without["message"]["metadata"]["mcpServers"] = json!([]);
    let task: Value = stage.client().call("message/send", without).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert!(!started.exists(), "its client wants none of it");
    Ok(())
}

/// Makes a standing permission of a program's question about `touch never`. The same request of
/// another task is answered by it, if the hub can read the program's requests exactly.
async fn standing_permission_answers_next_request(
    stage: &Stage,
    vendor: &Vendor,
    asked: &Value,
) -> Result<()> {
    let question = &asked["metadata"]["question"];
    let action = &question["request"]["action"];
    let answer = json!({ "ids": [question["id"]], "answer": "allow", "always": {} });
    let results: Value = stage.client().call("hub/questions/answer", answer).await?;
    let result = &results[0];
    // Gemini CLI has only a title for a command, and OpenCode asks before it names the directory.
    if matches!(vendor.agent, "gemini" | "opencode") && action["kind"] == "other" {
        assert!(result["error"].as_str().is_some_and(|why| why.contains("no rule")), "{results}");
        return Ok(());
    }
    assert_eq!(action["commands"], json!([["touch", "never"]]), "{asked}");
    let rule = result["rules"][0].as_str().with_context(|| results.to_string())?;
    let task = stage.send(&(vendor.run)("touch never")).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let other = stage.send(&(vendor.run)("touch other")).await?;
    assert_eq!(state(&other), "input-required", "{other}");
    let rules: Value = stage.client().call("hub/permissions/list", json!({})).await?;
    let listed = &rules["rules"][0];
    assert_eq!((&listed["id"], &listed["uses"]), (&json!(rule), &json!(1)), "{rules}");
    Ok(())
}

pub(super) async fn allowed_tool_runs_without_asking(vendor: &Vendor) -> Result<()> {
    let name = {
        let stage = vendor.stage().await?;
        let asked = stage.send(&(vendor.run)("touch never")).await?;
        let tool = &asked["status"]["message"]["parts"][1]["data"]["tool"];
        let name = tool.as_str().with_context(|| asked.to_string())?.to_owned();
        standing_permission_answers_next_request(&stage, vendor, &asked).await?;
        name
    };
    let allowed = format!("settings.allowed_tools = '{name}'");
    let stage = vendor.stage_with(Some(KEY), &allowed).await?;
    let file = stage.hub.workspace().join("made");
    let run = (vendor.run)(&format!("touch {}", file.display()));
    let task = stage.send(&run).await?;
    assert_eq!((state(&task), file.exists()), ("completed", true), "{name}: {task}");
    let mut narrower = message_to(vendor.agent, &run);
    narrower["message"]["metadata"]["allowedTools"] = json!([]);
    let asked: Value = stage.client().call("message/send", narrower).await?;
    assert_eq!(state(&asked), "input-required", "its client may want to be asked: {asked}");
    Ok(())
}
