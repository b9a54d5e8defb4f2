//! Tests of delegation between agents: components, and the programs that they start.

use crate::{
    command_line::run,
    stage::{
        artifact, eventually_async, get, no_program_left, resuming_guests, said, send, state,
        stream, until,
    },
};
use a2a_hub_tests::{
    Client, TestHub,
    delegation::{granted, tree},
    hub_binary,
    questions::{answer, refused},
    test_guests,
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::time::Duration;

async fn hub_that_calls(agents: &str) -> Result<TestHub> {
    TestHub::builder().config(granted(agents)).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn task_tree_command_shows_levels() -> Result<()> {
    let hub = hub_that_calls("'guest'").await?;
    let client = Client::http(&hub);
    let asks = send(&client, "guest", "call guest call guest ask which colour").await?;
    let id = asks["id"].as_str().context("no id")?;
    let drawn = run(&hub, &["task", "tree", id]).await?;
    assert_eq!((drawn.code, drawn.stdout.lines().count()), (Some(0), 3), "{}", drawn.stdout);
    assert!(drawn.stdout.contains("└── guest"), "{}", drawn.stdout);
    Ok(())
}

/// Without an id, a command takes what somebody sent. A child asks through its root.
#[tokio::test]
async fn lists_and_defaults_leave_children_out() -> Result<()> {
    let hub = hub_that_calls("'guest'").await?;
    let asked = "call guest call guest ask which colour";
    let waits = run(&hub, &["send", "guest", asked]).await?;
    assert_eq!(waits.code, Some(3), "{}", waits.stderr);
    let listed = run(&hub, &["tasks"]).await?.stdout;
    assert!(listed.lines().count() == 1 && listed.contains("guest +2"), "{listed}");
    assert_eq!(run(&hub, &["tasks", "--all"]).await?.stdout.lines().count(), 3);
    let tree = run(&hub, &["task", "tree"]).await?;
    assert_eq!(tree.stdout.lines().count(), 3, "{}{}", tree.stdout, tree.stderr);
    assert!(tree.stderr.contains(&format!("guest, `{asked}`")), "{}", tree.stderr);

    let id = listed.split_whitespace().next().context("no id")?;
    let unsaid = run(&hub, &["task", "answer", &id[28..]]).await?;
    assert!(unsaid.stderr.contains("give the text of the answer"), "{}", unsaid.stderr);
    let done = run(&hub, &["task", "answer", "blue"]).await?;
    assert!(done.code == Some(0) && done.stdout.trim().ends_with("blue"), "{done:?}");
    let none = run(&hub, &["task", "answer", "red"]).await?;
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("none waits for an answer"), "{}", none.stderr);
    Ok(())
}

/// Inside an agent's shell, the command line acts for that agent, on behalf of its task.
#[tokio::test]
async fn program_may_call_only_granted_agents() -> Result<()> {
    // A confined program sees neither the command nor the hub's socket.
    let plain =
        granted("'echo'").replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    let hub = TestHub::builder().config(plain).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let cli = format!("'{}' --socket '{}'", hub_binary()?.display(), hub.socket().display());
    let shell = |command: &str| format!("sh {cli} {command} 2>&1");
    let sent = send(&client, "guest", &shell("send echo 'hello from below'")).await?;
    assert!(artifact(&sent).contains("hello from below"), "{sent}");
    let tasks = tree(&client, &sent["id"]).await?;
    let child = tasks.last().context("a child")?;
    assert_eq!(child["metadata"]["parentTaskId"], sent["id"]);

    let agents = artifact(&send(&client, "guest", &shell("--format json agents")).await?);
    assert!(agents.contains("\"echo\"") && !agents.contains("\"codex\""), "{agents}");
    let others = send(&client, "echo", "not for the guest").await?;
    for (command, why) in [
        ("send codex hello".to_owned(), "delegate = [\"codex\"]"),
        ("status".to_owned(), "may not do this"),
        (format!("task show {}", others["id"].as_str().unwrap_or_default()), "no task"),
        ("tasks".to_owned(), "may not do this"),
    ] {
        let told = artifact(&send(&client, "guest", &shell(&command)).await?);
        assert!(told.contains(why), "{command}: {told}");
    }
    Ok(())
}

/// Checks the documented commands: those about the agents that this agent may call, and about the
/// tasks below its own.
#[tokio::test]
async fn documented_commands_work_inside_a_program() -> Result<()> {
    let plain = granted("'echo', 'guest'")
        .replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    let hub = TestHub::builder().config(plain).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let cli = format!("'{}' --socket '{}'", hub_binary()?.display(), hub.socket().display());
    // Child tasks: a finished one as `$over`, and a running one as `$works`; `$short` is its id as
    // `task tree` shows it.
    let children = "hub send echo hello; hub send guest 'sh sleep 600' &
        until [ $(hub --format json task tree $A2A_HUB_OWNER | grep -o '\"id\":' | wc -l) = 3 ]; do sleep 0.1; done
        ids=$(hub --format json task tree $A2A_HUB_OWNER | grep -o '\"id\":\"[^\"]*' | cut -d'\"' -f4)
        over=$(echo $ids | cut -d' ' -f2); works=$(echo $ids | cut -d' ' -f3); short=${over%?}";
    for (command, told) in [
        ("agents", "echo"),
        ("agents --health", "healthy"),
        ("agents --find 'say back'", "Says back"),
        ("agent show echo", "Says back"),
        ("send echo 'hello again'", "hello again"),
        ("task show $over", "completed"),
        ("task show $short", "completed"),
        ("task watch $over", "hello"),
        ("task tree $over", "completed"),
        ("task tree --watch $over", "completed"),
        ("task save $over", "made no files"),
        ("task cancel $works", "is cancelled"),
    ] {
        let needs_children = if command.contains('$') { children } else { "" };
        let script = format!(
            "sh hub() {{ {cli} \"$@\"; }}\n{needs_children}\necho; echo === ; hub {command} 2>&1"
        );
        let task = send(&client, "guest", &script).await?;
        let all = artifact(&task);
        let (_, said) = all.split_once("===").with_context(|| format!("{command}: {task}"))?;
        assert!(said.contains(told) && !said.contains("may not"), "{command}: {said}");
        assert!(!said.contains("codex"), "nothing of the others: {command}: {said}");
    }
    Ok(())
}

/// The leaf's run is lost. Its restartable agent and all agents above ask again.
#[tokio::test]
async fn child_question_is_asked_again_after_kill() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let hub = TestHub::builder().config(granted("'guest'"));
    let mut hub = hub.plugin("guest", resuming_guests(dir.path())?).start().await?;
    let asks = send(&Client::http(&hub), "guest", "call guest call guest permit").await?;
    let lost = &asks["metadata"]["question"];
    assert_eq!(lost["path"], json!(["guest", "guest"]), "{asks}");
    for _ in 0..2 {
        hub.kill9().await?;
        hub.restart().await?;
    }
    let client = Client::http(&hub);
    let [root, between, leaf] = &tree(&client, &asks["id"]).await?[..] else {
        bail!("three tasks: {asks}")
    };
    let now = &root["metadata"]["question"];
    assert_ne!(now["id"], lost["id"]);
    for (member, value) in [("path", &lost["path"]), ("replaces", &json!("permission"))] {
        assert_eq!(&now[member], value, "{root}");
    }
    assert_eq!((&now["task"], &now["id"]), (&leaf["id"], &leaf["metadata"]["question"]["id"]));
    let asked = all_said(root);
    for words in ["guest > guest asks:", "asked: “may I?”", "nothing was allowed"] {
        assert!(asked.contains(words), "{root}");
    }
    refused(&client, answer(root, "yes", Some(&lost["id"]))).await?;
    let mut yes = answer(root, "yes", Some(&now["id"]));
    yes["configuration"] = json!({ "blocking": false });
    client.call("message/send", yes).await?;
    let patience = Duration::from_secs(20);
    let is = async |task: &Value, wanted: &str| {
        let now = get(&client, task["id"].as_str().unwrap_or_default()).await;
        now.is_ok_and(|now| state(&now) == wanted)
    };
    eventually_async(patience, async || is(leaf, "completed").await).await.context("the leaf")?;
    let heard = get(&client, leaf["id"].as_str().context("no id")?).await?;
    assert!(said(&heard).ends_with("yes"), "its fresh run heard the answer: {heard}");

    // The client of the root resumes the tasks above, the deepest first.
    for (number, task) in [between, root].into_iter().enumerate() {
        let asks = async || {
            let now = get(&client, root["id"].as_str().unwrap_or_default()).await;
            now.is_ok_and(|now| {
                let path = now["metadata"]["question"]["path"].as_array().map_or(0, Vec::len);
                all_said(&now).contains("send any message to go on") && path == 1 - number
            })
        };
        eventually_async(patience, asks).await.with_context(|| format!("{number}: {task}"))?;
        let mut on = answer(root, "reply on", None);
        on["configuration"] = json!({ "blocking": false });
        client.call("message/send", on).await?;
        eventually_async(patience, async || is(task, "completed").await).await?;
    }
    Ok(())
}

/// The text of all parts of the task's status message.
fn all_said(task: &Value) -> String {
    let parts = task["status"]["message"]["parts"].as_array();
    parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

#[tokio::test]
async fn killed_hub_fails_child_tasks() -> Result<()> {
    let mut hub = hub_that_calls("'guest'").await?;
    let client = Client::http(&hub);
    let (task, mut updates) = stream(&client, "guest", "call guest sh sleep 600").await?;
    until(&mut updates, |event| state(event) == "working").await?;
    let runs = async || tree(&client, &json!(task)).await.is_ok_and(|tasks| tasks.len() == 2);
    eventually_async(Duration::from_secs(20), runs).await?;
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    for task in tree(&client, &json!(task)).await? {
        assert_eq!(state(&task), "failed", "{task}");
        assert_eq!(task["metadata"]["reason"], "hub_restarted");
    }
    assert_eq!(state(&get(&client, &task).await?), "failed");
    let status = run(&hub, &["status"]).await?;
    assert_eq!(status.code, Some(0));
    no_program_left(&hub.data_dir(), Duration::from_secs(10)).await
}
