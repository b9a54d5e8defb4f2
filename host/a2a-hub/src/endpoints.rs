//! Endpoints of the hub: bound at first, held while the hub starts, and served then.

use a2a_hub_config::{Config, DevicesFile, token::Tokens};
use a2a_hub_engine::devices::Devices;
use a2a_hub_server::{Dispatcher, HttpServer, PublicEndpoints, StartProgress, Unix};
use anyhow::Context as _;
use futures::future::OptionFuture;
use std::{net::SocketAddr, path::Path, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Bound endpoints of the hub.
pub(crate) struct BoundEndpoints {
    unix: Option<Unix>,
    /// HTTP, with the tokens of its clients.
    http: Option<(HttpServer, Tokens)>,
}

impl BoundEndpoints {
    /// Binds the configured endpoints. Clients can connect from then on.
    pub(crate) fn bind(config: &Config, dir: &Path) -> anyhow::Result<Self> {
        let unix = config.socket.enabled.then(|| Unix::bind(&config.socket.path)).transpose()?;
        let http = match bind_http(config)? {
            Some(http) => Some((http, Tokens::open(dir, config.tenants.keys())?)),
            None => None,
        };
        Ok(Self { unix, http })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|(http, _)| http.address())
    }

    /// Opens the paired browsers, which need the page.
    pub(crate) fn devices(&self, dir: &Path) -> anyhow::Result<Devices> {
        let Some(address) = self.address() else { return Ok(Devices::default()) };
        Ok(Devices::open(DevicesFile::new(dir), Some(format!("http://{address}/ui/")))?)
    }

    /// URL of the hub for invitations: the public one, or that of the HTTP server.
    pub(crate) fn url(&self, config: &Config) -> Option<String> {
        let address = self.address()?;
        let public = config.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
        Some(public.unwrap_or_else(|| format!("http://{address}")))
    }

    /// Path of the unix socket, if it is served.
    pub(crate) fn socket<'c>(&self, config: &'c Config) -> Option<&'c Path> {
        self.unix.is_some().then_some(&*config.socket.path)
    }

    /// Carries out `begin`, and answers status requests meanwhile; all other requests wait.
    pub(crate) async fn hold_while<T>(
        &mut self,
        config: &Config,
        progress: StartProgress,
        begin: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let started = CancellationToken::new();
        let unix = OptionFuture::from(
            self.unix
                .as_mut()
                .map(|unix| unix.serve_until_started(Arc::clone(&progress), started.clone())),
        );
        let http = OptionFuture::from(self.http.as_mut().map(|(http, _)| {
            let (names, public_url) = (&config.http.names, config.public_url.as_deref());
            http.serve_until_started(names, public_url, progress, started.clone())
        }));
        let begin = async {
            let _started = started.clone().drop_guard();
            begin.await
        };
        let (_, _, begun) = tokio::join!(unix, http, begin);
        begun
    }

    /// Serves all connections until `stop`.
    pub(crate) fn serve(
        self,
        dispatcher: &Dispatcher,
        running: &TaskTracker,
        stop: &CancellationToken,
    ) {
        if let Some((http, tokens)) = self.http {
            running.spawn(http.serve(dispatcher.clone(), tokens, stop.clone()));
        }
        if let Some(unix) = self.unix {
            running.spawn(unix.serve(dispatcher.clone(), stop.clone()));
        }
    }
}

/// Binds HTTP, if the configuration enables it.
pub(crate) fn bind_http(config: &Config) -> anyhow::Result<Option<HttpServer>> {
    if !config.http.enabled {
        return Ok(None);
    }
    let address = config.http.address();
    let bound = HttpServer::bind(address).with_context(|| {
        format!("serve HTTP on {address} (choose another port with `--http-port`, or none with `--no-http`)")
    })?;
    Ok(Some(bound))
}

/// Addresses of a hub that serves HTTP at this address.
pub(crate) fn public_endpoints(config: &Config, http: Option<SocketAddr>) -> PublicEndpoints {
    PublicEndpoints {
        public_url: config.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        names: config.http.names.clone(),
        http,
        socket: config.socket.enabled.then(|| config.socket.path.clone()),
        root_agent: config.root_agent.clone(),
    }
}
