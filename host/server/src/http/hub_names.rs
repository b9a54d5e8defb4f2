//! Names under which this hub may be called over HTTP.

use a2a_hub_core::http_name::{HostPort, HttpName};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

/// Names of a hub: its own address, the configured names, and that of its public URL.
#[derive(Clone)]
pub(crate) struct HubNames(Arc<NameList>);

struct NameList {
    names: Vec<HttpName>,
    /// Configured name or URL that leads to the hub from other machines.
    public: Option<String>,
}

impl HubNames {
    /// Creates the names of a server on the loopback address `at`: the address, `localhost` and
    /// 127.0.0.1 with its port, the `configured` names, and the host of `public_url`.
    pub(crate) fn new(at: SocketAddr, configured: &[HttpName], public_url: Option<&str>) -> Self {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, at.port()));
        let local = [at, v4].map(HttpName::of_address);
        let local = local.into_iter().chain([HttpName::of_localhost(at.port())]);
        let published = public_url.and_then(HttpName::of_url);
        let is_public = published.as_ref().is_none_or(|name| !name.is_loopback());
        let public = public_url.filter(|_| is_public).map(str::to_owned);
        let named = || configured.iter().find(|name| !name.is_loopback()).map(HttpName::to_string);
        let public = public.or_else(named);
        let names = local.chain(configured.iter().cloned()).chain(published).collect();
        Self(Arc::new(NameList { names, public }))
    }

    /// True if a `Host` header or an authority with this value names the hub.
    pub(super) fn has_host(&self, value: &str) -> bool {
        HostPort::parse(value).is_some_and(|host| self.is_host(&host))
    }

    /// True if this host and port name the hub.
    pub(super) fn is_host(&self, host: &HostPort) -> bool {
        self.0.names.iter().any(|name| name.is_host(host))
    }

    /// True if an `Origin` header with this value comes from a page of the hub.
    pub(super) fn has_origin(&self, value: &str) -> bool {
        self.0.names.iter().any(|name| name.is_origin(value))
    }

    /// Configured name or URL that leads to the hub from other machines, if any.
    pub(super) fn public(&self) -> Option<&str> {
        self.0.public.as_deref()
    }
}
