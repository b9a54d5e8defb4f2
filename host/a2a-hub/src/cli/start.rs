//! `start`: the hub in the foreground, or in the background.

use super::{Exit, Global, block_on, client::Client, logs::line_text, render::span, run};
use crate::telemetry;
use a2a_hub_config::{Flag, Settings};
use a2a_hub_process::daemon::{self, Background};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// How long a hub may take to be up: the first start compiles the components it brings along.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// How long a hub that somebody else is starting may take, once ours could not be started.
const OTHERS_DEADLINE: Duration = Duration::from_secs(5);

/// How often it is looked whether the hub is up.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, Default, Args)]
pub(super) struct Start {
    /// Stay in the foreground and log to standard error
    #[arg(long)]
    foreground: bool,
    /// Serve HTTP on this port; 0 takes a free one [default: 8080]
    #[arg(long, value_name = "PORT", conflicts_with = "no_http")]
    http_port: Option<u16>,
    /// Do not serve HTTP
    #[arg(long)]
    no_http: bool,
    /// Let agents that may run programs work in this directory; may be given several times
    /// [default: the configuration's `workspaces`, or the current directory]
    #[arg(long = "workspace", value_name = "DIR")]
    workspaces: Vec<PathBuf>,
    /// Set by `start` on the process it puts into the background
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

pub(super) fn start(global: &Global, start: &Start) -> anyhow::Result<Exit> {
    let settings = settings(global, start)?;
    if !start.foreground {
        let announced = block_on(in_background(global, start, &settings))?;
        global.show(&announced, || Ok(format!("{}\n", announced_text(&announced)).into()))?;
        return Ok(Exit::Done);
    }
    if start.detached {
        daemon::leave_terminal();
    }
    let log = settings.config.data_dir()?.join(telemetry::LOG_FILE);
    telemetry::start(settings.config.logging, start.detached.then_some(log));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run::run(settings.config))?;
    // What was cut off must not hold up the end.
    runtime.shutdown_background();
    Ok(Exit::Done)
}

/// The configuration, with what the command line says on top and no path that depends on the current directory.
fn settings(global: &Global, start: &Start) -> anyhow::Result<Settings> {
    let port = start.http_port.map(|port| Flag {
        name: "--http-port",
        key: &["http", "port"],
        value: i64::from(port).into(),
    });
    let no_http = start.no_http.then(|| Flag {
        name: "--no-http",
        key: &["http", "enabled"],
        value: false.into(),
    });
    let mut settings = global.settings(port.into_iter().chain(no_http).collect())?;
    let config = &mut settings.config;
    config.workspaces.extend(start.workspaces.iter().cloned());
    if config.workspaces.is_empty() {
        config.workspaces.push(std::env::current_dir().context("find the current directory")?);
    }
    for workspace in &mut config.workspaces {
        *workspace = directory(workspace)
            .with_context(|| format!("use the workspace {}", workspace.display()))?;
    }
    for (agent, config) in &mut config.agents {
        for workspace in config.workspaces.iter_mut().flatten() {
            *workspace = directory(workspace).with_context(|| {
                format!("use the workspace {} of `agents.{agent}`", workspace.display())
            })?;
        }
    }
    config.data_dir = Some(std::path::absolute(config.data_dir()?)?);
    config.socket.path = std::path::absolute(&config.socket.path)?;
    if !config.socket.enabled && !config.http.enabled {
        bail!("start the hub: with neither the socket nor HTTP, nobody could talk to it");
    }
    Ok(settings)
}

