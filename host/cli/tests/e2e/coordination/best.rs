//! Tests of `best`: several agents try in worktrees, and the best result is taken over.

use super::flows::run;
use crate::command_line::{command, finish};
use crate::stage::{eventually_async, until_it_is};
use a2a_hub_tests::{Client, TestHub, git, make_repository, message_to, stage::GRANT, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);

/// The first candidate is wrong, the second one too long, the third one short, the others fail.
/// `DIR` is a directory in which they count themselves.
const WORK: &str = "sh if mkdir DIR/1; then echo bad > made; elif mkdir DIR/2; then printf 'good\\nlong\\n' > made; \
    elif mkdir DIR/3; then echo good > made; else exit 7; fi 2>&1";

/// Starts a hub with unconfined agents, and makes a repository and a directory in its workspace.
async fn hub_with_repository() -> Result<(TestHub, PathBuf, PathBuf)> {
    let config = GRANT.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n")
        + "[agents.script]\nconfine = false\n";
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let (repository, count) = (hub.workspace().join("repository"), hub.workspace().join("count"));
    make_repository(&repository)?;
    fs::create_dir(&count)?;
    Ok((hub, repository, count))
}

#[tokio::test]
async fn smallest_passing_change_is_applied() -> Result<()> {
    let (hub, repository, count) = hub_with_repository().await?;
    let work = WORK.replace("DIR", &count.display().to_string());
    let cwd = repository.display().to_string();
    let judge = ["--judge", "grep -q good made && sleep 0", "--cwd", &cwd];
    let of = ["best", &work, "--of", "guest,guest,guest,guest"];
    let flows = hub.data_dir().join("flows");
    for number in 0..20 {
        fs::write(flows.join(format!("best-of-000000{number:02}.flow.toml")), "old = 1\n")?;
    }
    let outside = hub.workspace().join("outside");
    fs::create_dir(&outside)?;
    let outside =
        run(&hub, &[&of[..], &["--cwd", &outside.display().to_string()]].concat()).await?;
    ensure!(outside.code == Some(2) && outside.stderr.contains("git init"), "{}", outside.stderr);
    ensure!(fs::read_dir(&count)?.next().is_none() && fs::read_dir(&flows)?.count() == 20);
    let mistyped = run(&hub, &[&of[..], &["--judge", "grpe x", "--cwd", &cwd]].concat()).await?;
    ensure!(mistyped.code == Some(1) && mistyped.stderr.contains("The judge cannot run"));
    ensure!(fs::read_dir(&count)?.next().is_none(), "a judge that cannot run is known before");
    fs::write(repository.join("draft"), "mine\n")?;
    let ran = run(&hub, &[&of[..], &judge].concat()).await?;
    fs::remove_file(repository.join("draft"))?;
    let (shown, noted) = (&ran.stdout, &ran.stderr);
    ensure!(ran.code == Some(0) && shown.contains("Picked: "), "{shown} {noted}");
    ensure!(shown.contains("(+1 -0)") && shown.contains("`judge` exited with 1"), "{shown}");
    ensure!(shown.contains("exit 7") || shown.contains("it changed nothing"), "{shown}");
    ensure!(noted.contains("task apply"), "{noted}");
    ensure!(noted.contains("not committed: draft"), "{noted}");
    ensure!(shown.contains("passed, larger"), "{shown}");
    let listed = [run(&hub, &["agents"]).await?.stdout, run(&hub, &["status"]).await?.stdout];
    // Files that are no flows are refused, and listed as such.
    let is_agent = |it: &String| it.lines().any(|line| line.starts_with("best-of-"));
    ensure!(!listed.iter().any(is_agent), "{listed:?}");
    ensure!(is_agent(&run(&hub, &["agents", "--all"]).await?.stdout));
    ensure!(git(&repository, &["status", "--porcelain"])?.is_empty());
    ensure!(fs::read_dir(&flows)?.count() == 17, "the latest ones stay, and that in use");

    // Without an id in that repository: the latest flow that picked one.
    let again = run(&hub, &[&of[..], &judge].concat()).await?;
    ensure!(again.code == Some(1) && again.stderr.contains("no candidate"), "{}", again.stderr);
    let dir = hub.data_dir().display().to_string();
    let mut latest = command(hub.socket(), &hub.home(), &["--data-dir", &dir, "task", "diff"])?;
    latest.current_dir(&repository);
    let latest = finish(latest).await?;
    ensure!(latest.stdout.contains("+good\n"), "{} {}", latest.stdout, latest.stderr);
    ensure!(!latest.stdout.contains("+long"), "{}", latest.stdout);

    let client = Client::unix(&hub);
    let worktrees = client.call("hub/worktrees/list", json!({})).await?;
    let flow = worktrees[0]["parentTaskId"].as_str().context("no parent")?.to_owned();
    let diff = run(&hub, &["task", "diff", &flow]).await?;
    ensure!(diff.stdout.contains("+good\n") && !diff.stdout.contains("+long"), "{}", diff.stdout);
    let applied = run(&hub, &["task", "apply", &flow]).await?;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert_eq!(fs::read_to_string(repository.join("made"))?, "good\n");
    let discarded = run(&hub, &["task", "discard", &flow]).await?;
    ensure!(discarded.stdout.contains("3 worktrees"), "{} {}", discarded.stdout, discarded.stderr);
    let left = client.call("hub/worktrees/list", json!({})).await?;
    let left = left.as_array().context("no list")?;
    ensure!(left.iter().all(|one| one["parentTaskId"] != flow.as_str()), "{left:?}");

    let unknown = run(&hub, &["best", "x", "--of", "guest,gust", "--judge", "true"]).await?;
    ensure!(unknown.stderr.contains("no agent is called `gust`"), "{}", unknown.stderr);
    let alone = run(&hub, &["best", "x", "--of", "guest"]).await?;
    ensure!(alone.code == Some(2) && alone.stderr.contains("2 to 32"), "{}", alone.stderr);
    Ok(())
}

