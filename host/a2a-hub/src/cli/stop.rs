//! `stop`: the hub finishes what is at work, within a deadline, and ends.

use super::{Exit, Global, block_on, client::Client, render::span, run::STOPPED_FILE};
use a2a_hub_process::daemon;
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};

/// How long a hub may take to end once it has cut off what was at work; it gives up on what hangs before that.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(super) struct Stop {
    /// Let tasks that are at work go on for so long; 0 cuts them off at once
    /// [default: the configuration's `stop.drain_ms`, which is also the most]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub(super) fn stop(global: &Global, stop: &Stop) -> anyhow::Result<Exit> {
    let config = global.settings(Vec::new())?.config;
    let drain = stop.timeout.map_or(config.stop.drain(), Duration::from_secs);
    block_on(async {
        let mut client = Client::connect(global).await?;
        let pid = client.pid.context("find the hub's process")?;
        let live = client.call("hub/status", json!({})).await?["activeTasks"].as_u64();
        drop(client);
        if let Some(live @ 1..) = live {
            let work = match drain {
                Duration::ZERO => "is cut off at once".to_owned(),
                drain => format!("has {} to finish", span(drain)),
            };
            let beside = format!("{live} task(s) are not over; what is at work {work}");
            global.console().note(beside);
        }
        let in_time = daemon::terminate(pid, drain).await.context("stop the hub")?;
        // Told a second time, it cuts off what is still at work.
        if !in_time && !daemon::terminate(pid, PATIENCE).await.context("stop the hub")? {
            let late = span(PATIENCE);
            bail!("stop the hub: process {pid} is still there {late} after its deadline");
        }
        let cut = config.data_dir().map(|dir| cut_off(dir, pid)).unwrap_or_default();
        global.show(&json!({ "stopped": pid, "cut": cut }), || {
            for task in &cut {
                let beside = format!("cut off: task {task}; what it had done by then is kept");
                global.console().note(beside);
            }
            Ok("the hub is stopped\n".into())
        })?;
        Ok(Exit::Done)
    })
}

/// The tasks that the hub with this process id says it cut off.
fn cut_off(dir: &Path, pid: i32) -> Vec<String> {
    let read = |text: String| serde_json::from_str::<Value>(&text).ok();
    let stopped = fs::read_to_string(dir.join(STOPPED_FILE)).ok().and_then(read);
    let stopped = stopped.filter(|stopped| stopped["pid"] == json!(pid)).unwrap_or_default();
    serde_json::from_value(stopped["cut"].clone()).unwrap_or_default()
}
