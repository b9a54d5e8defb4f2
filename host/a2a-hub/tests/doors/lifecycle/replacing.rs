//! Test of a plug-in that is replaced 500 times while tasks run: each task runs on one build with
//! the grant, and no resource leaks.

use crate::{
    hub::InProcessHub,
    stage::{artifact, said, send, state, tell},
};
use a2a_hub_core::plugin::installation::NewGrant;
use a2a_hub_tests::{
    Client,
    grants::{by_command, digest, grant, plugin_when},
    resident_bytes, test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const ROUNDS: usize = 500;

/// Rounds after which one-time growth is over.
const SETTLED: usize = 100;

/// Maximal later growth of the hub's memory in bytes; a component's code takes four megabytes.
const MAX_GROWTH: u64 = 24 << 20;

/// Writes the test guests as another build of the same source, under a name.
fn build(dir: &TempDir, name: u8) -> Result<PathBuf> {
    let mut bytes = fs::read(test_guests()?)?;
    let word = b"build-is:";
    let at = bytes.windows(word.len()).position(|part| part == word);
    bytes[at.context("the guest has no such word")? + word.len()] = name;
    let path = dir.path().join(format!("{}.wasm", char::from(name)));
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Stops the work when dropped.
struct Stop<'a>(&'a Cell<bool>);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// Resources that could leak.
#[derive(Debug)]
struct Kept {
    memory: u64,
    threads: usize,
    descriptors: usize,
    files: usize,
}

fn kept(hub: &InProcessHub) -> Result<Kept> {
    let of = |what: &str| {
        Ok::<_, anyhow::Error>(fs::read_dir(format!("/proc/{}/{what}", hub.pid()))?.count())
    };
    let memory = resident_bytes(hub.pid()).context("the hub is gone")?;
    let (threads, descriptors) = (of("task")?, of("fd")?);
    Ok(Kept { memory, threads, descriptors, files: files(&hub.data_dir())? })
}

/// Counts all files and directories below a directory.
fn files(dir: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // A task's directory may disappear at any moment.
        let below = entry.file_type().is_ok_and(|kind| kind.is_dir());
        count += 1 + if below { files(&entry.path()).unwrap_or_default() } else { 0 };
    }
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn frequent_replacement_loses_and_leaks_nothing() -> Result<()> {
    let (hub, dir) = (InProcessHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let builds = [build(&dir, b'b')?, build(&dir, b'c')?];
    grant(&hub, NewGrant { dev: true, ..by_command(digest(&builds[0])?) })?;
    for one in &builds {
        // The hub compiles each build the first time.
        hub.plug("guest", one)?;
        let new = json!(digest(one)?);
        plugin_when(&client, |now| now["sha256"] == new).await?;
    }
    send(&client, "guest", "remember colour blue").await?;

    let (done, before) = (Cell::new(false), Cell::new(None));
    let replace = async {
        // On failure too, because the work would never stop otherwise.
        let _stop = Stop(&done);
        for round in 0..ROUNDS {
            if round == SETTLED {
                before.set(Some(kept(&hub)?));
            }
            hub.plug("guest", &builds[round % 2])?;
            let reload = json!({ "agentId": "guest" });
            Client::unix(&hub)
                .call("hub/agents/reload", reload)
                .await
                .context(format!("{round}"))?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let work = async |nth: usize| {
        let mut worked = 0;
        while !done.get() {
            let client = Client::http(&hub);
            let task = match (nth + worked) % 3 {
                0 => send(&client, "guest", "build 20").await?,
                1 => send(&client, "guest", "recall colour").await?,
                _ => send(&client, "guest", "sh echo hi").await?,
            };
            ensure!(state(&task) == "completed", "{task:#}");
            let (told, made) = (said(&task), artifact(&task));
            let as_it_should = match (nth + worked) % 3 {
                0 => told == made && ["b", "c"].contains(&told),
                1 => told == "blue",
                _ => made == "hi\n",
            };
            ensure!(as_it_should, "a task of two builds, or without its grant: {task:#}");
            worked += 1;
            sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, anyhow::Error>(worked)
    };
    let begun = Instant::now();
    let (replaced, one, two, three) = tokio::join!(replace, work(0), work(1), work(2));
    replaced?;
    let tasks = one? + two? + three?;
    let before = before.take().context("it was not looked at")?;
    // Work after the last responses ends meanwhile.
    sleep(Duration::from_secs(6)).await;
    let after = kept(&hub)?;
    tell(&format!(
        "{ROUNDS} builds and {tasks} tasks in {:.0?}; {before:?}, then {after:?}",
        begun.elapsed()
    ));
    ensure!(tasks > ROUNDS / 5, "only {tasks} tasks ran beside it");
    ensure!(after.memory < before.memory + MAX_GROWTH, "memory: {before:?}, then {after:?}");
    ensure!(after.threads <= before.threads + 8, "threads: {before:?}, then {after:?}");
    ensure!(after.descriptors <= before.descriptors + 8, "descriptors: {before:?}, then {after:?}");
    ensure!(after.files <= before.files + 8, "files: {before:?}, then {after:?}");
    let copies = fs::read_dir(hub.data_dir().join("components"))?.count();
    ensure!(copies == 1, "only the one that serves is kept: {copies}");
    Ok(())
}