#[tokio::test]
async fn killed_hub_goes_on_with_candidates() -> Result<()> {
    let (mut hub, repository, count) = hub_with_repository().await?;
    let flow = "description = \"Tries\"\n[input]\ntask = { type = \"string\" }\n\
        [[step]]\nid = \"try\"\nagents = [\"guest\", \"guest\"]\nworktree = \"new\"\nprompt = \"{{ input.task }}\"\n\
        [[step]]\nid = \"judge\"\nneeds = [\"try\"]\nworktree = \"try\"\non_restart = \"retry\"\n\
        run = [\"sh\", \"-c\", \"echo x >> COUNT/judged; [ -e COUNT/go ] || sleep 300; grep -q good made\"]\n\
        [[step]]\nid = \"best\"\nneeds = [\"judge\"]\npick = { from = \"try\", judges = [\"judge\"] }\n";
    let flow = flow.replace("COUNT", &count.display().to_string());
    fs::write(hub.data_dir().join("flows/tries.flow.toml"), flow)?;
    let trusted = run(&hub, &["flow", "trust", "tries", "--yes"]).await?;
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    hub.joined("tries").await?;
    let mut message = message_to("tries", "sh echo good > made");
    message["message"]["metadata"]["workingDirectory"] = json!(repository);
    message["configuration"] = json!({ "blocking": false });
    let task: Value = Client::http(&hub).call("message/send", message).await?;
    let id = task["id"].as_str().context("no id")?.to_owned();
    let judged = count.join("judged");
    let is_judged = async || fs::read_to_string(&judged).is_ok_and(|it| it.lines().count() == 2);
    eventually_async(PATIENCE, is_judged).await.context("the judges do not run")?;
    hub.kill9().await?;
    fs::write(count.join("go"), "")?;
    hub.restart().await?;
    let done = until_it_is(&hub, &id, "completed", PATIENCE).await?;
    let worktrees = Client::unix(&hub).call("hub/worktrees/list", json!({})).await?;
    assert_eq!(worktrees.as_array().map(Vec::len), Some(2), "no candidate began twice");
    ensure!(done["metadata"]["worktreeTask"].is_string(), "{done}");
    let diff = run(&hub, &["task", "diff", &id]).await?;
    ensure!(diff.stdout.contains("+good"), "{} {}", diff.stdout, diff.stderr);
    Ok(())
}
