//! Kills the hub while agents vote, bid, propose, estimate and negotiate. Some of them fail or give
//! useless answers. Each flow ends as its rules say, and nobody is asked twice.

use crate::stage::{get, said, state, tell};
use a2a_hub_tests::{Client, Numbers, TestHub, delegation::tree, durable_guest, message_to};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{env, fs, os::unix::fs::PermissionsExt as _, time::Duration};
use tokio::time::{Instant, sleep};

/// Number of kills; `A2A_HUB_PATTERN_KILLS` overrides it. `cargo xtask prove patterns` takes ten
/// times as many.
const KILLS: u64 = 20;

/// Maximum time until the hub is killed after its start.
const KILLED_WITHIN_MS: u64 = 500;

/// Time that the last flows have to end.
const PATIENCE: Duration = Duration::from_secs(90);

const AGENTS: [&str; 5] = ["ash", "elm", "fir", "oak", "yew"];

/// Flows by their names, with the keys of their step.
const FLOWS: [(&str, &str); 5] = [
    ("votes", "vote = { agents = [AGENTS], choices = [\"yes\", \"no\"], rule = { quorum = 2 } }"),
    ("bids", "auction = { agents = [AGENTS], price = \"second\", reserve = 80 }"),
    (
        "proposals",
        "contract_net = { agents = [AGENTS], awards = 2, limits = { cost = 50 }, rounds = 2 }",
    ),
    ("estimates", "delphi = { agents = [AGENTS], rounds = 3, max_changes = 1, least = 1 }"),
    ("terms", "negotiation = { agents = [AGENTS], proposals = 4 }"),
];

/// Configures the agents. A flow calls plug-ins only that were granted something.
fn config() -> String {
    let agent = |id| {
        format!(
            "[agents.{id}]\nmax_running = 100\nmax_queued = 1000\n[agents.{id}.grant.process.sh]\n"
        )
    };
    format!("[breaker]\nfailures = 1000000\n{}", AGENTS.map(agent).concat())
}

async fn begin(hub: &TestHub, flow: &str) -> Result<String> {
    let mut message = message_to(flow, "");
    message["configuration"] = json!({ "blocking": false });
    let task = Client::http(hub).call("message/send", message).await?;
    Ok(task["id"].as_str().context("no id")?.to_owned())
}

/// Number of members of a list in the output.
fn many(output: &Value, name: &str) -> usize {
    output[name].as_array().map_or(0, Vec::len)
}

/// Checks the end of a flow against its rules. Each agent is asked once more at most, for an answer
/// that has no JSON.
fn check(flow: &str, task: &Value, children: &[Value]) -> Result<()> {
    let (all, text) = (AGENTS.len(), said(task));
    let asked = children.len();
    if state(task) == "failed" {
        let reason = &task["status"]["message"]["metadata"]["reason"];
        let reason = reason.as_str().or_else(|| task["metadata"]["reason"].as_str());
        let expected = match flow {
            "bids" => "no_winner",
            "proposals" => "no_contractor",
            _ => "",
        };
        ensure!(reason == Some(expected), "{flow} failed: {task}");
        return Ok(());
    }
    ensure!(state(task) == "completed", "{flow}: {task}");
    let output = task["artifacts"].as_array().and_then(|all| {
        let output = all.iter().find(|it| it["artifactId"] == "output")?;
        output["parts"].as_array()?.first()?.get("data").cloned()
    });
    let output = output.with_context(|| format!("{flow} has no output: {task}"))?;
    let within = |least: usize, most: usize| {
        ensure!((least..=most).contains(&asked), "{flow}: {asked} tasks: {output}");
        Ok(())
    };
    match flow {
        "votes" => {
            ensure!(many(&output, "ballots") + many(&output, "failed") == all, "{output}");
            within(all, 2 * all)
        }
        "bids" => {
            let works = many(&output, "failed") + 1;
            ensure!(many(&output, "bids") + many(&output, "without") == all, "{output}");
            ensure!(output["price"].as_u64().is_some_and(|price| price <= 80), "{output}");
            ensure!(text == "done", "{text}");
            within(all + works, 2 * all + works)
        }
        "proposals" => {
            let works = many(&output, "contractors");
            ensure!((1..=2).contains(&works), "{output}");
            within(all + works, 4 * all + works)
        }
        "estimates" => {
            let rounds = output["rounds"].as_u64().and_then(|it| usize::try_from(it).ok());
            let rounds = rounds.context("no rounds")?;
            within(rounds * all, 2 * rounds * all)
        }
        _ => {
            let outcome = output["outcome"].as_str().unwrap_or_default();
            ensure!(["agreed", "cap", "left"].contains(&outcome), "{output}");
            within(1, 100)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_hub_asks_no_agent_twice() -> Result<()> {
    let kills = match env::var_os("A2A_HUB_PATTERN_KILLS") {
        Some(said) => said.to_str().and_then(|said| said.parse().ok()),
        None => Some(KILLS),
    };
    let kills: u64 = kills.context("A2A_HUB_PATTERN_KILLS is not a number")?;
    let durable = durable_guest()?;
    let mut builder = TestHub::builder().config(config());
    for agent in AGENTS {
        builder = builder.plugin(agent, &durable);
    }
    let mut hub = builder.start().await?;
    let agents = AGENTS.map(|agent| format!("\"{agent}\"")).join(", ");
    for (name, step) in FLOWS {
        let step = step.replace("AGENTS", &agents);
        let text = format!(
            "description = \"Decides\"\n[[step]]\nid = \"decide\"\nprompt = \"sleep 30\\ndecide\"\n{step}\n"
        );
        let file = hub.data_dir().join(format!("flows/{name}.flow.toml"));
        fs::create_dir_all(file.parent().context("no folder")?)?;
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        hub.joined(name).await?;
    }
    let begun = Instant::now();
    let mut numbers = Numbers::new(0x2026_1128);
    let mut tasks = Vec::new();
    for _ in 0..kills {
        for (name, _) in FLOWS {
            tasks.push((name, begin(&hub, name).await?));
        }
        sleep(Duration::from_millis(numbers.below(KILLED_WITHIN_MS))).await;
        hub.kill9().await?;
        hub.restart().await?;
    }
    let client = Client::http(&hub);
    let ends = Instant::now() + PATIENCE;
    let (mut completed, mut failed) = (0, 0);
    for (flow, id) in &tasks {
        let task = loop {
            let task = get(&client, id).await?;
            if matches!(state(&task), "completed" | "failed" | "canceled") {
                break task;
            }
            ensure!(Instant::now() < ends, "{flow} has not ended: {task}");
            sleep(Duration::from_millis(50)).await;
        };
        let mut children = tree(&client, &json!(id)).await?;
        children.retain(|child| child["id"] != json!(id));
        let standing = |child: &&Value| ["submitted", "working"].contains(&state(child));
        ensure!(!children.iter().any(|it| standing(&it)), "{flow}: a child goes on: {children:?}");
        check(flow, &task, &children).with_context(|| format!("{children:#?}"))?;
        if state(&task) == "completed" { completed += 1 } else { failed += 1 }
    }
    tell(&format!(
        "{kills} kills while agents decided: {completed} flows completed, {failed} failed by their rules, in {:.0?}",
        begun.elapsed()
    ));
    ensure!(completed > tasks.len() / 2, "{completed} of {} flows completed", tasks.len());
    Ok(())
}
