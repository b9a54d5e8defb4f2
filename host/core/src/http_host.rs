//! Names of hosts in grants, as patterns, and what they match. Names are compared as URLs have them: in lower case, punycode,
//! and addresses in their one usual form.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};
use url::Host;

/// A host, all hosts below a domain (`*.example.com`), or any host (`*`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// This host only.
    Exact(String),
    /// Hosts whose names end like this, after a dot: never the domain itself.
    Below(String),
    /// Any host.
    Any,
}

/// A text that is no pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "name the host `{0}`: say a name or an address alone, such as `api.example.com`, `*.example.com` or `127.0.0.1`, without a \
     scheme, port, path or final dot"
)]
pub struct InvalidHost(String);

impl HostPattern {
    /// Whether `host` is one of these. The host is as [`canonical`] has it.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(own) => own == host,
            Self::Below(domain) => host
                .strip_suffix(domain.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|name| !name.is_empty()),
            Self::Any => true,
        }
    }

    /// How much it says: of two patterns that match a host, the higher one is meant more.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::Exact(_) => usize::MAX,
            Self::Below(domain) => domain.len(),
            Self::Any => 0,
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text.as_str()),
        };
        let host = match name.parse::<Ipv6Addr>() {
            Ok(address) => Ok(Host::Ipv6(address)),
            Err(_) => Host::parse(name),
        };
        let is_address = !matches!(host, Ok(Host::Domain(_)));
        let host = host.ok().and_then(|host| canonical(&host));
        match host {
            // Of a whole top level domain nobody can speak.
            Some(domain) if below && !is_address && domain.contains('.') => Ok(Self::Below(domain)),
            Some(host) if !below => Ok(Self::Exact(host)),
            Some(_) | None => Err(InvalidHost(text)),
        }
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        match pattern {
            HostPattern::Exact(host) => host,
            HostPattern::Below(domain) => format!("*.{domain}"),
            HostPattern::Any => "*".to_owned(),
        }
    }
}

/// A host of a URL in the one form in which names are compared; none if the name has a final dot, by which one host has two
/// names, or is empty.
pub fn canonical<T: AsRef<str>>(host: &Host<T>) -> Option<String> {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            let is_whole = !name.is_empty() && !name.ends_with('.') && !name.contains('*');
            is_whole.then(|| name.to_ascii_lowercase())
        }
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_string()),
    }
}

/// The address that a host is, if it is no name. The host is as [`canonical`] has it.
pub fn address(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<HostPattern, InvalidHost> {
        text.to_owned().try_into()
    }

    #[test]
    fn a_pattern_is_read_in_the_form_of_urls() {
        let cases = [
            ("API.Example.com", Some("api.example.com")),
            ("*.Example.com", Some("*.example.com")),
            ("*", Some("*")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("::1", Some("::1")),
            ("[::1]", Some("::1")),
            ("localhost", Some("localhost")),
            ("example.com.", None),
            ("*.com", None),
            ("*.127.0.0.1", None),
            ("a.*.example.com", None),
            ("*example.com", None),
            ("https://example.com", None),
            ("example.com:8080", None),
            ("example.com/v1", None),
            ("user@example.com", None),
            ("", None),
            ("*.", None),
        ];
        for (text, read) in cases {
            let pattern = pattern(text).ok().map(String::from);
            assert_eq!(pattern.as_deref(), read, "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_whole_labels() {
        let cases = [
            ("api.example.com", "api.example.com", true),
            ("api.example.com", "x.api.example.com", false),
            ("*.example.com", "api.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("*.example.com", "example.com.evil.net", false),
            ("*", "anything", true),
        ];
        for (text, host, matches) in cases {
            assert_eq!(pattern(text).unwrap().matches(host), matches, "{text} {host}");
        }
    }
}
