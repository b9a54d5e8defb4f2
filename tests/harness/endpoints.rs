//! Addresses of a running hub, however it was started.

use crate::{client::Client, site::Site};
use anyhow::{Result, ensure};
use serde_json::json;
use std::{
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Addresses of a running hub: a separate process ([`TestHub`](crate::TestHub)), or one within the
/// test's process. Code that only sends requests takes this type. The hub's files are those of its
/// [`Site`].
#[derive(Clone, Debug)]
pub struct Endpoints {
    http: String,
    socket: PathBuf,
    site: Site,
}

impl Endpoints {
    /// Endpoints of a hub that serves HTTP at this address, such as `127.0.0.1:40000`, and this
    /// unix socket.
    pub fn new(http: String, socket: PathBuf, site: Site) -> Self {
        Self { http, socket, site }
    }

    /// HTTP address of the hub, such as `127.0.0.1:40000`.
    pub fn http(&self) -> &str {
        &self.http
    }

    /// Unix socket of the hub.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until a plug-in is registered or rejected: one that must be compiled registers after
    /// the start.
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
