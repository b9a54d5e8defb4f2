//! `start`: the hub in the foreground, or in the background.

use super::{
    Exit, Global, block_on,
    client::Client,
    failure::{BLAMES, CommandError, HUB_NOT_RUNNING},
    hub_log::{self, Sink},
    log_line::LogScreen,
    owner::must_be_the_operator,
    render::{list, text},
    run::{Invocation, run},
    running_hub,
};
use a2a_hub_config::{Flag, Settings};
use a2a_hub_core::span::Span;
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
    sync::Arc,
    thread::available_parallelism,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// How long a hub may take to be up: the first start compiles the components it brings along.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(60);

/// How long a hub that somebody else is starting may take, once ours could not be started.
const OTHERS_DEADLINE: Duration = Duration::from_secs(5);

/// What an agent's program may not do: it would be the operator of the hub that it starts.
const STARTING: &str = "start a hub";

/// How often it is looked whether the hub is up.
const LOOK: Duration = Duration::from_millis(10);

/// How much of the log's end is read for why a hub ended, in bytes.
const TAIL: u64 = 16 << 10;

#[derive(Clone, Debug, Default, Args)]
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
    /// Let agents that may run programs work in this directory, besides the configuration's `workspaces`; may be given several times
    /// [default: those, or the current directory]
    #[arg(long = "workspace", value_name = "DIR")]
    workspaces: Vec<PathBuf>,
    /// Set by `start` on the process it puts into the background
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

pub(super) fn start(global: &Global, start: &Start) -> anyhow::Result<Exit> {
    must_be_the_operator(STARTING)?;
    let settings = settings(global, start)?;
    if !start.foreground {
        let announced = block_on(in_background(global, start, &settings))?;
        global.show(&announced, || Ok(format!("{}\n", announced_text(&announced)).into()))?;
        warn_of(global, &announced);
        return Ok(Exit::Done);
    }
    if start.detached {
        daemon::leave_terminal();
    }
    let logging = settings.config.logging;
    let sink = if start.detached {
        Sink::File(settings.config.data_dir()?.join(hub_log::LOG_FILE))
    } else if global.console().columns_beside().is_some() {
        Sink::Terminal(Box::new(LogScreen::new(global.console(), logging.pretty)))
    } else {
        Sink::StandardError
    };
    let log = hub_log::start(logging, sink).context("start the log")?;
    let invocation = Invocation {
        arguments: std::env::args_os().skip(1).map(|arg| arg.into_string().ok()).collect(),
        directory: std::env::current_dir().context("find the current directory")?,
        detached: start.detached,
    };
    let (global, start) = (global.clone(), start.clone());
    let read = move || match self::settings(&global, &start) {
        Ok(settings) => Ok(settings.config),
        Err(why) => Err(format!("{why:#}")),
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers()).enable_all().build()?;
    let hub = run(settings.config, Arc::new(read), log.set_level(), invocation);
    runtime.block_on(hub)?;
    // What was cut off must not hold up the end.
    runtime.shutdown_background();
    Ok(Exit::Done)
}

/// How many threads talk with clients and run short guests: one for every two processors. The thread that writes SQLite, what agents start and guests of
/// low priority have the others; and threads that share a task wake one another for each step of it, which takes longer than the step.
fn workers() -> usize {
    available_parallelism().map_or(1, |processors| usize::from(processors).div_ceil(2))
}

