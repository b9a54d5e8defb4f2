//! Checks before a restart: finds each error of the data directory, the socket, an address or a
//! secret that `Builder::start` would report, while the hub that is about to stop still runs. The
//! checks change nothing.

use crate::otlp::Exporter;
use a2a_hub_config::{Config, DevicesFile, ownership, token::Tokens};
use a2a_hub_engine::HubSigner;
use a2a_hub_server::Unix;
use a2a_hub_store::sqlite;
use anyhow::Context as _;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Resources that the running hub occupies and frees when it stops.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// Path of its unix socket.
    pub socket: Option<PathBuf>,
    /// Address of its HTTP server.
    pub http: Option<SocketAddr>,
}

/// Checks that a hub can start in this data directory under this configuration once the running one
/// has stopped. Must be called in a tokio runtime.
///
/// # Errors
///
/// The error that the start would return.
pub fn check_start(dir: &Path, config: &Config, running: &Running) -> anyhow::Result<()> {
    ownership::check(dir)?;
    sqlite::check(dir).context("open the hub's store")?;
    if config.socket.enabled && running.socket.as_ref() != Some(&config.socket.path) {
        Unix::check(&config.socket.path)?;
    }
    if config.http.enabled {
        Tokens::check(dir, config.tenants.keys())?;
        DevicesFile::new(dir).read()?;
        // A port in use by the running hub counts as free: it is the hub's own, on another address.
        let is_taken = running.http.is_some_and(|at| at.port() == config.http.address().port());
        if !is_taken {
            super::endpoints::bind_http(config)?;
        }
        super::endpoints::open_tls(config)?;
    }
    super::builder::check_cache_key(dir)?;
    if config.push.sign {
        HubSigner::check(dir)?;
    }
    Exporter::open(&config.telemetry.otlp)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hub;
    use std::{
        fs,
        net::TcpListener,
        os::unix::{fs::PermissionsExt as _, net::UnixListener},
    };
    use tempfile::TempDir;

    /// Creates a data directory that a hub has used, and returns it with that hub's configuration.
    async fn used() -> (TempDir, Config) {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("hub.sock").display().to_string();
        let config = format!(
            "push.sign = true\n[http]\nport = 0\n[socket]\npath = '{socket}'\n[tenants.acme]\n"
        );
        let config: Config = toml::from_str(&config).unwrap();
        let builder = Hub::builder(dir.path()).built_in(crate::BuiltIn::default());
        builder.config(config.clone()).start().await.unwrap().shutdown().await;
        (dir, config)
    }

    fn mode(file: &Path, mode: u32) {
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn check_refuses_what_start_refuses() {
        let (dir, config) = used().await;
        let free = Running::default();
        check_start(dir.path(), &config, &free).unwrap();
        type Spoil = fn(&Path, &mut Config);
        let cases: [(Spoil, &str); 11] = [
            (
                |dir, _| {
                    fs::write(dir.join("grants.toml"), "").unwrap();
                    mode(&dir.join("grants.toml"), 0o666);
                },
                "chmod go-w",
            ),
            (|dir, _| mode(dir, 0o777), "chmod go-w"),
            (|dir, _| fs::write(dir.join("http-token"), "none").unwrap(), "http-token: the file"),
            (|dir, _| mode(&dir.join("tenants/acme"), 0o644), "acme: others may read"),
            (|dir, _| fs::write(dir.join("cache-key"), "none").unwrap(), "cache-key: the file"),
            (|dir, _| fs::write(dir.join("push-key"), "none").unwrap(), "push-key: the file"),
            (
                |dir, _| {
                    let db = rusqlite::Connection::open(dir.join("hub.db")).unwrap();
                    db.pragma_update(None, "user_version", 99).unwrap();
                },
                "run the newer hub",
            ),
            (
                |dir, config| {
                    config.socket.path = dir.join("file");
                    fs::write(dir.join("file"), "").unwrap();
                },
                "a file that is not a socket",
            ),
            (|dir, config| config.socket.path = dir.join("no/where"), "No such file"),
            (|dir, config| config.socket.path = dir.join("x".repeat(108)), "listen on"),
            (
                |_, config| {
                    // Kept open until the test's process ends.
                    let other = Box::leak(Box::new(TcpListener::bind("127.0.0.1:0").unwrap()));
                    config.http.port = other.local_addr().unwrap().port();
                },
                "choose another port",
            ),
        ];
        for (spoil, why) in cases {
            let (dir, mut config) = used().await;
            spoil(dir.path(), &mut config);
            let refused = check_start(dir.path(), &config, &free).unwrap_err();
            assert!(format!("{refused:#}").contains(why), "{why}: {refused:#}");
            let builder = Hub::builder(dir.path()).built_in(crate::BuiltIn::default());
            let started = builder.config(config).start().await.map(drop).unwrap_err();
            assert_eq!(format!("{started:#}"), format!("{refused:#}"), "as the start has it");
        }
    }

    #[tokio::test]
    async fn check_ignores_resources_of_running_hub() {
        let (dir, mut config) = used().await;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http = listener.local_addr().unwrap();
        config.http.port = http.port();
        let socket = config.socket.path.clone();
        let _there = UnixListener::bind(&socket).unwrap();
        let running = Running { socket: Some(socket), http: Some(http) };
        check_start(dir.path(), &config, &running).unwrap();
    }
}
