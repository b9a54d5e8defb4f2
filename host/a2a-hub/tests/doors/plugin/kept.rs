//! Tests of processes that outlive a task of their agent: reuse, lifetime, and cleanup.

use crate::{
    hub::InProcessHub,
    stage::{eventually, eventually_async, no_program_left, said, send},
};
use a2a_hub_tests::{
    Client,
    grants::{by_command, digest, grant, revoke},
    kept::{self, COUNT, SOON, kept, says},
    message_to, processes_with_marker, test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};
use tokio::time::Instant;

/// Starts a hub whose guest reuses processes, with these settings and limits.
async fn keeping(agent: &str, limits: &str) -> Result<InProcessHub> {
    let hub = InProcessHub::builder().config(kept::config(agent, limits));
    hub.plugin("guest", test_guests()?).start().await
}

async fn keeps(client: &Client, wanted: u64) -> Result<()> {
    let told = eventually_async(SOON, async || kept(client).await.is_ok_and(|it| it == wanted));
    told.await.with_context(|| format!("it is to keep {wanted}"))
}

/// Counts the processes of the hub's programs with this command line.
fn running(hub: &InProcessHub, command: &str) -> Result<usize> {
    let data = hub.data_dir().canonicalize()?;
    let of = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = |pid: &u32| String::from_utf8_lossy(&of(pid)).replace('\0', " ");
    let lines = processes_with_marker(&data).iter().map(line).collect::<Vec<_>>();
    let begins = |line: &&String| {
        let (program, args) = line.split_once(' ').unwrap_or((line, ""));
        let name = program.rsplit('/').next().unwrap_or_default();
        format!("{name} {args}").starts_with(command)
    };
    Ok(lines.iter().filter(begins).count())
}

#[tokio::test]
async fn next_task_reuses_kept_program() -> Result<()> {
    for tier in ["confine = false", "confine = true"] {
        let hub = keeping(tier, "").await?;
        let client = Client::http(&hub);
        assert_eq!(says(&client, COUNT).await?, "new 1", "{tier}");
        keeps(&client, 1).await?;
        assert_eq!(says(&client, COUNT).await?, "kept 2", "{tier}");
        assert_eq!(says(&client, COUNT).await?, "kept 3", "{tier}");
        assert_eq!(says(&client, "keep other n=$((n+1)); echo $n").await?, "new 1", "another key");
        keeps(&client, 2).await?;
        // The process's temporary directory lives as long as the process.
        says(&client, "keep k echo here >$TMPDIR/file").await?;
        assert_eq!(says(&client, "keep k cat $TMPDIR/file").await?, "kept here", "{tier}");
        let log = hub.log();
        assert!(log.contains("program is idle until") && log.contains("was reused"), "{log}");
    }
    Ok(())
}

#[tokio::test]
async fn background_processes_end_and_helpers_stay() -> Result<()> {
    for tier in ["confine = false", "confine = true"] {
        let hub = keeping(tier, "").await?;
        let client = Client::http(&hub);
        let first = says(&client, "keep-helped k n=$((n+1)); echo $n").await?;
        assert!(first.starts_with("new "), "{first}");
        let line = "keep-helped k sleep 1001 & nohup sleep 1002 >/dev/null 2>&1 & setsid sleep 1003 >/dev/null 2>&1 & \
                    (setsid sh -c 'sleep 1004 & exit' &) ; sleep 0.3; n=$((n+1)); echo $n";
        assert_eq!(says(&client, line).await?, "kept 2", "{tier}");
        assert_eq!(running(&hub, "sleep 100")?, 0, "{tier}: before the task is over");
        assert_eq!(running(&hub, "sleep 600")?, 1, "{tier}: its helper");
        assert_eq!(says(&client, "keep-helped k n=$((n+1)); echo $n").await?, "kept 3");
        assert!(hub.log().contains("background processes of a task were killed"), "{}", hub.log());
    }
    Ok(())
}

/// Sends a message with additional metadata.
async fn sends(client: &Client, text: &str, more: (&str, Value)) -> Result<String> {
    let mut message = message_to("guest", text);
    message["message"]["metadata"][more.0] = more.1;
    let task = client.call("message/send", message).await?;
    Ok(said(&task).to_owned())
}

