//! Real hub as a separate process, on a free port and without the user's files.

use crate::{
    endpoints::Endpoints,
    site::{Site, TemporarySite},
};
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, OpenOptions},
    ops::Deref,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// Timeout for the start: the first hub compiles its agents, slowly in debug builds.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Timeout for the stop, longer than the hub's grace period for its programs.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(20);

/// Number of lines of the hub's log in an error message.
const LOG_TAIL_LINES: usize = 40;

/// Running hub with a separate data directory, workspace, home and environment. Dropping it kills
/// the hub and deletes the directories.
#[derive(Debug)]
pub struct TestHub {
    // Declared before the site in `start`: the process ends before its files are deleted.
    running: Running,
    start: Start,
}

/// Options of a hub before its start.
#[derive(Debug, Default)]
pub struct HubBuilder {
    config: Option<String>,
    env: Vec<(OsString, OsString)>,
    plugins: Vec<(String, PathBuf)>,
}

/// Files and command of a hub.
#[derive(Debug)]
struct Start {
    site: TemporarySite,
    binary: PathBuf,
    env: Vec<(OsString, OsString)>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    pid: u32,
    endpoints: Endpoints,
}

/// Contents of `run.json`, which the hub writes.
#[derive(Debug, Deserialize)]
struct Run {
    pid: u32,
    http: String,
    socket: PathBuf,
}

impl HubBuilder {
    /// Sets the configuration file, in TOML.
    #[must_use]
    pub fn config(mut self, toml: impl Into<String>) -> Self {
        self.config = Some(toml.into());
        self
    }

    /// Sets an environment variable beside `PATH` and `HOME`.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Adds a component to the plugins folder as `<name>.wasm`.
    #[must_use]
    pub fn plugin(mut self, name: &str, component: impl Into<PathBuf>) -> Self {
        self.plugins.push((name.to_owned(), component.into()));
        self
    }

    /// Starts the hub, and waits until it answers.
    pub async fn start(self) -> Result<TestHub> {
        let binary = hub_binary()?;
        let site = TemporarySite::new(&binary, self.config.as_deref(), &self.plugins)?;
        let start = Start { site, binary, env: self.env };
        let running = start.run().await?;
        let hub = TestHub { running, start };
        for (name, _) in &self.plugins {
            hub.joined(name).await?;
        }
        Ok(hub)
    }
}

impl TestHub {
    /// Starts a hub without a configuration and without plug-ins.
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Creates a hub with options.
    pub fn builder() -> HubBuilder {
        HubBuilder::default()
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.running.pid
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.start.log()
    }

    /// Kills the hub without a warning, as a crash would.
    pub async fn kill9(&mut self) -> Result<()> {
        self.running.child.kill().await.context("failed to kill the hub")
    }

    /// Stops the hub, and waits for its exit.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        let child = &mut self.running.child;
        let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).context("failed to ask the hub to stop")?;
        }
        match timeout(STOPPED_WITHIN, child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => {
                bail!("the hub did not stop within {STOPPED_WITHIN:?}; {}", self.start.told())
            }
        }
    }

    /// Stops the hub if it runs, and starts it again with the same data, on another port.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.running = self.start.run().await?;
        Ok(())
    }
}

impl Deref for TestHub {
    type Target = Endpoints;

    fn deref(&self) -> &Endpoints {
        &self.running.endpoints
    }
}

