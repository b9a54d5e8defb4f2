//! A hub in the process of its test, with everything that it serves: on a free port, and with nothing of yours.

use a2a_hub::{Hub, config::Settings};
use a2a_hub_tests::{Compiled, Endpoints};
use anyhow::{Context as _, Result};
use std::{
    env,
    fs::{self, DirBuilder},
    ops::Deref,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A running hub with directories of its own, which go with it.
pub(crate) struct InProcessHub {
    hub: Option<Hub>,
    endpoints: Endpoints,
    config: String,
    // Before the directory: what is compiled is kept before it goes.
    _compiled: Compiled,
    dir: TempDir,
}

/// What is different about a hub before it starts.
#[derive(Default)]
pub(crate) struct HubBuilder {
    config: String,
    plugins: Vec<(String, PathBuf)>,
}

impl HubBuilder {
    /// Its configuration file, in TOML.
    pub(crate) fn config(self, toml: impl Into<String>) -> Self {
        Self { config: toml.into(), ..self }
    }

    /// A component to put into its plugins folder as `<name>.wasm`.
    pub(crate) fn plugin(mut self, name: &str, component: impl Into<PathBuf>) -> Self {
        self.plugins.push((name.to_owned(), component.into()));
        self
    }

    /// Starts it. All its agents are there then.
    pub(crate) async fn start(self) -> Result<InProcessHub> {
        let dir = tempfile::Builder::new().prefix("hub-").tempdir()?;
        for folder in ["data", "data/plugins", "work"] {
            DirBuilder::new().mode(0o700).create(dir.path().join(folder))?;
        }
        for (name, component) in &self.plugins {
            plug(&dir, name, component)?;
        }
        // Tests are in `<profile>/deps`, and what hubs compiled in `<profile>`.
        let test = env::current_exe()?;
        let beside = test.ancestors().nth(2).context("no target directory")?.join("a2a-hub");
        let compiled = Compiled::lend(&beside, &dir.path().join("data"))?;
        let (hub, endpoints) = start(&dir, &self.config).await?;
        for (name, _) in &self.plugins {
            endpoints.joined(name).await?;
        }
        let (hub, config) = (Some(hub), self.config);
        Ok(InProcessHub { hub, endpoints, config, _compiled: compiled, dir })
    }
}

impl InProcessHub {
    /// A hub without a configuration and without plugins.
    pub(crate) async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// A hub that is different in some way.
    pub(crate) fn builder() -> HubBuilder {
        HubBuilder::default()
    }

    /// Puts a component into its plugins folder as `<name>.wasm`, in place of any of that name.
    pub(crate) fn plug(&self, name: &str, component: &Path) -> Result<()> {
        plug(&self.dir, name, component)
    }

    /// Takes it down, and waits until that is done.
    pub(crate) async fn stop(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.shutdown().await;
        }
    }

    /// Starts it again with the same data, after taking it down. Its port is another one then.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.stop().await;
        let (hub, endpoints) = start(&self.dir, &self.config).await?;
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

/// Written beside its place and then moved there, so that no half of a component is ever seen.
fn plug(dir: &TempDir, name: &str, component: &Path) -> Result<()> {
    let draft = dir.path().join(format!("{name}.draft"));
    fs::copy(component, &draft).with_context(|| component.display().to_string())?;
    Ok(fs::rename(draft, dir.path().join("data/plugins").join(name).with_extension("wasm"))?)
}

/// Starts a hub in this directory, with the agents that are built in.
async fn start(dir: &TempDir, toml: &str) -> Result<(Hub, Endpoints)> {
    let path = |name: &str| dir.path().join(name);
    fs::write(path("config.toml"), toml)?;
    let mut config = Settings::load(Some(path("config.toml")), &[])?.config;
    config.http.port = 0;
    config.socket.path = path("hub.sock");
    config.workspaces = vec![path("work")];
    let hub = Hub::builder(path("data")).config(config).start().await?;
    let http = hub.http_address().context("it serves no HTTP")?.to_string();
    Ok((hub, Endpoints::new(http, path("hub.sock"), path("data"))))
}
