//! Where the hub's time goes: by thread always, and by function where `perf` is installed.

use anyhow::{Context as _, Result};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Samples a second: no multiple of the hub's own ticks.
const HERTZ: &str = "1999";

/// What /proc counts in, in microseconds: Linux tells every program that it ticks a hundred times a second.
const TICK_US: f64 = 10_000.0;

/// How many lines of a profile are worth reading.
const LINES: usize = 25;

/// A process that is being watched.
pub(crate) struct Watch {
    pid: u32,
    before: BTreeMap<String, u64>,
    perf: Option<(Child, TempDir)>,
}

impl Watch {
    /// Watches the process for that long.
    pub(crate) fn start(pid: u32, duration: Duration) -> Result<Self> {
        let before = ticks(pid)?;
        Ok(Self { pid, before, perf: record(pid, duration)? })
    }

    /// Prints what the process's threads did since, for each of that many pieces of work, and in which functions.
    pub(crate) async fn print(self, title: &str, pieces: f64) -> Result<()> {
        let after = ticks(self.pid)?;
        println!("\nprofile of {title}: time on the processor, in us each");
        let mut spent: Vec<_> = after
            .into_iter()
            .map(|(thread, ticks)| {
                let ticks = ticks - self.before.get(&thread).copied().unwrap_or_default();
                (thread, ticks as f64 * TICK_US)
            })
            .collect();
        spent.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        for (thread, micros) in spent.iter().filter(|(_, micros)| *micros > 0.0) {
            println!("{:>8.1}  thread {thread}", micros / pieces);
        }
        match self.perf {
            Some((recording, dir)) => report(recording, dir.path()).await,
            None => {
                println!("functions: install `perf` (Debian: linux-perf) and run this again");
                Ok(())
            }
        }
    }
}

fn recording_in(dir: &Path) -> PathBuf {
    dir.join("perf.data")
}

/// Samples the process, if there is a `perf` to do it.
#[expect(clippy::disallowed_methods, reason = "perf is a program")]
fn record(pid: u32, duration: Duration) -> Result<Option<(Child, TempDir)>> {
    let dir = tempfile::tempdir()?;
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "--event", "cpu-clock", "--freq", HERTZ]);
    perf.arg("--output").arg(recording_in(dir.path())).args(["--pid", &pid.to_string()]);
    perf.args(["--", "sleep", &duration.as_secs_f64().to_string()]);
    perf.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    Ok(perf.spawn().ok().map(|child| (child, dir)))
}

async fn report(mut recording: Child, dir: &Path) -> Result<()> {
    recording.wait().await.context("failed to wait for perf")?;
    for by in ["dso", "dso,symbol"] {
        for line in perf_report(dir, by).await?.lines().take(LINES) {
            // As wide as a terminal: the names of generic functions are endless.
            let words = line.split_whitespace().filter(|word| *word != "-").collect::<Vec<_>>();
            println!("{:.100}", words.join("  "));
        }
        println!();
    }
    Ok(())
}

/// The profile, a line for each of what it is sorted by, the largest first.
#[expect(clippy::disallowed_methods, reason = "perf is a program")]
async fn perf_report(dir: &Path, by: &str) -> Result<String> {
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--no-children", "--percent-limit", "0.5", "--sort", by]);
    let output = perf.arg("--input").arg(recording_in(dir)).stderr(Stdio::null()).output().await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    Ok(told.collect::<Vec<_>>().join("\n"))
}

/// What a process's threads have spent on the processor.
pub(crate) fn spent(pid: u32) -> Result<Duration> {
    let ticks = ticks(pid)?.values().sum::<u64>();
    Ok(Duration::from_secs_f64(ticks as f64 * TICK_US / 1e6))
}

/// What each thread has spent, by its name, in the kernel's ticks.
fn ticks(pid: u32) -> Result<BTreeMap<String, u64>> {
    let mut spent = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("the server is gone")? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else { continue };
        // The name stands in brackets and may hold any; user and system time are the 12th and 13th field after it.
        let Some((head, rest)) = stat.rsplit_once(") ") else { continue };
        let name = head.split_once('(').map_or("", |(_, name)| name);
        let times = rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        *spent.entry(name.to_owned()).or_default() += times.sum::<u64>();
    }
    Ok(spent)
}