impl Start {
    async fn run(&self) -> Result<Running> {
        let mut child = self.launch()?;
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(status) = child.try_wait()? {
                bail!("the hub ended with {status} before it answered; {}", self.told());
            }
            // A killed hub leaves its file behind.
            if let Some(run) = self.announced().filter(|run| child.id() == Some(run.pid))
                && run.answers().await
            {
                let endpoints = Endpoints::new(run.http, run.socket, Site::clone(&self.site));
                return Ok(Running { child, pid: run.pid, endpoints });
            }
            if Instant::now() > deadline {
                bail!("the hub did not answer within {READY_WITHIN:?}; {}", self.told());
            }
            sleep(POLL).await;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the hub under test is started as a user would")]
    fn launch(&self) -> Result<Child> {
        let mut command = Command::new(&self.binary);
        command.arg("--socket").arg(self.site.path("hub.sock")).args(["start", "--foreground"]);
        command.arg("--data-dir").arg(self.site.path("data")).args(["--http-port", "0"]);
        command.arg("--workspace").arg(self.site.path("work"));
        let config = self.site.path("config.toml");
        if config.exists() {
            command.arg("--config").arg(config);
        }
        // By default, a stopping hub does not wait for its tasks.
        command.env_clear().env("HOME", self.site.path("home")).env("A2A_HUB_STOP_DRAIN_MS", "0");
        command.envs(env::var_os("PATH").map(|path| ("PATH", path))).envs(self.env.iter().cloned());
        let log = OpenOptions::new().create(true).append(true).open(self.site.path("hub.log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.current_dir(self.site.path("work")).kill_on_drop(true);
        command.spawn().with_context(|| format!("failed to start {}", self.binary.display()))
    }

    /// Contents of `run.json`, once written.
    fn announced(&self) -> Option<Run> {
        serde_json::from_slice(&fs::read(self.site.path("data/run.json")).ok()?).ok()
    }

    fn log(&self) -> String {
        let log = fs::read(self.site.path("hub.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// End of the log, for an error message.
    fn told(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("its log ends:\n{}", tail.join("\n"))
    }
}

impl Run {
    async fn answers(&self) -> bool {
        TcpStream::connect(&self.http).await.is_ok() && UnixStream::connect(&self.socket).is_ok()
    }
}

/// Binary that `A2A_HUB_BIN` names, or else the one that cargo built beside the running test.
pub fn hub_binary() -> Result<PathBuf> {
    if let Some(binary) = env::var_os("A2A_HUB_BIN") {
        return Ok(binary.into());
    }
    // Tests are in `<profile>/deps`, the benchmarks in `<profile>`.
    let test = env::current_exe()?;
    let beside = test.ancestors().skip(1).take(2).map(|dir| dir.join("a2a-hub"));
    beside.clone().find(|binary| binary.is_file()).with_context(|| {
        let places: Vec<_> = beside.map(|place| place.display().to_string()).collect();
        format!(
            "there is no hub to test at {}; run `cargo build --bin a2a-hub`, or name one in A2A_HUB_BIN",
            places.join(" or ")
        )
    })
}

/// Component of the test guests that `A2A_TEST_GUESTS` names, or else the one that `cargo xtask
/// guests` built.
pub fn test_guests() -> Result<PathBuf> {
    match env::var_os("A2A_TEST_GUESTS") {
        Some(component) => built(component.into()),
        None => built(component("test-guests")),
    }
}

/// Component of the guest that requires an extension, built by `cargo xtask guests`.
pub fn picky_guest() -> Result<PathBuf> {
    built(component("picky-guest"))
}

/// Component of the guest with the scenarios of the official compatibility kit, built by `cargo
/// xtask guests`.
pub fn kit_guest() -> Result<PathBuf> {
    built(component("kit-guest"))
}

/// Component of the guest whose runs are replayed, built by `cargo xtask guests`.
pub fn durable_guest() -> Result<PathBuf> {
    built(component("durable-guest"))
}

/// Component of an agent of `examples/agents/`, built by `cargo xtask guests`.
pub fn example_agent(name: &str) -> Result<PathBuf> {
    built(component(name))
}

/// Component of the guest with planted faults, built by `cargo xtask guests`.
pub fn faulty_guest() -> Result<PathBuf> {
    built(component("faulty-guest"))
}

fn component(name: &str) -> PathBuf {
    let components = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/components");
    components.join(name).with_extension("wasm")
}

fn built(component: PathBuf) -> Result<PathBuf> {
    if !component.is_file() {
        bail!("there is no {}; run `cargo xtask guests`", component.display());
    }
    Ok(component)
}
