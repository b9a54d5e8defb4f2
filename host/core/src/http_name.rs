//! Names under which a hub is called over HTTP, and their comparison with the headers of a request.

use crate::push::address_scope::{loopback_of, normal_host};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{Ipv6Addr, SocketAddr},
};

/// Name of a hub: scheme, host and port, as in a web origin (RFC 6454, section 4). Hosts are
/// compared without regard to case and to the final dot of a fully qualified name. The port that
/// is the scheme's default may be left out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpName {
    scheme: HttpScheme,
    /// Host in the form of [`normal_host`].
    host: String,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpScheme {
    Http,
    Https,
}

impl HttpScheme {
    fn of_server(is_tls: bool) -> Self {
        if is_tls { Self::Https } else { Self::Http }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Error for a text that is no name of a hub.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name for a hub: write scheme, host and port without a path, such as `https://hub.example` or \
     `http://localhost:9000`; a host is an address or an ASCII name without `*`"
)]
pub struct InvalidHttpName(String);

impl HttpName {
    /// Name of a server at this address, with or without TLS.
    pub fn of_address(address: SocketAddr, is_tls: bool) -> Self {
        let host = address.ip().to_canonical().to_string();
        Self { scheme: HttpScheme::of_server(is_tls), host, port: address.port() }
    }

    /// Name of a server at this port of `localhost`, with or without TLS.
    pub fn of_localhost(port: u16, is_tls: bool) -> Self {
        Self { scheme: HttpScheme::of_server(is_tls), host: "localhost".to_owned(), port }
    }

    /// Parses a name such as `https://hub.example` or `http://localhost:9000`. A slash may follow.
    ///
    /// # Errors
    ///
    /// The text has no scheme of HTTP, or more than a host and a port.
    pub fn parse(text: &str) -> Result<Self, InvalidHttpName> {
        let origin = text.strip_suffix('/').unwrap_or(text);
        Self::of_origin(origin).ok_or_else(|| InvalidHttpName(text.to_owned()))
    }

    /// Name in an absolute URL, without its path; none if the URL has no valid host.
    pub fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split('/').next()?;
        Self::of_origin(&format!("{scheme}://{authority}"))
    }

    fn of_origin(origin: &str) -> Option<Self> {
        let (scheme, authority) = origin.split_once("://")?;
        let scheme = [HttpScheme::Http, HttpScheme::Https]
            .into_iter()
            .find(|it| it.as_str().eq_ignore_ascii_case(scheme))?;
        let HostPort { host, port } = HostPort::parse(authority)?;
        Some(Self { scheme, host, port: port.unwrap_or(scheme.default_port()) })
    }

    /// True if a `Host` header or an `:authority` with this value names the hub.
    pub fn is_host(&self, value: &HostPort) -> bool {
        self.host == value.host && self.port == value.port.unwrap_or(self.scheme.default_port())
    }

    /// True if an `Origin` header with this value comes from a page of the hub.
    pub fn is_origin(&self, value: &str) -> bool {
        Self::of_origin(value).is_some_and(|origin| origin == *self)
    }

    /// True if the scheme is `https`.
    pub fn is_tls(&self) -> bool {
        self.scheme == HttpScheme::Https
    }

    /// True if the name leads to this machine, or to a port that its user forwards.
    pub fn is_loopback(&self) -> bool {
        loopback_of(&self.host).is_some()
    }
}

/// Value of a `Host` header: a host, and a port unless that is the scheme's default (RFC 9110,
/// section 7.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    host: String,
    port: Option<u16>,
}

impl HostPort {
    /// Parses a host and an optional port; none if the syntax is invalid (RFC 3986, section 3.2).
    /// User information, percent encoding and an empty port are invalid here.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                match port.strip_prefix(':') {
                    None if !port.is_empty() => return None,
                    port => (address, port),
                }
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some(port.parse().ok()?),
            Some(_) => return None,
            None => None,
        };
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':');
        let is_valid = !host.is_empty() && host != "." && host.bytes().all(is_name);
        is_valid.then(|| Self { host: normal_host(host), port })
    }
}

impl TryFrom<String> for HttpName {
    type Error = InvalidHttpName;

    fn try_from(text: String) -> Result<Self, InvalidHttpName> {
        Self::parse(&text)
    }
}

