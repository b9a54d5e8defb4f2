//! `start`: starts the hub in the foreground or in the background.

use super::run::{Invocation, run};
use crate::{
    Exit, Global, block_on,
    client::{
        hub_client::{Client, START_POLL_INTERVAL},
        owner::refuse_in_agent_tree,
        running_hub,
    },
    log_files::{self, Sink},
    ui::{
        failure::{BLAMES, CommandError, HUB_NOT_RUNNING},
        render::{list, shell_word, text},
    },
};
use a2a_hub_config::{Flag, Settings};
use a2a_hub_core::text::duration::Span;
use a2a_hub_process::daemon::{self, Background};
use a2a_hub_terminal::log_line::LogScreen;
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
use tokio::time::{Instant, sleep, timeout};

/// Time that a hub has to start: the first start compiles the built-in components.
pub(crate) const START_DEADLINE: Duration = Duration::from_secs(60);

/// Time that a concurrent start by another process has, after this one's start failed.
const OTHERS_DEADLINE: Duration = Duration::from_secs(5);

/// Operation as an error names it: an agent's program may not start a hub, because it would be the
/// operator of that hub.
const STARTING: &str = "start a hub";

/// Interval at which the starting hub is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Number of bytes at the log's end that are searched for the reason of a failed start.
const TAIL: u64 = 16 << 10;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StartArgs {
    /// Run in the foreground and log to standard error
    #[arg(long)]
    foreground: bool,
    /// TCP port of the HTTP server; 0 selects a free port [default: 8080]
    #[arg(long, value_name = "PORT", conflicts_with = "no_http")]
    http_port: Option<u16>,
    /// Do not start the HTTP server
    #[arg(long)]
    no_http: bool,
    /// Directory in which agents may run programs, in addition to `workspaces` of the
    /// configuration. May be given several times [default: the current directory if `workspaces` is
    /// empty]
    #[arg(long = "workspace", value_name = "DIR")]
    workspaces: Vec<PathBuf>,
    /// Set by `start` on the background process
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

pub(crate) fn start(global: &Global, start: &StartArgs) -> anyhow::Result<Exit> {
    refuse_in_agent_tree(STARTING)?;
    let settings = settings(global, start)?;
    if !start.foreground {
        if let Some(run) = block_on(already_up(start, &settings))? {
            global.show(&run, || {
                let at = announced_text(&run).replacen("is up", "is already up", 1);
                Ok(format!("{at}\n").into())
            })?;
            return Ok(Exit::Done);
        }
        let announced = block_on(in_background(global, start, &settings))?;
        global.show(&announced, || Ok(format!("{}\n", announced_text(&announced)).into()))?;
        warn_of(global, &announced);
        note_missing_workspaces(global, &settings.config);
        return Ok(Exit::Done);
    }
    if start.detached {
        daemon::leave_terminal();
    }
    let logging = settings.config.logging;
    let sink = if start.detached {
        Sink::File(settings.config.data_dir()?.join(log_files::LOG_FILE))
    } else if global.console().stderr_columns().is_some() {
        Sink::Terminal(Box::new(LogScreen::new(global.console(), logging.pretty)))
    } else {
        Sink::StandardError
    };
    let log = log_files::start(logging, sink).context("start the log")?;
    for warning in settings.config.missing_workspaces() {
        tracing::warn!("{warning}");
    }
    let invocation = Invocation {
        arguments: std::env::args_os().skip(1).collect(),
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
    // A cancelled task must not delay the exit.
    runtime.shutdown_background();
    Ok(Exit::Done)
}

/// Returns the run file of the hub that this command would start again; `None` if none runs, or if
/// options ask for another one.
async fn already_up(start: &StartArgs, settings: &Settings) -> anyhow::Result<Option<Value>> {
    if start.http_port.is_some() || start.no_http || !start.workspaces.is_empty() {
        return Ok(None);
    }
    let path = &settings.config.socket.path;
    let run = running_hub::read_if_running(settings.config.data_dir()?);
    let run = run.filter(|run| running_hub::socket(run).as_ref() == Some(path));
    let is_up = run.is_some() && Client::to(path).await.is_ok();
    Ok(run.filter(|_| is_up))
}

/// Number of worker threads for clients and short guests: half of the processors. The other half is
/// for the SQLite writer thread, programs of agents and low-priority guests. Worker threads that
/// share a task also wake one another for each step, and a wake-up takes longer than a step.
fn workers() -> usize {
    available_parallelism().map_or(1, |processors| usize::from(processors).div_ceil(2))
}

/// Loads the configuration with the command line on top, and makes its paths independent of the
/// current directory.
pub(crate) fn settings(global: &Global, start: &StartArgs) -> anyhow::Result<Settings> {
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
    for workspace in &start.workspaces {
        let real = fs::canonicalize(workspace);
        real.with_context(|| format!("use the workspace {}", workspace.display()))?;
    }
    config.workspaces.extend(start.workspaces.iter().cloned());
    if config.workspaces.is_empty() {
        config.workspaces.push(std::env::current_dir().context("find the current directory")?);
    }
    for workspace in &mut config.workspaces {
        *workspace = directory(workspace)
            .with_context(|| format!("use the workspace {}", workspace.display()))?;
    }
    // The first one is the default directory of programs.
    config.workspaces.sort_by_key(|workspace| !workspace.is_dir());
    for (agent, config) in &mut config.agents {
        for workspace in config.workspaces.iter_mut().flatten() {
            *workspace = directory(workspace).with_context(|| {
                format!("use the workspace {} of `agents.{agent}`", workspace.display())
            })?;
        }
        config.workspaces.iter_mut().for_each(|all| all.sort_by_key(|dir| !dir.is_dir()));
    }
    config.data_dir = Some(std::path::absolute(config.data_dir()?)?);
    config.socket.path = std::path::absolute(&config.socket.path)?;
    for (label, path, flag) in [
        ("data directory", config.data_dir()?, "--data-dir"),
        ("socket", &config.socket.path, "--socket"),
    ] {
        if path.to_str().is_none() {
            bail!(
                "start the hub: the path of its {label}, {}, is not UTF-8, as it must be; name another with `{flag}`",
                path.display()
            );
        }
    }
    if !config.socket.enabled && !config.http.enabled {
        bail!(
            "start the hub: both the socket and HTTP are disabled, so no client could connect; set \
             `socket.enabled` or `http.enabled`"
        );
    }
    Ok(settings)
}

/// Canonical path of a directory; the absolute path of one that does not exist: the hub warns of
/// it, and a list without it would grant more.
fn directory(path: &Path) -> io::Result<PathBuf> {
    let real = match fs::canonicalize(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return std::path::absolute(path),
        real => real?,
    };
    if real.is_dir() { Ok(real) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Connects to the hub; if `start` is set and no hub runs, starts one first.
pub(crate) async fn client(global: &Global, start: bool) -> anyhow::Result<Client> {
    if !start {
        return Client::connect(global).await;
    }
    // Another process may be starting the hub.
    match Client::connect_within(global, START_DEADLINE).await {
        Err(why) if CommandError::from_error(&why).is(HUB_NOT_RUNNING) => {
            on_demand(global).await?;
            Client::connect_within(global, START_DEADLINE).await
        }
        other => other,
    }
}

/// Starts a background hub on demand. If another process starts one at the same time, that one is
/// used.
async fn on_demand(global: &Global) -> anyhow::Result<()> {
    let start = StartArgs::default();
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
                sleep(POLL_INTERVAL).await;
            }
            Ok(())
        }
    }
}

/// Formats a started hub's addresses for people.
pub(crate) fn announced_text(announced: &Value) -> String {
    let socket = running_hub::socket(announced);
    let socket = socket.map_or("no socket".to_owned(), |socket| socket.display().to_string());
    let scheme = if announced["tls"] == true { "https" } else { "http" };
    let http = announced["http"].as_str().map(|at| format!(", {scheme}://{at}"));
    let http = http.unwrap_or_default();
    format!("the hub is up (process {}): {socket}{http}", announced["pid"])
}

/// Prints the warnings of a hub that has just started.
pub(crate) fn warn_of(global: &Global, announced: &Value) {
    for warning in list(&announced["warnings"]) {
        global.console().note(format!("warning: {}", text(warning)));
    }
}

/// Notes the workspaces that do not exist.
pub(crate) fn note_missing_workspaces(global: &Global, config: &a2a_hub_config::Config) {
    for warning in config.missing_workspaces() {
        global.console().note(format!("warning: {warning}"));
    }
}

async fn in_background(
    global: &Global,
    start: &StartArgs,
    settings: &Settings,
) -> anyhow::Result<Value> {
    refuse_in_agent_tree(STARTING)?;
    let config = &settings.config;
    if Client::to(&config.socket.path).await.is_ok() {
        let way = match start.workspaces.first() {
            Some(dir) => format!(
                "`a2a-hub workspace add {}` gives it another workspace",
                shell_word(&dir.display().to_string())
            ),
            None => "stop it with `a2a-hub stop`, or choose another socket with `--socket`".into(),
        };
        bail!("start the hub: a hub already listens on {}; {way}", config.socket.path.display());
    }
    let dir = config.data_dir()?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir).with_context(|| {
        let dir = dir.display();
        format!("start the hub: make its data directory {dir}; `--data-dir` names another")
    })?;
    let (log_path, log) = log_files::open_log(dir).context("open the hub's log")?;
    let log_offset = log.metadata()?.len();
    let exe = std::env::current_exe().context("find this program")?;
    let args = arguments(global, start, settings, dir)?;
    let mut hub = Background::start(&exe, &args, None, None, log)?;
    until_up(global, &mut hub, (dir, &config.socket.path), (&log_path, log_offset)).await
}