/// The configuration, with what the command line says on top and no path that depends on the current directory.
pub(super) fn settings(global: &Global, start: &Start) -> anyhow::Result<Settings> {
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

/// Connects to the hub, which is started first if that is wanted and it does not run.
pub(super) async fn client(global: &Global, start: bool) -> anyhow::Result<Client> {
    if !start {
        return Client::connect(global).await;
    }
    // Somebody else may be starting it.
    match Client::connect_within(global, START_DEADLINE).await {
        Err(why) if CommandError::of(&why).is(HUB_NOT_RUNNING) => {
            on_demand(global).await?;
            Client::connect_within(global, START_DEADLINE).await
        }
        other => other,
    }
}

/// Starts a hub in the background because somebody needs it now. If somebody else was faster, theirs will do.
async fn on_demand(global: &Global) -> anyhow::Result<()> {
    let start = Start::default();
    let settings = settings(global, &start)?;
    match in_background(global, &start, &settings).await {
        Ok(announced) => {
            global.console().note(announced_text(&announced));
            warn_of(global, &announced);
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
pub(super) fn announced_text(announced: &Value) -> String {
    let socket = announced["socket"].as_str().unwrap_or("no socket");
    let http = announced["http"].as_str().map(|at| format!(", http://{at}"));
    let http = http.unwrap_or_default();
    format!("the hub is up (process {}): {socket}{http}", announced["pid"])
}

/// Says what a hub that has just started tells whoever looks after it.
pub(super) fn warn_of(global: &Global, announced: &Value) {
    for warning in list(&announced["warnings"]) {
        global.console().note(format!("warning: {}", text(warning)));
    }
}

async fn in_background(
    global: &Global,
    start: &Start,
    settings: &Settings,
) -> anyhow::Result<Value> {
    must_be_the_operator(STARTING)?;
    let config = &settings.config;
    if Client::to(&config.socket.path).await.is_ok() {
        bail!(
            "start the hub: one is running already, and listens on {}; `a2a-hub stop` stops it, and `--socket` has another listen elsewhere",
            config.socket.path.display()
        );
    }
    let dir = config.data_dir()?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let (log_path, log) = hub_log::open_log(dir).context("open the hub's log")?;
    let said_before = log.metadata()?.len();
    let exe = std::env::current_exe().context("find this program")?;
    let args = arguments(global, start, settings, dir)?;
    let mut hub = Background::start(&exe, &args, None, None, log)?;
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
            let said = tail(log, said_before)?;
            let why = last_words(&said).unwrap_or_else(|| format!("it ended with {status}"));
            bail!("start the hub: {why}\nwhat it did before is in its log, {}", log.display());
        }
        if let Some(run) = announced(dir, hub.id()) {
            return Ok(run);
        }
        if Instant::now() > deadline {
            let late = Span(START_DEADLINE);
            bail!("start the hub: it is not up after {late}; see {}", log.display());
        }
        sleep(LOOK).await;
    }
}

fn arguments(
    global: &Global,
    start: &Start,
    settings: &Settings,
    dir: &Path,
) -> io::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = vec!["start".into(), "--foreground".into(), "--detached".into()];
    let mut option = |name: &str, value: &Path| args.extend([name.into(), value.into()]);
    option("--data-dir", dir);
    // What the file says of it may be another when the hub is started again.
    if settings.is_above_the_file(&["socket", "path"]) {
        option("--socket", &settings.config.socket.path);
    }
    if let Some(file) = &settings.file {
        option("--config", file);
    }
    if let Some(port) = start.http_port {
        option("--http-port", Path::new(&port.to_string()));
    }
    // Only those of the command line: the file's own may be others when it is read again.
    for workspace in &start.workspaces {
        option("--workspace", &directory(workspace)?);
    }
    args.extend(start.no_http.then(|| "--no-http".into()));
    args.extend(global.verbose.then(|| "--verbose".into()));
    Ok(args)
}

/// Where the hub says it is, once the hub with this process id is up.
fn announced(dir: &Path, pid: u32) -> Option<Value> {
    let run = running_hub::written_down(dir).ok()?;
    (run["pid"] == json!(pid)).then_some(run)
}

/// The end of what was added to the log since it was `from` bytes long: of all of it, if it was begun anew since.
fn tail(log: &Path, from: u64) -> anyhow::Result<String> {
    let mut log = File::open(log)?;
    let end = log.metadata()?.len();
    let from = if end < from { 0 } else { from };
    log.seek(SeekFrom::Start(from.max(end.saturating_sub(TAIL))))?;
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Why a hub ended, of all that it `said`: what a command that fails says last, or else what is no line of the log, such as
/// where it panicked.
fn last_words(said: &str) -> Option<String> {
    let lines: Vec<_> = said.lines().collect();
    let words = match lines.iter().rposition(|line| line.starts_with(BLAMES)) {
        Some(at) => lines[at..].join("\n").replacen(BLAMES, "", 1),
        None => {
            let unlogged = lines.into_iter().filter(|line| !line.starts_with('{'));
            unlogged.collect::<Vec<_>>().join("\n")
        }
    };
    Some(words.trim().to_owned()).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_failure_is_told_without_the_log_before_it() {
        let log = "{\"level\":\"INFO\",\"message\":\"agent joined\"}\n";
        let told = |said: &str| last_words(&format!("{log}{log}{said}")).unwrap_or_default();
        assert_eq!(
            told("a2a-hub: make the plugins folder: File exists\n"),
            "make the plugins folder: File exists"
        );
        assert_eq!(
            told("a2a-hub: read the file: line 1\n  |\n1 | x\n"),
            "read the file: line 1\n  |\n1 | x"
        );
        assert_eq!(told("a2a-hub: first\na2a-hub: last\n"), "last");
        assert_eq!(
            told("thread 'main' panicked at x.rs:\nboom\n"),
            "thread 'main' panicked at x.rs:\nboom"
        );
        assert_eq!(told(""), "", "it was killed");
    }
}
