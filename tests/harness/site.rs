//! The files of a hub under test: its data, a workspace for its agents, a home and its configuration.

use crate::compiled::Compiled;
use anyhow::{Context as _, Result};
use std::{
    fs::{self, DirBuilder},
    ops::Deref,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Where the files of a hub are, whichever way it was started.
#[derive(Clone, Debug)]
pub struct Site(PathBuf);

/// The site of one hub, which goes with it.
#[derive(Debug)]
pub struct TemporarySite {
    // Before the directory: what is compiled is kept before it goes.
    _compiled: Compiled,
    _dir: TempDir,
    site: Site,
}

impl Site {
    /// A file or folder of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where the hub keeps its data.
    pub fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    /// The directory its agents may work in.
    pub fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// The home directory that a hub of its own process has in its environment.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Has its configuration file say this from now on, in TOML; it reads the file when it is told to.
    pub fn configure(&self, toml: &str) -> Result<()> {
        Ok(fs::write(self.path("config.toml"), toml)?)
    }

    /// Puts a component into its plugins folder as `<name>.wasm`, in place of any of that name.
    ///
    /// Written beside its place and then moved there, so that no half of a component is ever seen.
    pub fn plug(&self, name: &str, component: &Path) -> Result<()> {
        let draft = self.path(&format!("{name}.draft"));
        fs::copy(component, &draft)
            .with_context(|| format!("failed to copy the component {}", component.display()))?;
        Ok(fs::rename(draft, self.plugin(name))?)
    }

    /// Takes the component `<name>.wasm` out of its plugins folder.
    pub fn unplug(&self, name: &str) -> Result<()> {
        let plugin = self.plugin(name);
        fs::remove_file(&plugin).with_context(|| format!("failed to remove {}", plugin.display()))
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.path("data/plugins").join(name).with_extension("wasm")
    }
}

impl TemporarySite {
    /// One with this configuration and these plug-ins, whose hub finds what others compiled in the folder of `program`.
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
