//! Names under which this hub may be called over HTTP.

use super::header_value::only;
use a2a_hub_core::http_name::{HostPort, HttpName};
use axum::http::{HeaderMap, Uri, header, uri::PathAndQuery};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

/// Names of a hub: its own address, the configured names, and that of its public URL.
#[derive(Clone)]
pub(crate) struct HubNames(Arc<NameList>);

struct NameList {
    names: Vec<HttpName>,
    /// `localhost` with the port of the server, and the name that its web page moves to. `None` for
    /// a server with TLS whose certificate lacks that name.
    page_move: Option<(HttpName, HttpName)>,
    /// Configured name or URL that leads to the hub from other machines.
    public: Option<String>,
}

impl HubNames {
    /// Creates the names of a server without TLS at `at`: the address, `localhost` and 127.0.0.1
    /// with its port, the `configured` names, and the host of `public_url`.
    #[cfg(test)]
    pub(crate) fn new(at: SocketAddr, configured: &[HttpName], public_url: Option<&str>) -> Self {
        Self::of_server(at, false, configured, public_url)
    }

    /// Creates the names of a server at `at`: the address, `localhost` and 127.0.0.1 with its port,
    /// the `configured` names, and the host of `public_url`; with TLS (`is_tls`), of HTTPS. At an
    /// address beyond loopback, other machines reach it.
    pub(crate) fn of_server(
        at: SocketAddr,
        is_tls: bool,
        configured: &[HttpName],
        public_url: Option<&str>,
    ) -> Self {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, at.port()));
        let local = [at, v4].map(|address| HttpName::of_address(address, is_tls));
        let local = local.into_iter().chain([HttpName::of_localhost(at.port(), is_tls)]);
        let published = public_url.and_then(HttpName::of_url);
        let is_public = published.as_ref().is_none_or(|name| !name.is_loopback());
        let public = public_url.filter(|_| is_public).map(str::to_owned);
        let named = || configured.iter().find(|name| !name.is_loopback()).map(HttpName::to_string);
        let bound = || (!at.ip().is_loopback()).then(|| at.to_string());
        let public = public.or_else(named).or_else(bound);
        let names = local.chain(configured.iter().cloned()).chain(published).collect();
        let localhost = HttpName::of_localhost(at.port(), is_tls);
        let address = if at.ip().is_unspecified() { v4 } else { at };
        let page = HttpName::of_address(address, is_tls);
        let has_page = !is_tls || configured.contains(&page);
        let page_move = has_page.then_some((localhost, page));
        Self(Arc::new(NameList { names, page_move, public }))
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

    /// True if an origin is one under which the web page may keep a key. That is any name but
    /// `localhost` at the server's own port: browsers try `::1` first, where another program may
    /// listen, and its page would share the key. With TLS, another program lacks a certificate for
    /// `localhost`, so a page that cannot move keeps its key there.
    pub(super) fn has_page(&self, origin: &str) -> bool {
        let is_left = |(localhost, _): &(HttpName, HttpName)| localhost.is_origin(origin);
        !self.0.page_move.as_ref().is_some_and(is_left) && self.has_origin(origin)
    }

    /// Address of the web page for a request that names `localhost`, under which it keeps no key.
    pub(super) fn page_for(&self, headers: &HeaderMap, target: &Uri) -> Option<String> {
        let (localhost, page) = self.0.page_move.as_ref()?;
        let host = only(headers, &header::HOST).ok()??;
        let names_localhost = localhost.is_host(&HostPort::parse(host)?);
        let path = target.path_and_query().map_or("/ui/", PathAndQuery::as_str);
        names_localhost.then(|| format!("{page}{path}"))
    }

    /// Configured name or URL that leads to the hub from other machines, if any.
    pub(super) fn public(&self) -> Option<&str> {
        self.0.public.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_leads_to_address() {
        let forwarded = HttpName::parse("http://localhost:9000").unwrap();
        let names = HubNames::new("127.0.0.1:8080".parse().unwrap(), &[forwarded], None);
        let page = |host: &str, target: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            names.page_for(&headers, &target.parse().unwrap())
        };
        let led = page("LocalHost:8080", "/ui/tasks?x=1");
        assert_eq!(led.as_deref(), Some("http://127.0.0.1:8080/ui/tasks?x=1"));
        assert_eq!(page("127.0.0.1:8080", "/ui/"), None);
        assert_eq!(page("localhost:9000", "/ui/"), None, "a forwarded port has an owner");
        for (origin, keeps_keys) in [
            ("http://127.0.0.1:8080", true),
            ("http://localhost:9000", true),
            ("http://localhost:8080", false),
            ("http://[::1]:8080", false),
            ("https://127.0.0.1:8080", false),
        ] {
            assert_eq!(names.has_page(origin), keeps_keys, "{origin}");
        }
    }

    #[test]
    fn page_moves_to_certified_name_only() {
        let moves = |certified: &[&str]| {
            let names: Vec<_> =
                certified.iter().map(|name| HttpName::parse(name).unwrap()).collect();
            let names = HubNames::of_server("0.0.0.0:8443".parse().unwrap(), true, &names, None);
            let headers = HeaderMap::from_iter([(header::HOST, "localhost:8443".parse().unwrap())]);
            let moved = names.page_for(&headers, &"/ui/".parse().unwrap());
            assert_eq!(names.has_page("https://localhost:8443"), moved.is_none(), "{certified:?}");
            moved
        };
        let (localhost, address) = ("https://localhost:8443", "https://127.0.0.1:8443");
        assert_eq!(moves(&[localhost]), None);
        assert_eq!(moves(&[]), None, "a wildcard, for example");
        assert_eq!(moves(&["https://hub.example:8443", localhost]), None);
        let moved = moves(&[localhost, address]);
        assert_eq!(moved.as_deref(), Some("https://127.0.0.1:8443/ui/"));
    }

    #[test]
    fn tls_server_has_names_of_https() {
        let at = "0.0.0.0:8443".parse().unwrap();
        let configured = [HttpName::parse("https://hub.example:8443").unwrap()];
        let names = HubNames::of_server(at, true, &configured, None);
        assert!(names.has_host("hub.example:8443") && names.has_host("127.0.0.1:8443"));
        assert!(!names.has_host("hub.example") && !names.has_host("evil.example:8443"));
        assert!(names.has_origin("https://hub.example:8443"));
        assert!(!names.has_origin("http://hub.example:8443"));
        let public = |at: &str| {
            let names = HubNames::of_server(at.parse().unwrap(), true, &[], None);
            names.public().map(str::to_owned)
        };
        assert_eq!(public("10.0.0.2:8443").as_deref(), Some("10.0.0.2:8443"));
        assert_eq!(public("127.0.0.1:8443"), None);
    }
}
