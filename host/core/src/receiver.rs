//! Where notifications may be sent: the URL was chosen by a client, who must not make the hub knock at its operator's own doors
//! (server-side request forgery, SSRF).
//!
//! Asked twice: what the URL says, and then which addresses its name has, all of them, each time one is to be dialled.

use crate::address::{Reach, reach};
use std::net::IpAddr;

/// What the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Hosts that may be private addresses, speak plain HTTP, and listen on any port: names or addresses as they stand in
    /// the URL, without the brackets of IPv6, or `*` for all.
    pub trusted: Vec<String>,
}

/// Why nothing is sent there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Neither HTTP nor HTTPS.
    #[error("`{0}:` is not spoken here; use https")]
    Scheme(String),
    /// Everybody on the way could read it.
    #[error(
        "`{host}` would be told without encryption; use https, or have the operator add it to `push.trusted_hosts`"
    )]
    Plain {
        /// The host that the URL names.
        host: String,
    },
    /// What listens there is hardly a web server.
    #[error(
        "port {port} of `{host}` is none of a web server: use 443 or one from 1024 on, or have the operator add the host \
         to `push.trusted_hosts`"
    )]
    Port {
        /// The host that the URL names.
        host: String,
        /// The port that the URL means.
        port: u16,
    },
    /// The name has no address.
    #[error("`{host}` has no address")]
    Nowhere {
        /// The host that the URL names.
        host: String,
    },
    /// It is the operator's own network.
    #[error(
        "`{host}` is {address}, a private address; the operator can add it to `push.trusted_hosts`"
    )]
    Private {
        /// The host that the URL names.
        host: String,
        /// The address that the host has.
        address: IpAddr,
    },
    /// Its address is no server of anybody: link-local, multicast, unspecified (SSRF).
    #[error("`{host}` is {address}, where nothing may be sent")]
    Never {
        /// The host that the URL names.
        host: String,
        /// The address that the host has.
        address: IpAddr,
    },
}

impl Rules {
    /// Whether a URL may be sent to, as far as it tells by itself. `port` is the one it means, said or not.
    pub fn admit(&self, scheme: &str, host: &str, port: u16) -> Result<(), Refusal> {
        let trusted = self.trusts(host);
        let host = host.to_owned();
        match scheme {
            "http" if !trusted => Err(Refusal::Plain { host }),
            "https" if !trusted && port != 443 && port < 1024 => Err(Refusal::Port { host, port }),
            "http" | "https" => Ok(()),
            other => Err(Refusal::Scheme(other.to_owned())),
        }
    }

    /// Whether a host may be dialled that has these addresses: one bad among them spoils them all, for who answers for
    /// the name chooses which is used.
    pub fn dial(&self, host: &str, addresses: &[IpAddr]) -> Result<(), Refusal> {
        if addresses.is_empty() {
            return Err(Refusal::Nowhere { host: host.to_owned() });
        }
        let trusted = self.trusts(host);
        for &address in addresses {
            let host = host.to_owned();
            match reach(address) {
                Reach::Public => {}
                Reach::Private if trusted => {}
                Reach::Private => return Err(Refusal::Private { host, address }),
                Reach::Never => return Err(Refusal::Never { host, address }),
            }
        }
        Ok(())
    }

    fn trusts(&self, host: &str) -> bool {
        self.trusted.iter().any(|trusted| trusted == "*" || trusted.eq_ignore_ascii_case(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(outcome: Result<(), Refusal>) -> String {
        outcome.map_or_else(|why| why.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn what_a_url_tells() {
        let rules = Rules { trusted: vec!["Intranet".into()] };
        let cases = [
            ("https", "example.com", 443),
            ("https", "example.com", 8443),
            ("https", "example.com", 25),
            ("http", "example.com", 80),
            ("http", "intranet", 80),
            ("https", "intranet", 25),
            ("ftp", "intranet", 21),
        ];
        let told = cases.map(|(scheme, host, port)| told(rules.admit(scheme, host, port)));
        insta::assert_snapshot!(told.join("\n"), @"
        fine
        fine
        port 25 of `example.com` is none of a web server: use 443 or one from 1024 on, or have the operator add the host to `push.trusted_hosts`
        `example.com` would be told without encryption; use https, or have the operator add it to `push.trusted_hosts`
        fine
        fine
        `ftp:` is not spoken here; use https
        ");
    }

    #[test]
    fn one_bad_address_spoils_them_all() {
        let trusting = |host: &str| Rules { trusted: vec![host.to_owned()] };
        let dial = |rules: &Rules, addresses: &[&str]| {
            let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            told(rules.dial("host", &addresses))
        };
        let nobody = Rules::default();
        let cases = [
            dial(&nobody, &["8.8.8.8", "2606:4700::1111"]),
            dial(&nobody, &["8.8.8.8", "127.0.0.1"]),
            dial(&nobody, &[]),
            dial(&trusting("host"), &["127.0.0.1", "8.8.8.8"]),
            dial(&trusting("*"), &["10.0.0.1"]),
            dial(&trusting("other"), &["10.0.0.1"]),
            dial(&trusting("*"), &["10.0.0.1", "169.254.169.254"]),
        ];
        insta::assert_snapshot!(cases.join("\n"), @"
        fine
        `host` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        `host` has no address
        fine
        fine
        `host` is 10.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        `host` is 169.254.169.254, where nothing may be sent
        ");
    }
}