/// Waits until the hub of the data directory `dir` is up, and returns its run file. A hub that
/// reports the progress of its start on its `socket` has as long as it takes. If the hub fails, the
/// error quotes its `log` from the byte `log_offset` on.
pub(crate) async fn until_up(
    global: &Global,
    hub: &mut Background,
    (dir, socket): (&Path, &Path),
    (log, log_offset): (&Path, u64),
) -> anyhow::Result<Value> {
    let mut progress = global.progress("starting the hub", true);
    let (mut deadline, mut doing) = (Instant::now() + START_DEADLINE, "preparing".to_owned());
    let mut next_poll = Instant::now() + START_POLL_INTERVAL;
    loop {
        if let Some(status) = hub.ended()? {
            let output = tail(log, log_offset)?;
            let why = last_words(&output).unwrap_or_else(|| format!("it ended with {status}"));
            bail!("start the hub: {why}\nits log is {}", log.display());
        }
        if let Some(run) = announced(dir, hub.id()) {
            return Ok(run);
        }
        if Instant::now() > deadline {
            let late = Span(START_DEADLINE);
            bail!("start the hub: it is not up after {late}; see {}", log.display());
        }
        if Instant::now() >= next_poll {
            if let Some(start) = progress.during(&doing, start_progress(socket, hub.id())).await {
                (deadline, doing) = (Instant::now() + START_DEADLINE, start);
            }
            next_poll = Instant::now() + START_POLL_INTERVAL;
        }
        progress.during(&doing, sleep(POLL_INTERVAL)).await;
    }
}

