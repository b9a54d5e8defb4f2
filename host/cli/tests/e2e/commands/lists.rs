//! Tests of lookups by hand: by prefix, by criteria, by the Tab key; and of a hub that starts on
//! demand.

use crate::{
    command_line::{command, finish, run},
    stage::{home, hub_with_guest, send, state, stream},
};
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::{sleep, timeout},
};

async fn listed(hub: &TestHub, args: &[&str]) -> Result<Vec<Value>> {
    let ran = run(hub, &[&["--format", "json", "tasks"], args].concat()).await?;
    serde_json::from_str(&ran.stdout).with_context(|| format!("{}{}", ran.stdout, ran.stderr))
}

#[tokio::test]
async fn unique_part_of_id_is_accepted() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let first = send(&client, "echo", "one").await?;
    // Ids contain the millisecond of their creation.
    sleep(Duration::from_millis(5)).await;
    let second = send(&client, "guest", "flood 1").await?;
    let id = |task: &Value, name: &str| task[name].as_str().unwrap_or_default().to_owned();
    let (whole, context) = (id(&first, "id"), id(&first, "contextId"));
    let unique = (1..=whole.len()).find(|end| !id(&second, "id").starts_with(&whole[..*end]));
    let short = &whole[..unique.context("both are called the same")?];
    for args in [&["task", "show", short][..], &["task", "watch", short], &["task", "save", short]]
    {
        let ran = run(&hub, args).await?;
        assert_eq!(ran.code, Some(0), "{args:?} {}", ran.stderr);
    }
    // Tables show the end of an id.
    for part in [short, &whole[whole.len() - 8..]] {
        let shown = run(&hub, &["task", "show", part]).await?.stdout;
        assert!(shown.contains(&whole), "{shown}");
    }
    let end = &context[context.len() - 8..];
    let shown = run(&hub, &["contexts", "show", end]).await?.stdout;
    assert!(shown.contains(&whole), "{shown}");
    let on = run(&hub, &["--format", "json", "send", "echo", "end", "--context", end]).await?;
    assert_eq!(serde_json::from_str::<Value>(&on.stdout)?["contextId"], json!(context));
    let over = run(&hub, &["task", "cancel", short]).await?;
    assert!(over.stderr.contains("cannot be cancelled"), "{}", over.stderr);

    let both = &short[..short.len() - 1];
    for args in [&["task", "show", both][..], &["send", "guest", "--task", both, "x"]] {
        let ran = run(&hub, args).await?;
        assert_eq!(ran.code, Some(2));
        let why = format!("`{both}` is part of the id of more than one task; give a longer part:");
        assert!(ran.stderr.contains(&why), "{}", ran.stderr);
        assert!(ran.stderr.contains("echo, now: one"), "{}", ran.stderr);
    }
    let none = run(&hub, &["task", "show", "zz"]).await?;
    assert!(none.stderr.contains("no task is called `zz`"), "{}", none.stderr);

    let near = &context[..context.len() - 1];
    let shown = run(&hub, &["contexts", "show", near]).await?;
    assert!(shown.stdout.contains(&whole), "{}{}", shown.stdout, shown.stderr);
    let on = run(&hub, &["--format", "json", "send", "echo", "two", "--context", near]).await?;
    assert_eq!(serde_json::from_str::<Value>(&on.stdout)?["contextId"], json!(context));
    // One digit suffices if it is unique.
    let digit = &context[..1];
    let other = id(&second, "contextId");
    assert_eq!(run(&hub, &["contexts", "delete", &other]).await?.code, Some(0));
    let on = run(&hub, &["--format", "json", "send", "echo", "three", "--context", digit]).await?;
    assert_eq!(serde_json::from_str::<Value>(&on.stdout)?["contextId"], json!(context));
    assert_eq!(run(&hub, &["contexts", "delete", near]).await?.code, Some(0));
    // A new conversation has the id that its client chose, even if it is a prefix of others.
    let named = async |name: &str| -> Result<()> {
        let sent =
            run(&hub, &["--format", "json", "send", "echo", "hi", "--context", name]).await?;
        assert_eq!(serde_json::from_str::<Value>(&sent.stdout)?["contextId"], json!(name));
        Ok(())
    };
    for name in ["cafe", "caf", digit] {
        named(name).await?;
    }
    for _ in 0..10 {
        send(&client, "echo", "others that begin so").await?;
    }
    named(digit).await?;
    send(&client, "echo", "newer than that").await?;
    assert_eq!(run(&hub, &["contexts", "delete", digit]).await?.code, Some(0));
    // Without an id, the latest task in the directory counts.
    let sent = run(&hub, &["--format", "json", "send", "echo", "here"]).await?.stdout;
    let here = id(&serde_json::from_str(&sent)?, "taskId");
    for args in [&["task", "show"][..], &["task", "tree"], &["contexts", "show"]] {
        let shown = run(&hub, args).await?;
        assert!(shown.stdout.contains(&here), "{args:?}: {}{}", shown.stdout, shown.stderr);
    }
    let nowhere = tempfile::tempdir()?;
    let mut shown = command(hub.socket(), &hub.home(), &["task", "show"])?;
    shown.current_dir(nowhere.path());
    let shown = finish(shown).await?;
    assert!(shown.stderr.contains("none that somebody sent works in"), "{}", shown.stderr);
    Ok(())
}