impl From<HttpName> for String {
    fn from(name: HttpName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for HttpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        let is_v6 = host.contains(':');
        let (open, close) = if is_v6 { ("[", "]") } else { ("", "") };
        write!(f, "{}://{open}{host}{close}", scheme.as_str())?;
        if *port == scheme.default_port() { Ok(()) } else { write!(f, ":{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HttpName {
        HttpName::parse(text).unwrap()
    }

    #[test]
    fn host_header_names_hub() {
        let is = |known: &str, host: &str| {
            HostPort::parse(host).is_some_and(|host| name(known).is_host(&host))
        };
        for (known, host, expected) in [
            ("https://hub.example", "hub.example", true),
            ("https://hub.example", "HUB.Example", true),
            ("https://hub.example", "hub.example.", true),
            ("https://hub.example", "hub.example:443", true),
            ("https://hub.example", "hub.example:80", false),
            ("https://hub.example", "hub.example:8443", false),
            ("https://hub.example", "hub.example..", false),
            ("https://hub.example", "hub.example.evil.example", false),
            ("https://hub.example", "evilhub.example", false),
            ("https://hub.example:8443", "hub.example:8443", true),
            ("https://hub.example:8443", "hub.example", false),
            ("http://hub.example", "hub.example:80", true),
            ("http://localhost:9000", "localhost:9000", true),
            ("http://localhost:9000", "localhost:09000", true),
            ("http://localhost:9000", "localhost:90000", false),
            ("http://localhost:9000", "localhost:+9000", false),
            ("http://localhost:9000", "localhost:", false),
            ("http://localhost:9000", "localhost", false),
            ("http://[::1]:9000", "[::1]:9000", true),
            ("http://[::1]:9000", "[0:0:0:0:0:0:0:1]:9000", true),
            ("http://[::1]:9000", "::1:9000", false),
            ("http://127.0.0.1:9000", "[::ffff:127.0.0.1]:9000", true),
            ("http://127.0.0.1:9000", "127.1:9000", false),
            ("http://127.0.0.1:9000", "2130706433:9000", false),
        ] {
            assert_eq!(is(known, host), expected, "{known} {host}");
        }
    }

    #[test]
    fn invalid_host_header_has_no_value() {
        for invalid in [
            "",
            ".",
            ":80",
            "a b",
            "me@hub.example",
            "hub.example/x",
            "hub.example,evil.example",
            "hub%2eexample",
            "[::1",
            "[::1]x",
            "[hub.example]",
            "[fe80::1%25lo]",
            "hüb.example",
        ] {
            assert_eq!(HostPort::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn origin_needs_scheme_host_and_port() {
        let hub = name("https://hub.example");
        for own in ["https://hub.example", "HTTPS://Hub.Example", "https://hub.example:443"] {
            assert!(hub.is_origin(own), "{own}");
        }
        for foreign in [
            "http://hub.example",
            "https://hub.example:80",
            "https://hub.example/",
            "null",
            "",
            "hub.example",
            "https://",
            "https://evil.example",
            "https://me@hub.example",
            "https://hub.example, https://evil.example",
            "chrome-extension://hub.example",
        ] {
            assert!(!hub.is_origin(foreign), "{foreign}");
        }
    }

    #[test]
    fn name_is_written_in_one_form() {
        for (text, form) in [
            ("https://Hub.Example/", "https://hub.example"),
            ("https://hub.example:443", "https://hub.example"),
            ("HTTP://localhost:9000", "http://localhost:9000"),
            ("http://[0::1]:80", "http://[::1]"),
        ] {
            assert_eq!(name(text).to_string(), form);
            assert_eq!(name(form), name(text));
        }
        for invalid in [
            "hub.example",
            "https://",
            "https://hub.example/x",
            "https://hub.example?x",
            "https://*.example",
            "ftp://hub.example",
            "https://me@hub.example",
            "*",
        ] {
            let why = HttpName::parse(invalid).unwrap_err().to_string();
            assert!(why.contains("such as `https://hub.example`"), "{why}");
        }
        assert_eq!(HttpName::of_url("https://hub.example/x/y"), Some(name("https://hub.example")));
        assert_eq!(HttpName::of_url("https:///x"), None);
        let loopback =
            ["http://localhost:1", "http://127.0.0.9", "http://[::1]", "http://a.localhost"];
        assert!(loopback.iter().all(|it| name(it).is_loopback()));
        assert!(
            !name("https://hub.example").is_loopback() && !name("http://10.0.0.1").is_loopback()
        );
    }
}