/// Progress of the starting hub of this process, if it answers.
async fn start_progress(socket: &Path, pid: u32) -> Option<String> {
    let greeted = async {
        let mut client = Client::to(socket).await.ok()?;
        client.pid.filter(|it| u32::try_from(*it) == Ok(pid))?;
        client.greet().await.ok()?
    };
    timeout(START_POLL_INTERVAL * 4, greeted).await.ok()?
}

fn arguments(
    global: &Global,
    start: &StartArgs,
    settings: &Settings,
    dir: &Path,
) -> io::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = vec!["start".into(), "--foreground".into(), "--detached".into()];
    let mut option = |name: &str, value: &Path| args.extend([name.into(), value.into()]);
    option("--data-dir", dir);
    // The file may have another value by the time of a restart.
    if settings.overrides_file(&["socket", "path"]) {
        option("--socket", &settings.config.socket.path);
    }
    if let Some(file) = &settings.file {
        option("--config", file);
    }
    if let Some(port) = start.http_port {
        option("--http-port", Path::new(&port.to_string()));
    }
    // The workspaces of the file are left out, because it may change before the hub reads it again.
    for workspace in &start.workspaces {
        option("--workspace", &directory(workspace)?);
    }
    args.extend(start.no_http.then(|| "--no-http".into()));
    args.extend(global.verbose.then(|| "--verbose".into()));
    Ok(args)
}

/// Returns the run file if the hub with this process id wrote it.
fn announced(dir: &Path, pid: u32) -> Option<Value> {
    let run = running_hub::written_down(dir).ok()?;
    (run["pid"] == json!(pid)).then_some(run)
}

/// Returns the end of what was appended to the log since its length was `from`; if the log was
/// rotated since, the end of the whole log.
fn tail(log: &Path, from: u64) -> anyhow::Result<String> {
    let mut log = File::open(log)?;
    let end = log.metadata()?.len();
    let from = if end < from { 0 } else { from };
    log.seek(SeekFrom::Start(from.max(end.saturating_sub(TAIL))))?;
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Extracts the reason for a hub's end from its log: the error line of the command, or else lines
/// that are no log events, such as a panic message.
fn last_words(output: &str) -> Option<String> {
    let lines: Vec<_> = output.lines().collect();
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
    fn start_failure_omits_earlier_log() {
        let log = "{\"level\":\"INFO\",\"message\":\"agent joined\"}\n";
        let told = |said: &str| last_words(&format!("{log}{log}{said}")).unwrap_or_default();
        assert_eq!(
            told("error: make the plugins folder: File exists\n"),
            "make the plugins folder: File exists"
        );
        assert_eq!(
            told("error: read the file: line 1\n  |\n1 | x\n"),
            "read the file: line 1\n  |\n1 | x"
        );
        assert_eq!(told("error: first\nerror: last\n"), "last");
        assert_eq!(
            told("thread 'main' panicked at x.rs:\nboom\n"),
            "thread 'main' panicked at x.rs:\nboom"
        );
        assert_eq!(told(""), "", "it was killed");
    }
}
