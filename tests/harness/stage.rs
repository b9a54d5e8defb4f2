//! Common support of the end-to-end tests: a hub with the test guests, and ways to wait.

use crate::{
    Client, Compiled, Endpoints, TestHub, Updates, hub_binary, message_to, processes_with_marker,
    test_guests,
};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Grant of the test guests: everything except what no test grants. The CPU time is limited, so
/// that a spinning guest does not delay the suite, but sufficient for the others on a slow machine.
/// The circuit breaker allows many failures, since many tasks fail on purpose.
pub const GRANT: &str = "
    [breaker]
    failures = 1000
    [push]
    trusted_hosts = ['127.0.0.1']
    [agents.guest.grant.process.sleep]
    [agents.guest.grant.process.sh]
    [agents.guest.grant]
    memory = true
    files = true
    [agents.guest]
    max_running = 100
    [agents.guest.limits]
    cpu_ms = 3000
    events = 5000
";

/// Starts a hub with the test guests as the agent `guest`.
pub async fn hub_with_guest() -> Result<TestHub> {
    TestHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}

/// Test guests with another digest: the same code, with a note appended.
pub fn another_build(dir: &TempDir) -> Result<PathBuf> {
    let mut bytes = fs::read(test_guests()?)?;
    // Custom section of nine bytes: its name and its content.
    bytes.extend(b"\0\x09\x04note1.1\n");
    let path = dir.path().join("another.wasm");
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Test guests with a manifest that enables resuming interrupted tasks.
pub fn resuming_guests(dir: &Path) -> Result<PathBuf> {
    let (from, to) = (b"# Permissions that the test guests ask for", b"resume = true\n# ");
    let mut bytes = fs::read(test_guests()?)?;
    // The text also occurs in the module's data; the manifest's section is the last of the
    // component.
    let at = bytes.windows(from.len()).rposition(|window| window == from);
    bytes[at.context("the manifest begins in another way")?..][..to.len()].copy_from_slice(to);
    let component = dir.join("resuming.wasm");
    fs::write(&component, bytes)?;
    Ok(component)
}

/// Component of the echo agent, built beside the test guests.
pub fn echo() -> Result<PathBuf> {
    Ok(test_guests()?.with_file_name("echo.wasm"))
}

/// Authorization header of a client with the hub's token.
pub fn bearer(hub: &Endpoints) -> Result<String> {
    let token = fs::read_to_string(hub.data_dir().join("http-token"))?;
    Ok(format!("Bearer {}", token.trim()))
}

/// Home of a user whose hubs use precompiled components; compiling takes half a minute.
pub struct Home {
    // Declared before the directory: compiled components are kept before it is deleted.
    _compiled: Compiled,
    dir: TempDir,
}

impl Home {
    /// Path of the home.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Creates a home.
pub fn home() -> Result<Home> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join(".a2a-hub");
    DirBuilder::new().mode(0o700).create(&data)?;
    Ok(Home { _compiled: Compiled::lend(&hub_binary()?, &data)?, dir })
}

/// Configuration that lets an agent send requests to a port of this machine.
pub fn loopback(agent: &str, port: u16) -> String {
    format!(
        "[agents.{agent}.grant.http.\"127.0.0.1\"]\nscheme = 'http'\nprivate = true\nports = [{port}]\n"
    )
}

/// Sends a text and waits for the end of its task.
pub async fn send(client: &Client, agent: &str, text: &str) -> Result<Value> {
    client.call("message/send", message_to(agent, text)).await.context(text.to_owned())
}

/// Sends a text, and returns the task's id and its later updates.
pub async fn stream(client: &Client, agent: &str, text: &str) -> Result<(String, Updates)> {
    let mut updates = client.stream("message/stream", message_to(agent, text)).await?;
    let task = updates.next().await.context("the stream is empty")??;
    let id = task["id"].as_str().context("the first event is not the task")?;
    Ok((id.to_owned(), updates))
}

/// Output of the shell of the agent `guest`.
pub async fn sh(hub: &Endpoints, script: &str) -> Result<String> {
    let task = send(&Client::unix(hub), "guest", &format!("sh {script}")).await?;
    ensure!(state(&task) == "completed", "{script}: {task}");
    Ok(artifact(&task))
}

/// Waits for an event that is `wanted`.
pub async fn until(updates: &mut Updates, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    while let Some(event) = updates.next().await {
        let event = event?;
        if wanted(&event) {
            return Ok(event);
        }
    }
    bail!("the stream ended before that")
}

/// Subscribes to the events of the whole hub.
pub async fn listen(client: &Client) -> Result<Updates> {
    let mut events = client.stream("hub/events", json!({})).await?;
    let first = events.next().await.context("the stream is empty")??;
    assert_eq!((&first["kind"], &first["type"]), (&json!("hub-event"), &json!("subscribed")));
    Ok(events)
}

/// Waits for the event of this type about that agent.
pub async fn hear(events: &mut Updates, kind: &str, agent: &str) -> Result<Value> {
    let wanted = |event: &Value| event["type"] == kind && event["agentId"] == agent;
    until(events, wanted).await.with_context(|| format!("{kind} of {agent}"))
}

/// Task with this id.
pub async fn get(client: &Client, task: &str) -> Result<Value> {
    Ok(client.call("tasks/get", json!({ "id": task })).await?)
}

/// Name of the task's state.
pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

/// Text of the agent in the task's status.
pub fn said(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// Text of the task's first artifact.
pub fn artifact(task: &Value) -> String {
    let parts = task["artifacts"][0]["parts"].as_array();
    parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

/// Waits until no program of the hub with this data directory is left.
pub async fn no_program_left(data: &Path, within: Duration) -> Result<()> {
    let data = data.canonicalize()?;
    eventually(within, || processes_with_marker(&data).is_empty())
        .await
        .with_context(|| format!("programs are left: {:?}", processes_with_marker(&data)))
}

/// Waits until a condition holds.
pub async fn eventually(within: Duration, mut so: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + within;
    while !so() {
        if Instant::now() > deadline {
            bail!("it is not so after {within:?}");
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits until an asynchronous condition holds.
pub async fn eventually_async(within: Duration, so: impl AsyncFn() -> bool) -> Result<()> {
    let deadline = Instant::now() + within;
    while !so().await {
        if Instant::now() > deadline {
            bail!("it is not so after {within:?}");
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Prints a figure, for tests that run with `--no-capture`.
#[expect(clippy::print_stdout, reason = "figures are what such a test is for")]
pub fn tell(line: &str) {
    println!("{line}");
}

/// Waits until a task has the state; returns the task then.
pub async fn until_it_is(
    hub: &TestHub,
    task: &str,
    wanted: &str,
    within: Duration,
) -> Result<Value> {
    let client = Client::http(hub);
    let is = async || get(&client, task).await.is_ok_and(|task| state(&task) == wanted);
    let reached = eventually_async(within, is).await;
    let task = get(&client, task).await?;
    reached.with_context(|| format!("it is not {wanted}: {task}; {}", hub.log()))?;
    Ok(task)
}

/// Writes a program that anybody may run: a script with this text.
///
/// # Errors
///
/// Returns the error of the system.
pub fn write_program(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}
