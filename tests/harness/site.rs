//! Files of a hub under test: its data, a workspace for its agents, a home and its configuration.

use crate::compiled::Compiled;
use anyhow::{Context as _, Result};
use std::{
    fs::{self, DirBuilder},
    ops::Deref,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Directory with the files of a hub, however it was started.
#[derive(Clone, Debug)]
pub struct Site(PathBuf);

/// Site of one hub, deleted on drop.
#[derive(Debug)]
pub struct TemporarySite {
    // Declared before the directory: compiled components are kept before it is deleted.
    _compiled: Compiled,
    _dir: TempDir,
    site: Site,
}

impl Site {
    /// Path of a file or folder of the site.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Data directory of the hub.
    pub fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    /// Workspace of the agents.
    pub fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// Home directory of a hub in a separate process.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Replaces the configuration file, in TOML; the hub reads it on request.
    pub fn configure(&self, toml: &str) -> Result<()> {
        Ok(fs::write(self.path("config.toml"), toml)?)
    }

    /// Puts a component into the plugins folder as `<name>.wasm`, replacing any with that name.
    ///
    /// The file is written next to its destination and renamed, so that the hub never sees an
    /// incomplete one.
    pub fn plug(&self, name: &str, component: &Path) -> Result<()> {
        let draft = self.path(&format!("{name}.draft"));
        fs::copy(component, &draft)
            .with_context(|| format!("failed to copy the component {}", component.display()))?;
        Ok(fs::rename(draft, self.plugin(name))?)
    }

    /// Removes the component `<name>.wasm` from the plugins folder.
    pub fn unplug(&self, name: &str) -> Result<()> {
        let plugin = self.plugin(name);
        fs::remove_file(&plugin).with_context(|| format!("failed to remove {}", plugin.display()))
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.path("data/plugins").join(name).with_extension("wasm")
    }
}

impl TemporarySite {
    /// Creates a site with this configuration and these plug-ins. Its hub uses the components that
    /// others compiled in the folder of `program`.
    pub fn new(
        program: &Path,
        config: Option<&str>,
        plugins: &[(String, PathBuf)],
    ) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("hub-").tempdir()?;
        let site = Site(dir.path().to_owned());
        for folder in ["data", "data/plugins", "work", "home"] {
            DirBuilder::new().mode(0o700).create(site.path(folder))?;
        }
        let compiled = Compiled::lend(program, &site.data_dir())?;
        if let Some(config) = config {
            site.configure(config)?;
        }
        for (name, component) in plugins {
            site.plug(name, component)?;
        }
        Ok(Self { _compiled: compiled, _dir: dir, site })
    }
}

impl Deref for TemporarySite {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}
