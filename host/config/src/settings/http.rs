//! Settings of the HTTP server: its address, and the names under which it is called.

use a2a_hub_core::http_name::HttpName;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `[http]`: the HTTP server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// True if HTTP is served.
    pub enabled: bool,
    /// The address to listen on. Any other than loopback needs `[tls]`.
    pub host: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub port: u16,
    /// Further names under which clients call the hub, such as those of a proxy or of a forwarded
    /// port: `https://hub.example`, `http://localhost:9000`. If one of them leads here from other
    /// machines, clients over HTTP need a token.
    pub names: Vec<HttpName>,
}

impl Default for Http {
    fn default() -> Self {
        Self { enabled: true, host: Ipv4Addr::LOCALHOST.into(), port: 8080, names: Vec::new() }
    }
}

impl Http {
    /// The address and the port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::read_checked;

    #[test]
    fn names_are_origins_in_one_form() {
        let names = |text: &str| {
            let config = read_checked(&format!("http.names = {text}"))?;
            let names: Vec<_> = config.http.names.iter().map(ToString::to_string).collect();
            Ok::<_, String>(names.join(" "))
        };
        let good = names("['https://Hub.example/', 'http://localhost:9000', 'http://[::1]:80']");
        assert_eq!(good.unwrap(), "https://hub.example http://localhost:9000 http://[::1]");
        for wrong in ["['hub.example']", "['https://hub.example/a2a']", "['https://*.example']"] {
            let why = names(wrong).unwrap_err();
            assert!(why.contains("is no name for a hub: write scheme, host and port"), "{why}");
        }
        assert!(names("'https://hub.example'").is_err(), "it is a list");
    }
}
