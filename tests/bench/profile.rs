//! Profile of the hub: CPU time by thread, and by function if `perf` is installed.

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

/// Samples per second: not a multiple of the hub's ticks.
const HERTZ: &str = "1999";

/// Unit of /proc in microseconds: Linux reports a hundred ticks per second to every program.
const TICK_US: f64 = 10_000.0;

/// Number of lines of a profile that are printed.
const LINES: usize = 25;

/// Process under observation.
pub(crate) struct Watch {
    pid: u32,
    before: BTreeMap<String, u64>,
    perf: Option<(Child, TempDir)>,
}

impl Watch {
    /// Observes the process for that duration.
    pub(crate) fn start(pid: u32, duration: Duration) -> Result<Self> {
        let before = ticks(pid)?;
        Ok(Self { pid, before, perf: record(pid, duration)? })
    }

    /// Prints the CPU time of each thread since the start, per piece of work, and the functions it
    /// went to.
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

/// Samples the process by `perf`, if installed.
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
            // Cut to the width of a terminal, since names of generic functions are very long.
            let words = line.split_whitespace().filter(|word| *word != "-").collect::<Vec<_>>();
            println!("{:.100}", words.join("  "));
        }
        println!();
    }
    Ok(())
}

/// Profile sorted by `by`, one line each, the largest first.
#[expect(clippy::disallowed_methods, reason = "perf is a program")]
async fn perf_report(dir: &Path, by: &str) -> Result<String> {
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--no-children", "--percent-limit", "0.5", "--sort", by]);
    let output = perf.arg("--input").arg(recording_in(dir)).stderr(Stdio::null()).output().await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    Ok(told.collect::<Vec<_>>().join("\n"))
}

/// CPU time of all threads of a process.
pub(crate) fn spent(pid: u32) -> Result<Duration> {
    let ticks = ticks(pid)?.values().sum::<u64>();
    Ok(Duration::from_secs_f64(ticks as f64 * TICK_US / 1e6))
}

/// CPU time of each thread by its name, in the kernel's ticks.
fn ticks(pid: u32) -> Result<BTreeMap<String, u64>> {
    let mut spent = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("the server is gone")? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else { continue };
        // The name is in parentheses and may contain any; user and system time are fields 12 and 13
        // after it.
        let Some((head, rest)) = stat.rsplit_once(") ") else { continue };
        let name = head.split_once('(').map_or("", |(_, name)| name);
        let times = rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        *spent.entry(name.to_owned()).or_default() += times.sum::<u64>();
    }
    Ok(spent)
}
