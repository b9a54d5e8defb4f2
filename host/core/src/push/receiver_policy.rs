//! Checks of notification receivers. A client chooses the URL, and must not make the hub send
//! requests into its operator's network (server-side request forgery, SSRF).
//!
//! The check has two steps: first the URL, then all addresses of its host, each time before one is
//! dialled.

use crate::push::address_scope::{Reach, loopback_of, normal_host, reach};
use std::net::IpAddr;

/// Receiver policy of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Hosts that may have private addresses, use plain HTTP, and listen on any port: names or
    /// addresses as they appear in the URL, without the brackets of IPv6, or `*` for all.
    pub trusted: Vec<String>,
}

/// Reason why a receiver is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiverRefusal {
    /// The scheme is neither HTTP nor HTTPS.
    #[error("`{0}:` is not a supported scheme; use https")]
    Scheme(String),
    /// Plain HTTP is readable on the way.
    #[error(
        "`{host}` would be told without encryption; use https, or have the operator add it to `push.trusted_hosts`"
    )]
    Plain {
        /// Host of the URL.
        host: String,
    },
    /// The port is not one of a web server.
    #[error(
        "port {port} of `{host}` is none of a web server: use 443 or one from 1024 on, or have the operator add the host \
         to `push.trusted_hosts`"
    )]
    Port {
        /// Host of the URL.
        host: String,
        /// Effective port of the URL.
        port: u16,
    },
    /// The name has no address.
    #[error("`{host}` has no address")]
    Nowhere {
        /// Host of the URL.
        host: String,
    },
    /// The address is in the operator's network.
    #[error(
        "`{host}` is {address}, a private address; the operator can add it to `push.trusted_hosts`"
    )]
    Private {
        /// Host of the URL.
        host: String,
        /// Address of the host.
        address: IpAddr,
    },
    /// The address belongs to no server: link-local, multicast, unspecified (SSRF).
    #[error("`{host}` is {address}, where nothing may be sent")]
    Never {
        /// Host of the URL.
        host: String,
        /// Address of the host.
        address: IpAddr,
    },
}

impl Rules {
    /// Checks a URL by itself. `port` is its explicit or default port. A name for this machine is
    /// refused without a lookup, which may fail and say nothing.
    pub fn admit(&self, scheme: &str, host: &str, port: u16) -> Result<(), ReceiverRefusal> {
        let trusted = self.trusts(host);
        let loopback = loopback_of(host).filter(|_| !trusted && scheme == "https");
        let host = host.to_owned();
        if let Some(address) = loopback {
            return Err(ReceiverRefusal::Private { host, address });
        }
        match scheme {
            "http" if !trusted => Err(ReceiverRefusal::Plain { host }),
            "https" if !trusted && port != 443 && port < 1024 => {
                Err(ReceiverRefusal::Port { host, port })
            }
            "http" | "https" => Ok(()),
            other => Err(ReceiverRefusal::Scheme(other.to_owned())),
        }
    }

    /// Checks all addresses of a host before it is dialled. One forbidden address rejects the host,
    /// because the name's DNS server chooses which one is used.
    pub fn dial(&self, host: &str, addresses: &[IpAddr]) -> Result<(), ReceiverRefusal> {
        if addresses.is_empty() {
            return Err(ReceiverRefusal::Nowhere { host: host.to_owned() });
        }
        let trusted = self.trusts(host);
        for &address in addresses {
            let host = host.to_owned();
            match reach(address) {
                Reach::Public => {}
                Reach::Private if trusted => {}
                Reach::Private => return Err(ReceiverRefusal::Private { host, address }),
                Reach::Never => return Err(ReceiverRefusal::Never { host, address }),
            }
        }
        Ok(())
    }

    fn trusts(&self, host: &str) -> bool {
        let host = normal_host(host);
        self.trusted.iter().any(|trusted| trusted == "*" || normal_host(trusted) == host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(outcome: Result<(), ReceiverRefusal>) -> String {
        outcome.map_or_else(|why| why.to_string(), |()| "fine".to_owned())
    }

    /// However a client writes the name of this machine, it is no receiver unless it is trusted.
    #[test]
    fn loopback_spellings_are_refused_and_trusted_alike() {
        let hosts = [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost.",
            "127.0.0.1",
            "::1",
            "::ffff:7f00:1",
        ];
        for host in hosts {
            let refused = Rules::default().admit("https", host, 443);
            assert!(matches!(refused, Err(ReceiverRefusal::Private { .. })), "{host}: {refused:?}");
        }
        let trusting = |host: &str| Rules { trusted: vec![host.to_owned()] };
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        for (trusted, host) in [
            ("localhost", "localhost."),
            ("LocalHost.", "localhost"),
            ("127.0.0.1", "::ffff:7f00:1"),
            ("[::1]", "::1"),
        ] {
            assert_eq!(trusting(trusted).admit("http", host, 80), Ok(()), "{trusted} {host}");
            assert_eq!(trusting(trusted).dial(host, &[loopback]), Ok(()), "{trusted} {host}");
        }
        assert_eq!(trusting("localhost").admit("https", "localhost.example", 443), Ok(()));
    }

    #[test]
    fn url_scheme_and_port_are_checked() {
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
        `ftp:` is not a supported scheme; use https
        ");
    }

    #[test]
    fn one_forbidden_address_rejects_host() {
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
