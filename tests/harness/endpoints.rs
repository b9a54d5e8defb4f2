//! Where a hub is found, whichever way it was started.

use crate::{client::Client, site::Site};
use anyhow::{Result, ensure};
use serde_json::json;
use std::{
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// The places of a hub that runs: as a process of its own ([`TestHub`](crate::TestHub)), or in the process of its test. Either is one of these
/// to all that only ask it something. Its files are those of its [`Site`].
#[derive(Clone, Debug)]
pub struct Endpoints {
    http: String,
    socket: PathBuf,
    site: Site,
}

impl Endpoints {
    /// Those of a hub that serves HTTP here, such as `127.0.0.1:40000`, and this unix socket, and has its files at this site.
    pub fn new(http: String, socket: PathBuf, site: Site) -> Self {
        Self { http, socket, site }
    }

    /// Where the hub serves HTTP, such as `127.0.0.1:40000`.
    pub fn http(&self) -> &str {
        &self.http
    }

    /// Its unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until a plug-in has joined or is told why not: one that is compiled for the first time joins after the start.
    pub async fn joined(&self, name: &str) -> Result<()> {
        let client = Client::unix(self);
        let (deadline, file) = (Instant::now() + Duration::from_secs(120), format!("{name}.wasm"));
        loop {
            let status = client.call("hub/status", json!({})).await?;
            let told = |list: &str, member: &str, word: &str| {
                status[list].as_array().is_some_and(|all| all.iter().any(|it| it[member] == word))
            };
            if told("agents", "id", name) || told("rejectedPlugins", "file", &file) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{name} does not join: {status:#}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Deref for Endpoints {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}