#[tokio::test]
async fn task_list_filters_and_pages() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    for (agent, text) in [("echo", "one"), ("guest", "flood 1"), ("echo", "two")] {
        send(&client, agent, text).await?;
    }
    assert_eq!(listed(&hub, &["--agent", "echo"]).await?.len(), 2);
    let slip = run(&hub, &["tasks", "--agent", "ehco"]).await?;
    assert_eq!((slip.code, slip.stderr.contains("did you mean `echo`?")), (Some(2), true));
    assert_eq!(listed(&hub, &["--since", "1h"]).await?.len(), 3);
    assert_eq!(listed(&hub, &["--since", "2100-01-01T00:00:00Z"]).await?.len(), 0);
    let page = listed(&hub, &["--limit", "1", "--offset", "1"]).await?;
    assert_eq!((page.len(), &page[0]["agentId"]), (1, &json!("guest")));
    for (args, why) in [
        (["--since", "yesterday"], "`yesterday` is not a time: give a duration"),
        (["--agent", "../x"], "`../x` cannot name an agent"),
    ] {
        let ran = run(&hub, &[&["tasks"][..], &args].concat()).await?;
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    let row = run(&hub, &["tasks", "--limit", "1"]).await?.stdout;
    let cells: Vec<_> = row.trim_end().split('\t').collect();
    assert_eq!((cells[1], &cells[3..]), ("completed", &["echo", "two"][..]), "for `cut`: {row}");
    Ok(())
}

#[tokio::test]
async fn watched_task_list_updates_on_change() -> Result<()> {
    let hub = hub_with_guest().await?;
    let mut command =
        command(hub.socket(), &hub.home(), &["--format", "json", "tasks", "--watch"])?;
    let mut child = command.spawn()?;
    let mut lists = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    let mut next = async || -> Result<Value> {
        let line = timeout(Duration::from_secs(20), lines_next(&mut lists)).await??;
        Ok(serde_json::from_str(&line)?)
    };
    assert_eq!(next().await?, json!([]));
    let (task, _updates) = stream(&Client::unix(&hub), "guest", "sh sleep 600").await?;
    while state(&next().await?[0]) != "working" {}
    run(&hub, &["task", "cancel", &task]).await?;
    while state(&next().await?[0]) != "canceled" {}
    Ok(())
}

async fn lines_next(
    lines: &mut tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
) -> Result<String> {
    lines.next_line().await?.context("it ended")
}

#[tokio::test]
async fn unknown_name_suggests_nearest() -> Result<()> {
    let hub = hub_with_guest().await?;
    for args in [&["send", "ehco", "hi"][..], &["agent", "show", "ehco"]] {
        let ran = run(&hub, args).await?;
        assert!(ran.stderr.contains("did you mean `echo`?"), "{}", ran.stderr);
    }
    let ran = run(&hub, &["tsaks"]).await?;
    assert!(ran.stderr.contains("'tasks'"), "{}", ran.stderr);
    Ok(())
}

#[tokio::test]
async fn shell_completes_agents_and_tasks() -> Result<()> {
    let hub = hub_with_guest().await?;
    let task = send(&Client::unix(&hub), "echo", "hello \x1b[2J there").await?;
    let task = task["id"].as_str().context("no id")?;
    let script = run(&hub, &["completions", "bash"]).await?;
    assert!(script.stdout.contains("_A2A_HUB_COMPLETE="), "{}", script.stdout);
    let completed = async |words: &[&str]| -> Result<String> {
        let mut command = command(hub.socket(), &hub.home(), &[])?;
        // Like the completion script for fish, which shows descriptions.
        let asked = command.env("_A2A_HUB_COMPLETE", "fish").env("A2A_HUB_SOCKET", hub.socket());
        let ran = asked.as_std();
        let mut plain = tokio_command(ran.get_program());
        plain.envs(ran.get_envs().filter_map(|(name, value)| Some((name, value?))));
        plain.arg("--").arg("a2a-hub").args(words);
        Ok(finish(plain).await?.stdout)
    };
    assert!(completed(&["send", "ec"]).await?.starts_with("echo\t"), "agents");
    let tasks = completed(&["task", "show", ""]).await?;
    assert!(tasks.contains(task) && tasks.contains("hello"), "{tasks}");
    assert!(!tasks.contains('\x1b'), "{tasks:?}");
    assert!(completed(&["ta"]).await?.contains("tasks"), "commands");
    let options = completed(&["send", "-"]).await?;
    assert!(options.contains("--file") && options.contains("--help"), "{options}");
    let agents = completed(&["send", ""]).await?;
    assert!(agents.contains("echo") && !agents.contains("--"), "options follow a `-`: {agents}");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a shell starts it so")]
fn tokio_command(program: &std::ffi::OsStr) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped()).kill_on_drop(true);
    command
}

#[tokio::test]
async fn send_starts_hub_on_demand() -> Result<()> {
    let dir = home()?;
    let data = dir.path().join(".a2a-hub");
    std::fs::write(data.join("config.toml"), "http.enabled = false")?;
    let socket = dir.path().join("hub.sock");
    let run = async |args: &[&str]| finish(command(&socket, dir.path(), args)?).await;
    let asked = ["send", "echo", "hi", "--start"];
    // Two concurrent commands start one hub.
    let (one, other) = tokio::try_join!(run(&asked), run(&asked))?;
    for ran in [&one, &other] {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{}", ran.stderr);
    }
    let told = format!("{}{}", one.stderr, other.stderr);
    assert_eq!(told.matches("the hub is up").count(), 1, "{told}");
    assert_eq!(run(&asked).await?.stderr, "", "it is up");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        run(&["version"]).await?.stdout,
        format!("program  {version}\nhub      {version}\n")
    );
    assert_eq!(run(&["stop"]).await?.code, Some(0));
    for (args, said) in [
        (&["stop"][..], "the hub is not running: no hub listens on "),
        (&["stop", "--force"], "the hub is not running: no hub uses the data directory "),
        (&["version"], &format!("program  {version}\nhub      not running\n")),
    ] {
        let ran = run(args).await?;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.stdout.starts_with(said), "{}", ran.stdout);
    }
    Ok(())
}
