//! Measures the overhead of hub and adapter on a turn of each vendor's program, whose model answers
//! at once. The result is printed and not asserted, because it depends on the machine: `cargo xtask
//! test --run-ignored only --no-capture what_a_turn_adds`.

#![expect(clippy::print_stdout, reason = "a measurement is run for what it prints")]

use super::vendors::{CLAUDE, CODEX, GEMINI, VIBE, Vendor};
use crate::stage::{state, write_program};
use a2a_hub_tests::message_to;
use anyhow::{Context as _, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::{fs, path::Path, time::Duration};
use tokio::time::sleep;

/// Number of measured turns of one conversation, after the first two.
const TURNS: usize = 15;

/// Pause between an answer and the next question.
const READING: Duration = Duration::from_millis(200);

/// Script in the program's place that relays both directions and logs the time of each chunk in
/// nanoseconds.
const RELAY: &str = r"#!/usr/bin/env python3
import os, subprocess, sys, threading, time
program = subprocess.Popen(['PROGRAM', *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def hand_on(what, source, sink):
    while said := os.read(source, 1 << 16):
        with open('LOG', 'a') as log:
            log.write(f'{what} {time.monotonic_ns()}\n')
        while said:
            said = said[os.write(sink, said):]
    os.close(sink)
threading.Thread(target=hand_on, args=('in', 0, program.stdin.fileno()), daemon=True).start()
hand_on('out', program.stdout.fileno(), 1)
os._exit(program.wait())
";

/// Creates a relay to the program that `path` contains.
fn relay(vendor: &Vendor, path: &std::ffi::OsStr, dir: &Path) -> Result<()> {
    let places = std::env::split_paths(path).map(|place| place.join(vendor.program));
    let program = { places }.find(|program| program.is_file()).context("not installed")?;
    let script = RELAY.replace("PROGRAM", &program.display().to_string());
    let relay = dir.join(vendor.program);
    Ok(write_program(&relay, &script.replace("LOG", &dir.join("said").display().to_string()))?)
}

/// Returns the times of the program's first input and last output in the log `said`, in
/// milliseconds.
fn alone(said: &str) -> Option<(f64, f64)> {
    let at = |line: &str| Some(line.split(' ').nth(1)?.parse::<f64>().ok()? / 1e6);
    let first = said.lines().find(|line| line.starts_with("in "))?;
    let last = said.lines().rfind(|line| line.starts_with("out "))?;
    Some((at(first)?, at(last)?))
}

/// Returns the time of the relay's clock, in milliseconds.
fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

#[tokio::test]
#[ignore = "a measurement"]
async fn what_a_turn_adds() -> Result<()> {
    println!(
        "a turn of a kept program, medians of {TURNS}, in ms: before its first word, by itself, after its last"
    );
    for vendor in [CLAUDE, CODEX, GEMINI, VIBE] {
        let dir = tempfile::tempdir()?;
        let path = vendor.path()?;
        relay(&vendor, &path, dir.path())?;
        let before = std::env::split_paths(&path);
        let path = std::env::join_paths([dir.path().to_owned()].into_iter().chain(before))?;
        let stage = vendor.stage_on(path, Some(super::KEY), "").await?;
        let first = stage.send("hello").await?;
        let (mut turns, log) = (Vec::new(), dir.path().join("said"));
        for turn in 0..=TURNS {
            let mut message = message_to(vendor.agent, &format!("and {turn}"));
            message["message"]["contextId"] = first["contextId"].clone();
            // A user reads the answer first; meanwhile the hub cleans up after the turn.
            sleep(READING).await;
            fs::write(&log, "")?;
            let begun = now();
            let task: Value = stage.client().call("message/send", message).await?;
            let ended = now();
            ensure!(state(&task) == "completed", "{task}");
            let said = fs::read_to_string(&log)?;
            let (first, last) = alone(&said).context("it was not asked")?;
            turns.push([first - begun, last - first, ended - last]);
        }
        turns.remove(0);
        let middle = |part: usize| {
            let mut parts: Vec<_> = turns.iter().map(|turn| turn[part]).collect();
            parts.sort_by(f64::total_cmp);
            parts[parts.len() / 2]
        };
        let [before, alone, after] = [0, 1, 2].map(middle);
        let percent = (before + after) / alone * 100.0;
        println!(
            "{:<10}{before:>8.1}{alone:>8.1}{after:>8.1}   {percent:.0} % more",
            vendor.program
        );
    }
    Ok(())
}
