//! Hub in the process of its test, with all transports, on a free port and in temporary
//! directories. A separate program minds the programs of agents, as `a2a-hub` itself does.

use crate::log;
use a2a_hub::{
    Builder, Hub, Native,
    config::Settings,
    protocol::{card::AgentCard, id::AgentId},
};
use a2a_hub_tests::{Endpoints, Site, TemporarySite};
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use std::{env, ops::Deref, path::PathBuf, process, sync::Arc, time::Duration};
use tokio::time::timeout;

/// Helper program that minds the programs of agents and compiles components.
const MINDER: &str = env!("CARGO_BIN_EXE_minding");

/// Clock of the schedules.
pub(crate) type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Timeout of the shutdown, which exceeds the hub's own grace period for programs.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A running hub with temporary directories.
pub(crate) struct InProcessHub {
    hub: Option<Hub>,
    endpoints: Endpoints,
    site: TemporarySite,
    clock: Option<WallClock>,
    agents: Vec<NativeAgent>,
}

/// An agent that is a function of the test.
type NativeAgent = (AgentId, AgentCard, Native);

/// Configuration of a hub before its start.
#[derive(Default)]
pub(crate) struct HubBuilder {
    config: String,
    plugins: Vec<(String, PathBuf)>,
    clock: Option<WallClock>,
    agents: Vec<NativeAgent>,
}

impl HubBuilder {
    /// Sets the configuration file, in TOML.
    pub(crate) fn config(self, toml: impl Into<String>) -> Self {
        Self { config: toml.into(), ..self }
    }

    /// Adds a component to the plugins folder as `<name>.wasm`.
    pub(crate) fn plugin(mut self, name: &str, component: impl Into<PathBuf>) -> Self {
        self.plugins.push((name.to_owned(), component.into()));
        self
    }

    /// Adds an agent that is a function.
    pub(crate) fn agent(mut self, id: AgentId, card: AgentCard, agent: Native) -> Self {
        self.agents.push((id, card, agent));
        self
    }

    /// Sets the clock of the schedules.
    pub(crate) fn clock(self, clock: WallClock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Starts the hub, and waits until all its agents have joined.
    pub(crate) async fn start(self) -> Result<InProcessHub> {
        // Tests are in `<profile>/deps`, and the compile cache is in `<profile>`.
        let test = env::current_exe()?;
        let beside = test.ancestors().nth(2).context("no target directory")?.join("a2a-hub");
        let site = TemporarySite::new(&beside, Some(&self.config), &self.plugins)?;
        let (hub, endpoints) = start(&site, self.clock.clone(), &self.agents).await?;
        for (name, _) in &self.plugins {
            endpoints.joined(name).await?;
        }
        let Self { clock, agents, .. } = self;
        Ok(InProcessHub { hub: Some(hub), endpoints, site, clock, agents })
    }
}

impl InProcessHub {
    /// Starts a hub without a configuration and without plug-ins.
    pub(crate) async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Creates a builder of a hub.
    pub(crate) fn builder() -> HubBuilder {
        HubBuilder::default()
    }

    /// Process id of the hub: the test's own.
    #[expect(
        clippy::unused_self,
        reason = "it is asked of the hub, whichever way that was started"
    )]
    pub(crate) fn pid(&self) -> u32 {
        process::id()
    }

    /// Returns the log of this process's hubs: each test runs in a separate process.
    #[expect(
        clippy::unused_self,
        reason = "it is asked of the hub, whichever way that was started"
    )]
    pub(crate) fn log(&self) -> String {
        log::so_far()
    }

    /// Shuts the hub down, and waits until it has ended.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        if let Some(hub) = self.hub.take() {
            timeout(STOPPED_WITHIN, hub.shutdown()).await.context("the hub did not stop")?;
        }
        Ok(())
    }

    /// Restarts the hub with the same data. Its port changes.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        let (hub, endpoints) = start(&self.site, self.clock.clone(), &self.agents).await?;
        self.hub = Some(hub);
        self.endpoints = endpoints;
        Ok(())
    }
}

impl Deref for InProcessHub {
    type Target = Endpoints;

    fn deref(&self) -> &Endpoints {
        &self.endpoints
    }
}

/// Starts a hub at this site like the program, with the built-in agents.
async fn start(
    site: &TemporarySite,
    clock: Option<WallClock>,
    agents: &[NativeAgent],
) -> Result<(Hub, Endpoints)> {
    log::start();
    let of = Site::clone(site);
    let read = move || -> Result<_> {
        let mut config = Settings::load(Some(of.path("config.toml")), &[])?.config;
        config.data_dir = Some(of.data_dir());
        config.http.port = 0;
        config.socket.path = of.path("hub.sock");
        config.workspaces = vec![of.workspace()];
        Ok(config)
    };
    let builder = Hub::builder(site.data_dir()).config(read()?).minder(MINDER).command(MINDER);
    let read_again = move || read().map_err(|why| format!("{why:#}"));
    let builder = builder.reloadable(Arc::new(read_again), Arc::new(|_| {}));
    let builder = match clock {
        Some(clock) => builder.schedule_clock(clock),
        None => builder,
    };
    let with_agent = |builder: Builder, (id, card, agent): &NativeAgent| {
        builder.agent(id.clone(), card.clone(), agent.clone())
    };
    let hub = agents.iter().fold(builder, with_agent).start().await?;
    let http = hub.http_address().context("it serves no HTTP")?.to_string();
    Ok((hub, Endpoints::new(http, site.path("hub.sock"), Site::clone(site))))
}
