//! Tests of copies of a hub's store: made during operation, restored, and the reports about a store
//! that lost data.

use crate::{
    command_line::{Ran, command, finish},
    stage::{eventually, home, said, send},
};
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{fs, path::Path, time::Duration};

/// Runs a command in a home directory whose hub runs in the background.
async fn at(home: &Path, args: &[&str]) -> Result<Ran> {
    finish(command(&home.join("hub.sock"), home, args)?).await
}

async fn well(home: &Path, args: &[&str]) -> Result<String> {
    let ran = at(home, args).await?;
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    Ok(ran.stdout)
}

/// Replaces the parts of the output that differ between runs.
fn plain(told: &str, home: &Path) -> String {
    let told = told.replace(&home.display().to_string(), "~");
    let mut words: Vec<_> = told.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        if words[at].starts_with("KiB") || words[at].starts_with("bytes") {
            words[at - 1] = "N".to_owned();
        }
    }
    words.join(" ")
}

#[tokio::test]
async fn live_backup_is_restored_while_stopped() -> Result<()> {
    let dir = home()?;
    let (home, copy) = (dir.path(), dir.path().join("copy"));
    let copy = copy.to_str().context("no text")?;
    assert_eq!(at(home, &["backup", copy]).await?.code, Some(2), "there is no store yet");
    well(home, &["start", "--no-http"]).await?;
    well(home, &["send", "echo", "before"]).await?;
    let made = at(home, &["backup", copy]).await?;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    insta::assert_snapshot!(plain(&made.stdout, home), @"~/copy: 1 task, N KiB");
    assert!(made.stderr.contains("which are files in the data directory"), "{}", made.stderr);
    let twice = at(home, &["backup", copy]).await?;
    assert_eq!(twice.code, Some(2), "{}", twice.stdout);
    insta::assert_snapshot!(plain(&twice.stderr, home), @"error: back up the hub's store: write ~/copy: there is such a file; name another");
    well(home, &["send", "echo", "after"]).await?;

    let held = at(home, &["restore", copy]).await?;
    assert_eq!(held.code, Some(2), "{}", held.stdout);
    assert!(
        held.stderr.contains("another hub") && held.stderr.contains("stop it"),
        "{}",
        held.stderr
    );
    well(home, &["stop"]).await?;
    let restored = well(home, &["restore", copy]).await?;
    insta::assert_snapshot!(plain(&restored, home), @"
    restored: 1 task, N KiB
    the old store is kept as ~/.a2a-hub/hub.db.old
    ");
    well(home, &["start", "--no-http"]).await?;
    let tasks = well(home, &["tasks"]).await?;
    assert!(tasks.contains("before") && !tasks.contains("after"), "{tasks}");
    let doctor = at(home, &["doctor"]).await?.stdout;
    assert!(doctor.contains("store") && doctor.contains("sound"), "{doctor}");
    well(home, &["stop"]).await?;

    let shown = well(home, &["--format", "json", "backup", &format!("{copy}2")]).await?;
    let told: Value = serde_json::from_str(&shown)?;
    assert_eq!(told["tasks"], 1, "a hub that is stopped has a store as well: {shown}");
    fs::write(copy, "Dear diary")?;
    let refused = at(home, &["restore", copy]).await?;
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    Ok(())
}

/// Kills the hub of this data directory.
async fn kill(data: &Path) -> Result<()> {
    let run: Value = serde_json::from_str(&fs::read_to_string(data.join("run.json"))?)?;
    let pid = run["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    kill_process(pid.context("no pid")?, Signal::KILL)?;
    eventually(Duration::from_secs(10), || {
        fs::File::open(data.join("hub.lock")).is_ok_and(|lock| lock.try_lock().is_ok())
    })
    .await
}

#[tokio::test]
async fn cut_log_is_reported_everywhere_and_kept() -> Result<()> {
    let dir = home()?;
    let (home, data) = (dir.path(), dir.path().join(".a2a-hub"));
    let start = ["start", "--http-port", "0"];
    well(home, &start).await?;
    for _ in 0..3 {
        well(home, &["send", "echo", "hello"]).await?;
    }
    kill(&data).await?;
    let log = fs::OpenOptions::new().write(true).open(data.join("hub.db-wal"))?;
    log.set_len(log.metadata()?.len() / 2)?;
    let doctor = at(home, &["doctor"]).await?.stdout;
    assert!(doctor.contains("was cut short or damaged"), "{doctor}");
    let started = well(home, &["--format", "json", "start", "--http-port", "0"]).await?;
    let told: Value = serde_json::from_str(&started)?;
    let warning = told["warnings"][0].as_str().context(started.clone())?;
    assert!(warning.contains("hub.db-wal.cut"), "{warning}");
    let status = well(home, &["status"]).await?;
    let doctor = at(home, &["doctor"]).await?.stdout;
    let http = told["http"].as_str().context("no address")?;
    let health: Value = reqwest::get(format!("http://{http}/health")).await?.json().await?;
    assert_eq!(health["status"], "degraded", "{health}");
    for told in [status, doctor, health.to_string()] {
        assert!(told.contains("hub.db-wal.cut"), "{told}");
    }
    well(home, &["stop"]).await?;
    fs::remove_file(data.join("hub.db-wal.cut"))?;
    let again = at(home, &start).await?;
    assert!(!again.stderr.contains("warning"), "{}", again.stderr);
    well(home, &["stop"]).await?;
    Ok(())
}

#[tokio::test]
async fn empty_database_with_log_is_refused() -> Result<()> {
    let dir = home()?;
    let (home, data) = (dir.path(), dir.path().join(".a2a-hub"));
    well(home, &["start", "--no-http"]).await?;
    well(home, &["send", "echo", "hello"]).await?;
    let copy = home.join("copy").display().to_string();
    well(home, &["backup", &copy]).await?;
    kill(&data).await?;
    fs::write(data.join("hub.db"), "")?;
    for command in [&["start", "--no-http"][..], &["backup", &format!("{copy}2")]] {
        let refused = at(home, command).await?;
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains("restore a copy with"), "{}", refused.stderr);
    }
    assert!(at(home, &["doctor"]).await?.stdout.contains("the database is missing or empty"));
    well(home, &["restore", &copy]).await?;
    well(home, &["start", "--no-http"]).await?;
    assert!(well(home, &["tasks"]).await?.contains("hello"));
    well(home, &["stop"]).await?;
    Ok(())
}

#[tokio::test]
async fn missing_log_is_reported_as_warning() -> Result<()> {
    let dir = home()?;
    let (home, data) = (dir.path(), dir.path().join(".a2a-hub"));
    well(home, &["start", "--no-http"]).await?;
    well(home, &["send", "echo", "gone"]).await?;
    kill(&data).await?;
    fs::remove_file(data.join("hub.db-wal"))?;
    let doctor = at(home, &["doctor"]).await?.stdout;
    assert!(doctor.contains("its log is not beside it"), "{doctor}");
    let started = at(home, &["start", "--no-http"]).await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(
        started.stderr.contains("warning: the hub before was not stopped in order"),
        "{}",
        started.stderr
    );
    let status = well(home, &["status"]).await?;
    assert!(status.contains("hub.db-wal"), "{status}");
    let stopped = well(home, &["stop"]).await?;
    assert_eq!(stopped, "the hub is stopped\n");
    let again = at(home, &["start", "--no-http"]).await?;
    assert!(!again.stderr.contains("warning"), "{}", again.stderr);
    well(home, &["stop"]).await?;
    Ok(())
}

#[tokio::test]
async fn killed_hub_recovers_without_warnings() -> Result<()> {
    let mut hub = TestHub::start().await?;
    send(&Client::http(&hub), "echo", "hello").await?;
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let status = client.call("hub/status", serde_json::json!({})).await?;
    assert_eq!((&status["warnings"], &status["totalTasks"]), (&Value::Null, &serde_json::json!(1)));
    assert_eq!(said(&send(&client, "echo", "again").await?), "again");
    Ok(())
}