#[tokio::test]
async fn kept_program_requires_same_circumstances() -> Result<()> {
    let tools = tempfile::tempdir()?;
    let shell = tools.path().join("sh");
    let write = |text: &str| -> Result<()> {
        fs::write(&shell, text)?;
        Ok(fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))?)
    };
    write("#!/bin/sh\nexec /bin/sh \"$@\"\n")?;
    let agent = format!("confine = false\nprograms.sh = '{}'", shell.display());
    let hub = keeping(&agent, "").await?;
    let client = Client::http(&hub);
    let below = hub.workspace().join("below");
    fs::create_dir(&below)?;
    let below = || ("workingDirectory", json!(below));
    assert_eq!(says(&client, COUNT).await?, "new 1");
    assert_eq!(sends(&client, COUNT, below()).await?, "new 1", "another directory");
    keeps(&client, 1).await?;
    assert_eq!(sends(&client, COUNT, below()).await?, "kept 2");
    let less = || ("permissions", json!("read-only"));
    assert_eq!(says(&client, COUNT).await?, "new 1", "back in the first directory");
    assert_eq!(sends(&client, COUNT, less()).await?, "new 1", "fewer permissions");
    assert_eq!(says(&client, COUNT).await?, "new 1", "more permissions");
    assert_eq!(says(&client, COUNT).await?, "kept 2");
    write("#!/bin/sh\n# another\nexec /bin/sh \"$@\"\n")?;
    assert_eq!(says(&client, COUNT).await?, "new 1", "another file");
    keeps(&client, 1).await?;
    eventually(SOON, || running(&hub, "sh -c echo ready").is_ok_and(|it| it == 1)).await?;
    for why in ["works in another directory", "permissions or the settings", "another file stands"]
    {
        assert!(hub.log().contains(why), "{why}: {}", hub.log());
    }
    Ok(())
}

#[tokio::test]
async fn concurrent_tasks_never_share_kept_program() -> Result<()> {
    let hub = keeping("confine = false", "").await?;
    let client = Client::http(&hub);
    assert_eq!(says(&client, COUNT).await?, "new 1");
    for _ in 0..3 {
        let slow = "keep k n=$((n+1)); echo $n; sleep 0.5";
        let (one, two) = tokio::try_join!(says(&client, slow), says(&client, slow))?;
        let kept = [&one, &two].iter().filter(|told| told.starts_with("kept")).count();
        assert_eq!(kept, 1, "{one}, {two}");
    }
    keeps(&client, 1).await?;
    eventually(SOON, || running(&hub, "sh -c echo ready").is_ok_and(|it| it <= 1)).await
}

#[tokio::test]
async fn kept_programs_respect_count_and_timeout() -> Result<()> {
    let hub = keeping("confine = false", "kept_programs = 3").await?;
    let client = Client::http(&hub);
    assert_eq!(says(&client, "keep-many 40").await?, "40 parked");
    keeps(&client, 3).await?;
    eventually(SOON, || running(&hub, "sleep 600").is_ok_and(|it| it == 3)).await?;
    assert_eq!(says(&client, "keep-badly").await?, "invalid invalid invalid invalid unavailable");

    let hub = keeping("confine = false", "kept_idle_ms = 300").await?;
    let client = Client::http(&hub);
    assert_eq!(says(&client, COUNT).await?, "new 1");
    no_program_left(&hub.data_dir(), SOON).await?;
    assert_eq!((says(&client, COUNT).await?.as_str(), kept(&client).await? <= 1), ("new 1", true));

    let hub = keeping("confine = false", "kept_programs = 0").await?;
    let refused = says(&Client::http(&hub), COUNT).await?;
    assert!(refused.contains("kept_programs"), "{refused}");
    no_program_left(&hub.data_dir(), SOON).await?;
    let hub = keeping("confine = false", "kept_memory_mb = 0").await?;
    let refused = says(&Client::http(&hub), COUNT).await?;
    assert!(refused.contains("kept_memory_mb"), "{refused}");
    no_program_left(&hub.data_dir(), SOON).await
}

