//! Tests of the log: a reader that stalls or goes away must not block or end the hub.

use crate::{
    command_line::{Ran, command, finish},
    stage::{GRANT, eventually, home, send},
};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr},
    time::timeout,
};

/// A hub in the foreground, with the reader of its standard error.
struct Foreground {
    hub: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Foreground {
    /// Starts a hub with the test guests, and waits until it is up.
    async fn start(home: &Path, level: &str) -> Result<Self> {
        let plugins = home.join(".a2a-hub/plugins");
        std::fs::create_dir_all(&plugins)?;
        std::fs::copy(test_guests()?, plugins.join("guest.wasm"))?;
        std::fs::write(home.join(".a2a-hub/config.toml"), GRANT)?;
        let mut command =
            command(&home.join("hub.sock"), home, &["start", "--foreground", "--no-http"])?;
        command.env("A2A_HUB_LOGGING_LEVEL", level);
        let mut hub = command.spawn()?;
        let mut log = BufReader::new(hub.stderr.take().context("no stderr")?).lines();
        let up = async {
            while let Some(line) = log.next_line().await? {
                if line.contains("the hub is up") {
                    return Ok(());
                }
            }
            anyhow::bail!("the hub ended before it was up")
        };
        timeout(Duration::from_secs(60), up).await??;
        Ok(Self { hub, log })
    }
}

/// Stops a hub that is a child process of the test.
async fn stop(home: &Path, hub: &mut Child) -> Result<()> {
    let ended = async { Ok(timeout(Duration::from_secs(20), hub.wait()).await??) };
    let (stopped, ended) = tokio::try_join!(run(home, &["stop"]), ended)?;
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    assert!(ended.success(), "{ended}");
    Ok(())
}

async fn run(home: &Path, args: &[&str]) -> Result<Ran> {
    finish(command(&home.join("hub.sock"), home, args)?).await
}

#[tokio::test]
async fn closed_log_pipe_keeps_hub_running() -> Result<()> {
    let dir = home()?;
    let Foreground { mut hub, log } = Foreground::start(dir.path(), "debug").await?;
    drop(log);
    for _ in 0..5 {
        // The guest crashes, which the hub logs.
        let crashed = run(dir.path(), &["send", "guest", "panic"]).await?;
        assert_eq!(crashed.code, Some(1), "{}", crashed.stderr);
        let ran = run(dir.path(), &["send", "echo", "hello"]).await?;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    }
    stop(dir.path(), &mut hub).await
}

#[tokio::test]
async fn stalled_log_pipe_does_not_block() -> Result<()> {
    let dir = home()?;
    let Foreground { mut hub, log } = Foreground::start(dir.path(), "debug").await?;
    // More than a pipe's capacity, and no reader.
    for _ in 0..4 {
        let ran = run(dir.path(), &["send", "guest", "log-flood"]).await?;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let ran = run(dir.path(), &["send", "echo", "hello"]).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    stop(dir.path(), &mut hub).await?;
    drop(log);
    Ok(())
}

#[tokio::test]
async fn log_file_has_no_colours() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let run = async |args: &[&str]| {
        let mut command = command(&socket, dir.path(), args)?;
        command.env("A2A_HUB_LOGGING_PRETTY", "true").env("TERM", "xterm");
        finish(command).await
    };
    assert_eq!(run(&["start", "--no-http"]).await?.code, Some(0));
    assert_eq!(run(&["stop"]).await?.code, Some(0));
    let log = std::fs::read_to_string(dir.path().join(".a2a-hub/hub.log"))?;
    assert!(log.contains("the hub is up") && !log.contains('{'), "{log}");
    assert!(!log.contains('\x1b'), "{log}");
    Ok(())
}

#[tokio::test]
async fn late_start_failure_reports_only_cause() -> Result<()> {
    let dir = home()?;
    let data = dir.path().join(".a2a-hub");
    // Blocks the run file, which is written last: the agents have joined by then, and the log says
    // so.
    std::fs::create_dir_all(data.join("run.new"))?;
    let ran = run(dir.path(), &["start", "--no-http"]).await?;
    assert_eq!(ran.code, Some(2));
    let told = ran.stderr.as_str();
    assert!(told.starts_with("error: start the hub: write the run file "), "{told}");
    assert!(told.contains("hub.log") && !told.contains("agent joined"), "{told}");
    assert!(std::fs::read_to_string(data.join("hub.log"))?.contains("agent joined"));
    Ok(())
}

#[tokio::test]
async fn task_log_lines_have_span_fields() -> Result<()> {
    let config = GRANT.replace("    memory = true", "    memory = true\n    delegate = ['guest']");
    let config = config.replace("cpu_ms = 3000", "cpu_ms = 600");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let line = async |text: &str| {
        let logged = || hub.log().lines().find(|line| line.contains(text)).map(str::to_owned);
        eventually(Duration::from_secs(10), || logged().is_some()).await?;
        let line: Value = serde_json::from_str(&logged().context("no line")?)?;
        Ok::<_, anyhow::Error>(line["span"].clone())
    };
    let root = send(&client, "guest", "call guest log said from below").await?;
    let listed = client.call("hub/tasks/list", json!({ "workflow": root["id"] })).await?;
    let span = line("said from below").await?;
    assert_eq!(span["task"], listed[0]["id"], "{listed}");
    assert_eq!((&span["workflow"], &span["agent"]), (&root["id"], &json!("guest")));
    let alone = send(&client, "guest", "log said alone").await?;
    let span = line("said alone").await?;
    assert_eq!((&span["task"], span.get("workflow")), (&alone["id"], None), "that is its own");

    // The guest exceeded its CPU share and another agent has run, so it runs on low-priority
    // threads.
    send(&client, "guest", "spin").await?;
    send(&client, "echo", "hi").await?;
    let behind = send(&client, "guest", "log said behind others").await?;
    assert_eq!(line("said behind others").await?["task"], behind["id"]);
    Ok(())
}
