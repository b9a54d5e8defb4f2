//! Tests of all tools of the hub's MCP server in each vendor's program, in each mode. The program's
//! directory is trusted by its user: in any other, Gemini CLI starts no MCP server.

use super::{KEY, Stage, vendors::Vendor};
use crate::{
    command_line::{command, finish_within},
    stage::state,
};
use a2a_hub_tests::{CannedAnswer, ModelServer};
use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Time in which a flow of one program and an echo ends.
const FLOW_TIMEOUT: Duration = Duration::from_secs(100);

/// Configuration that lets the vendor's agent call others, with these settings.
fn granted(vendor: &Vendor, settings: &str) -> String {
    let (agent, program) = (vendor.agent, vendor.program);
    format!(
        "{}\n{settings}\n[agents.{agent}.grant]\nmemory = true\nfiles = true\ndelegate = ['echo']\n\
         [agents.{agent}.grant.process.{program}]",
        vendor.trusts.0
    )
}

/// Makes the model use each of the tools outside of a blackboard's turn, with these permissions.
/// The hub has granted them all, so nobody is asked.
pub(super) async fn hub_tools_work_without_questions(vendor: &Vendor) -> Result<()> {
    let modes = ["ask", "edit", "full"];
    try_join_all(modes.map(|permissions| use_all_tools(vendor, permissions))).await?;
    Ok(())
}

async fn use_all_tools(vendor: &Vendor, permissions: &str) -> Result<()> {
    let settings = granted(vendor, &format!("permissions = '{permissions}'"));
    let stage = vendor.stage_with(Some(KEY), &settings).await?;
    let item = json!({ "id": "a", "version": 1 });
    // Each tool with words of its result.
    let calls = [
        ("echo", json!({ "message": "across the hub", "wait_seconds": 300 }), "is completed"),
        ("list_agents", json!({}), "healthy"),
        ("check_task", json!({ "task_id": "unknown-1" }), "`unknown-1`"),
        ("cancel_task", json!({ "task_id": "unknown-2" }), "`unknown-2`"),
        ("answer_task", json!({ "task_id": "unknown-3", "message": "no" }), "`unknown-3`"),
        ("publish_to_topic", json!({ "topic": "tools/all", "text": "found" }), "sequence"),
        ("read_topics", json!({ "pattern": "tools/#" }), "gaps"),
        ("list_topics", json!({}), "cursors"),
        ("read_blackboard", json!({ "task": "unknown-4" }), "`unknown-4`"),
        ("add_item", json!({ "id": "a", "text": "x" }), "no turn at a blackboard"),
        ("claim_item", item.clone(), "no turn at a blackboard"),
        ("finish_item", json!({ "id": "a", "version": 1, "text": "x" }), "no turn at a blackboard"),
        ("release_item", item, "no turn at a blackboard"),
    ];
    let prompt: String = calls.iter().map(|call| (vendor.hub_tool)(call.0, &call.1)).collect();
    let task = stage.send(&prompt).await?;
    ensure!(state(&task) == "completed", "{permissions}: {task}");
    // The last request has the results of all calls.
    let requests = stage.model.requests();
    let ours = requests.iter().filter(|seen| seen.path.contains(vendor.api));
    let last = ours.map(|seen| seen.body.to_string()).max_by_key(String::len);
    let last = last.context("the model was not asked")?;
    for (tool, _, words) in &calls {
        let wanted = calls.iter().filter(|call| call.2 == *words).count();
        let found = last.matches(words).count();
        ensure!(found >= wanted, "{permissions}, {tool}: {found} times {words:?} in {last}");
    }
    let tree = json!({ "workflow": task["id"], "limit": 100 });
    let tree = stage.client().call("hub/tasks/list", tree).await?;
    let children = tree.as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(children.iter().any(|child| child["agentId"] == "echo"), "{permissions}: {tree}");
    Ok(())
}

/// The program only reads in a turn at a blackboard, and changes it by the tools for that.
pub(super) async fn board_tools_work_in_read_only_turn(vendor: &Vendor) -> Result<()> {
    let found = "the writer is called by the server";
    let item = |id: &str, version: u32| json!({ "id": id, "version": version });
    let finished = |id: &str, version: u32| json!({ "id": id, "version": version, "text": found });
    let calls = [
        ("read_blackboard", json!({})),
        ("claim_item", item("callers", 1)),
        ("release_item", item("callers", 2)),
        ("claim_item", item("callers", 3)),
        ("finish_item", finished("callers", 4)),
        ("add_item", json!({ "id": "more", "text": "Who else calls it?" })),
        ("claim_item", item("more", 1)),
        ("finish_item", finished("more", 2)),
    ];
    let tools: String = calls.iter().map(|call| (vendor.hub_tool)(call.0, &call.1)).collect();
    let contributions = json!({ "contributions": [] });
    let answer = CannedAnswer {
        path: vendor.api,
        prompt: "This is round 1 of".to_owned(),
        answer: format!("{tools}{contributions}"),
    };
    let model = ModelServer::start()?.with_key(KEY).with_answers([answer]);
    let settings = granted(vendor, "");
    let stage = vendor.stage_of(model, vendor.path()?, Some(KEY), &settings).await?;
    let output = run_board(&stage, vendor).await?;
    ensure!(output["outcome"] == "goal", "{output} {}", stage.asked_of_the_model());
    let items = output["items"].as_array().context("no items")?;
    let shown: Vec<_> =
        items.iter().map(|item| [&item["id"], &item["by"], &item["result"]]).collect();
    let done = |id: &str| [json!(id), json!(vendor.agent), json!(found)];
    assert_eq!(json!(shown), json!([done("callers"), done("more")]), "{output}");
    Ok(())
}

/// Runs a flow whose only step is a blackboard of the vendor's agent and an echo.
async fn run_board(stage: &Stage, vendor: &Vendor) -> Result<Value> {
    let flow = format!(
        r#"
        description = "Finds something out"
        [[step]]
        id = "explore"
        prompt = "Find this out."
        [step.blackboard]
        agents = ["{}", "echo"]
        rounds = 1
        items = [{{ id = "callers", text = "Who calls the writer?" }}]
        "#,
        vendor.agent
    );
    fs::create_dir_all(stage.hub.data_dir().join("flows"))?;
    fs::write(stage.hub.data_dir().join("flows/explore.flow.toml"), flow)?;
    stage.hub.joined("explore").await?;
    let data = stage.hub.data_dir().display().to_string();
    let args = ["--data-dir", &data, "run", "explore"];
    let mut command = command(stage.hub.socket(), &stage.hub.home(), &args)?;
    command.current_dir(stage.hub.workspace());
    let ran = finish_within(FLOW_TIMEOUT, command).await?;
    ensure!(ran.code == Some(0), "{} {} {}", ran.stdout, ran.stderr, stage.asked_of_the_model());
    Ok(serde_json::from_str(&ran.stdout)?)
}