/// The one name of a directory.
fn directory(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    if real.is_dir() { Ok(real) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Starts a hub in the background because somebody needs it now. If somebody else was faster, theirs will do.
pub(super) async fn on_demand(global: &Global) -> anyhow::Result<()> {
    let start = Start::default();
    let settings = settings(global, &start)?;
    match in_background(global, &start, &settings).await {
        Ok(announced) => {
            global.console().note(announced_text(&announced));
            Ok(())
        }
        Err(why) => {
            let deadline = Instant::now() + OTHERS_DEADLINE;
            while Client::to(&settings.config.socket.path).await.is_err() {
                if Instant::now() > deadline {
                    return Err(why);
                }
                sleep(LOOK).await;
            }
            Ok(())
        }
    }
}

/// Where a hub says that it is, for people.
fn announced_text(announced: &Value) -> String {
    let socket = announced["socket"].as_str().unwrap_or("no socket");
    let http = announced["http"].as_str().map(|at| format!(", http://{at}"));
    let http = http.unwrap_or_default();
    format!("the hub is up (process {}): {socket}{http}", announced["pid"])
}

async fn in_background(
    global: &Global,
    start: &Start,
    settings: &Settings,
) -> anyhow::Result<Value> {
    let config = &settings.config;
    if Client::to(&config.socket.path).await.is_ok() {
        bail!("start the hub: one is running already; `a2a-hub stop` stops it");
    }
    let dir = config.data_dir()?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let (log_path, log) = telemetry::open_log(dir).context("open the hub's log")?;
    let said_before = log.metadata()?.len();
    let exe = std::env::current_exe().context("find this program")?;
    let mut hub = Background::start(&exe, &arguments(global, start, settings, dir), None, log)?;
    until_up(&mut hub, dir, &log_path, said_before).await
}

/// Waits until the hub of the data directory `dir` is up, and returns what it says of itself. Its `log` tells why it is
/// not, from the byte `said_before` on.
pub(super) async fn until_up(
    hub: &mut Background,
    dir: &Path,
    log: &Path,
    said_before: u64,
) -> anyhow::Result<Value> {
    let deadline = Instant::now() + START_DEADLINE;
    loop {
        if let Some(status) = hub.ended()? {
            let why = tail(log, said_before)?;
            bail!("start the hub: it ended at once ({status})\n{}", cause(&why));
        }
        if let Some(run) = announced(dir, hub.id()) {
            return Ok(run);
        }
        if Instant::now() > deadline {
            let late = span(START_DEADLINE);
            bail!("start the hub: it is not up after {late}; see {}", log.display());
        }
        sleep(LOOK).await;
    }
}

fn arguments(global: &Global, start: &Start, settings: &Settings, dir: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["start".into(), "--foreground".into(), "--detached".into()];
    let mut option = |name: &str, value: &Path| args.extend([name.into(), value.into()]);
    option("--data-dir", dir);
    option("--socket", &settings.config.socket.path);
    if let Some(file) = &settings.file {
        option("--config", file);
    }
    if let Some(port) = start.http_port {
        option("--http-port", Path::new(&port.to_string()));
    }
    for workspace in &settings.config.workspaces {
        option("--workspace", workspace);
    }
    args.extend(start.no_http.then(|| "--no-http".into()));
    args.extend(global.verbose.then(|| "--verbose".into()));
    args
}

/// Where the hub says it is, once the hub with this process id is up.
fn announced(dir: &Path, pid: u32) -> Option<Value> {
    let text = fs::read_to_string(dir.join(run::RUN_FILE)).ok()?;
    let run: Value = serde_json::from_str(&text).ok()?;
    (run["pid"] == json!(pid)).then_some(run)
}

/// What was added to the log since it was `from` bytes long: all of it, if it was begun anew since.
fn tail(log: &Path, from: u64) -> anyhow::Result<String> {
    let mut log = File::open(log)?;
    let from = if log.metadata()?.len() < from { 0 } else { from };
    log.seek(SeekFrom::Start(from))?;
    let mut text = String::new();
    log.take(16 << 10).read_to_string(&mut text)?;
    Ok(text)
}

/// What of a log tells why a hub ended: its last words, and what it warned of before. All else tells what went well.
fn cause(log: &str) -> String {
    let lines = log.lines().filter_map(|line| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(event)) => {
            let level = event.get("level").and_then(Value::as_str);
            matches!(level, Some("WARN" | "ERROR")).then(|| line_text(line).words())
        }
        // The words of a hub that cannot go on are no event of its log.
        Ok(_) | Err(_) => Some(line.to_owned()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_hub_ended_is_told_without_what_went_well() {
        let log = concat!(
            r#"{"timestamp":"2026-01-31T12:00:00.1Z","level":"INFO","message":"agent joined","agent":"echo"}"#,
            "\n",
            r#"{"timestamp":"2026-01-31T12:00:00.2Z","level":"WARN","message":"a file is open to others","file":"x"}"#,
            "\na2a-hub: serve HTTP on 127.0.0.1:8080: Address already in use\n"
        );
        insta::assert_snapshot!(cause(log), @"
        2026-01-31 12:00:00 WARN  a file is open to others file=x
        a2a-hub: serve HTTP on 127.0.0.1:8080: Address already in use
        ");
    }
}
