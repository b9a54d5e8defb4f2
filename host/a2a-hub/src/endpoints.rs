//! Endpoints of the hub: bound at first, held while the hub starts, and served then.

use a2a_hub_config::{Config, DevicesFile, token::Tokens};
use a2a_hub_core::http_name::HttpName;
use a2a_hub_engine::devices::Devices;
use a2a_hub_server::{Dispatcher, HttpServer, PublicEndpoints, StartProgress, Unix};
use a2a_hub_tls::ServerTls;
use anyhow::Context as _;
use futures::future::OptionFuture;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::Arc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Bound endpoints of the hub.
pub(crate) struct BoundEndpoints {
    unix: Option<Unix>,
    /// HTTP, with the tokens of its clients.
    http: Option<(HttpServer, Tokens)>,
    tls: Option<ServerTls>,
    /// Name of the HTTP server in the URLs that the hub tells.
    server_name: Option<HttpName>,
    /// Names under which clients call the HTTP server, in addition to its own address.
    names: Vec<HttpName>,
}

impl BoundEndpoints {
    /// Binds the configured endpoints. Clients can connect from then on.
    pub(crate) fn bind(config: &Config, dir: &Path) -> anyhow::Result<Self> {
        let tls = open_tls(config)?;
        let unix = config.socket.enabled.then(|| Unix::bind(&config.socket.path)).transpose()?;
        let http = match bind_http(config)? {
            Some(http) => {
                let http = http.with_tls(tls.clone());
                Some((http, Tokens::open(dir, config.tenants.keys())?))
            }
            None => None,
        };
        let address = http.as_ref().map(|(http, _)| http.address());
        let certified = tls.as_ref().zip(address).map(|(tls, at)| tls.names(at.port()));
        let server_name = address.map(|at| server_name(at, certified.as_deref()));
        let names = config.http.names.iter().cloned().chain(certified.into_iter().flatten());
        let names = names.collect();
        Ok(Self { unix, http, tls, server_name, names })
    }

    /// TLS of the HTTP server, if it has any.
    pub(crate) fn tls(&self) -> Option<ServerTls> {
        self.tls.clone()
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|(http, _)| http.address())
    }

    /// Opens the paired browsers, which need the page.
    pub(crate) fn devices(&self, dir: &Path) -> anyhow::Result<Devices> {
        let Some(name) = &self.server_name else { return Ok(Devices::default()) };
        Ok(Devices::open(DevicesFile::new(dir), Some(format!("{name}/ui/")))?)
    }

    /// URL of the hub for invitations: the public one, or that of the HTTP server.
    pub(crate) fn url(&self, config: &Config) -> Option<String> {
        let server = self.server_name.as_ref()?;
        let public = config.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
        Some(public.unwrap_or_else(|| server.to_string()))
    }

    /// Addresses of the hub, for its dispatcher.
    pub(crate) fn public_endpoints(&self, config: &Config) -> PublicEndpoints {
        PublicEndpoints {
            public_url: config.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
            names: self.names.clone(),
            http: self.address(),
            is_tls: self.tls.is_some(),
            socket: config.socket.enabled.then(|| config.socket.path.clone()),
            root_agent: config.root_agent.clone(),
        }
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
            let (names, public_url) = (&self.names, config.public_url.as_deref());
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

/// Name of the HTTP server at this address. With TLS, that is the first of the names that its
/// certificate has without a wildcard (`certified`), if any.
fn server_name(address: SocketAddr, certified: Option<&[HttpName]>) -> HttpName {
    let first = certified.and_then(<[_]>::first).cloned();
    first.unwrap_or_else(|| {
        let loopback = match address {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let host = if address.ip().is_unspecified() { loopback } else { address.ip() };
        HttpName::of_address(SocketAddr::new(host, address.port()), certified.is_some())
    })
}

/// Reads the TLS files, if the configuration names any.
pub(crate) fn open_tls(config: &Config) -> anyhow::Result<Option<ServerTls>> {
    if !config.http.enabled || !config.tls.is_on() {
        return Ok(None);
    }
    Ok(Some(ServerTls::open(&config.tls).context("serve HTTPS as `[tls]` says")?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_is_certified_or_dialable() {
        for (address, certified, expected) in [
            ("127.0.0.1:8080", None, "http://127.0.0.1:8080"),
            ("[::1]:8080", None, "http://[::1]:8080"),
            ("0.0.0.0:8443", Some(&["localhost", "hub.example"][..]), "https://localhost:8443"),
            ("0.0.0.0:8443", Some(&["hub.example"]), "https://hub.example:8443"),
            // A certificate whose only name is a wildcard.
            ("0.0.0.0:8443", Some(&[]), "https://127.0.0.1:8443"),
            ("[::]:8443", Some(&[]), "https://[::1]:8443"),
            ("192.0.2.7:8443", Some(&[]), "https://192.0.2.7:8443"),
        ] {
            let name = |host: &&str| HttpName::parse(&format!("https://{host}:8443")).unwrap();
            let certified: Option<Vec<_>> =
                certified.map(|hosts: &[&str]| hosts.iter().map(name).collect());
            let named = server_name(address.parse().unwrap(), certified.as_deref());
            assert_eq!(named.to_string(), expected);
        }
    }
}