#[tokio::test]
async fn kept_programs_yield_to_new_ones() -> Result<()> {
    let config = "
        [agents.guest]
        confine = false
        [agents.guest.grant.process.sleep]
        max_running = 2
        [agents.guest.limits]
        programs_per_second = 10000
    ";
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    assert_eq!(says(&client, "keep-many 6").await?, "6 parked");
    keeps(&client, 2).await?;
    assert_eq!(says(&client, "spawn-many 2").await?, "2 started", "none is one too many");
    assert_eq!(kept(&client).await?, 0);
    no_program_left(&hub.data_dir(), SOON).await
}

#[tokio::test]
async fn flooding_idle_program_is_ended() -> Result<()> {
    let hub = keeping("confine = false", "").await?;
    let client = Client::http(&hub);
    says(&client, "keep k after='sleep 0.5; while :; do echo flood; done'; echo set").await?;
    no_program_left(&hub.data_dir(), SOON).await?;
    assert_eq!(says(&client, COUNT).await?, "new 1");
    assert!(hub.log().contains("said too much while nobody listened"), "{}", hub.log());
    Ok(())
}

#[tokio::test]
async fn revocation_ends_kept_program() -> Result<()> {
    let hub = InProcessHub::builder().plugin("guest", test_guests()?).start().await?;
    grant(&hub, by_command(digest(&test_guests()?)?))?;
    let client = Client::http(&hub);
    let works = async || {
        says(&client, COUNT).await.is_ok_and(|told| told.ends_with('1') || told.starts_with("kept"))
    };
    eventually_async(Duration::from_secs(30), works).await?;
    keeps(&client, 1).await?;
    revoke(&hub)?;
    let begun = Instant::now();
    no_program_left(&hub.data_dir(), SOON).await?;
    assert!(begun.elapsed() < SOON);
    Ok(())
}

/// Program that sends each input line as a request on one connection to the hub; `later` sends it
/// after the task has ended.
const HOLDER: &str = r#"#!/usr/bin/env python3
import json, os, socket, sys, threading, time
it = socket.socket(socket.AF_UNIX)
it.connect(os.environ["A2A_HUB_SOCKET"])
answers = it.makefile()
late = []


def ask(request):
    it.sendall((request + "\n").encode())
    return answers.readline().strip()


def later(request):
    time.sleep(0.7)
    late.append(ask(request))


print("ready", flush=True)
for line in sys.stdin:
    line = line.strip()
    if line == "late":
        print(late.pop() if late else "nothing")
    elif line.startswith("later "):
        threading.Thread(target=later, args=(line[6:],), daemon=True).start()
        print("later")
    else:
        print(ask(line))
    print(".", flush=True)
"#;

#[tokio::test]
async fn kept_connection_acts_for_current_task() -> Result<()> {
    let tools = tempfile::tempdir()?;
    let holder = tools.path().join("holder");
    fs::write(&holder, HOLDER)?;
    fs::set_permissions(&holder, fs::Permissions::from_mode(0o755))?;
    let agent = format!("confine = false\nprograms.sh = '{}'", holder.display());
    let hub = keeping(&agent, "").await?;
    let client = Client::http(&hub);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_to("echo", "hello")});
    let served = async |line: String| -> Result<(Value, Value)> {
        let task = send(&client, "guest", &line).await?;
        let told = said(&task).split_once(' ').map_or("", |(_, told)| told).to_owned();
        Ok((task["id"].clone(), serde_json::from_str(&told).with_context(|| told.clone())?))
    };
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (task, answer) = served(format!("keep k {request}")).await?;
        assert_eq!(answer["result"]["metadata"]["parentTaskId"], task, "{answer}");
        seen.push(task);
    }
    assert_ne!(seen[0], seen[1]);
    assert_eq!(says(&client, &format!("keep k later {request}")).await?, "kept later");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let (_, refused) = served("keep k late".to_owned()).await?;
    let why = refused["error"]["message"].as_str().context("it was not refused")?;
    assert!(why.contains("kept for a later task"), "{why}");
    Ok(())
}
