//! Host patterns in grants. Hosts are compared in the normal form of URLs: lower case, punycode,
//! and normalised addresses.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};
use url::Host;

/// Pattern for a host, all hosts below a domain (`*.example.com`), or any host (`*`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// This host only.
    Exact(String),
    /// Hosts below this domain, but not the domain itself.
    Below(String),
    /// Any host.
    Any,
}

/// Error for an invalid host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "name the host `{0}`: say a name or an address alone, such as `api.example.com`, `*.example.com` or `127.0.0.1`, without a \
     scheme, port, path or final dot"
)]
pub struct InvalidHost(String);

impl HostPattern {
    /// True if `host`, in the form of [`canonical`], matches.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == host,
            Self::Below(domain) => host
                .strip_suffix(domain.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|name| !name.is_empty()),
            Self::Any => true,
        }
    }

    /// Specificity: of several matching patterns, the one with the highest rank takes precedence.
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
        let (is_wildcard, name) = match text.strip_prefix("*.") {
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
            // A pattern for a whole top-level domain is refused.
            Some(domain) if is_wildcard && !is_address && domain.contains('.') => {
                Ok(Self::Below(domain))
            }
            Some(host) if !is_wildcard => Ok(Self::Exact(host)),
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

/// Normal form of a URL's host; `None` if the name is empty, or has a final dot, which would be a
/// second name for the same host.
pub fn canonical<T: AsRef<str>>(host: &Host<T>) -> Option<String> {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            let is_valid = !name.is_empty() && !name.ends_with('.') && !name.contains('*');
            is_valid.then(|| name.to_ascii_lowercase())
        }
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_string()),
    }
}

/// Address of a host in the form of [`canonical`]; `None` if the host is a name.
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
    fn pattern_is_normalised_like_url_host() {
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
