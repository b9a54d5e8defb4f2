//! HTTP permissions of an agent: the requests of its manifest, the grant of the operator, and the
//! check of one request against both.
//!
//! Each request is checked twice, like notifications (`receiver`): first its URL, then all
//! addresses of its host before one is dialled (server-side request forgery, DNS rebinding). A
//! redirect is returned as an ordinary response; the agent must request its target itself.

use crate::{
    grant::{
        host_pattern::{HostPattern, address, canonical},
        http_header::{HeaderName, HeaderTemplate, is_token},
    },
    push::address_scope::{Reach, reach},
    text::one_line::OneLine,
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};
use url::Url;

/// Maximum length of a URL in bytes. RFC 9110, 4.1, asks for 8,000.
const MAX_URL: usize = 8_192;

/// Maximum length of a URL in a refusal, in bytes.
const MAX_REFUSAL_URL: usize = 200;

/// Request of a component to send HTTP requests to a host, in its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpAsk {
    /// Methods; `GET` and `HEAD` by default.
    pub methods: Option<Methods>,
    /// Ports; by default those that the operator allows, or 443 if the operator names none either.
    pub ports: Option<BTreeSet<u16>>,
    /// Path prefixes; all paths by default.
    pub paths: Option<Paths>,
    /// Reason, in the words of the component's author.
    pub reason: Option<OneLine>,
}

impl HttpAsk {
    fn methods(&self) -> Methods {
        let reading = || Methods(["GET", "HEAD"].map(str::to_owned).into());
        self.methods.clone().unwrap_or_else(reading)
    }

    /// One-line description for the operator.
    pub fn describe(&self, host: &HostPattern) -> String {
        let listed = |items: Vec<String>| items.join(", ");
        let methods = listed(self.methods().0.into_iter().collect());
        let host = String::from(host.clone());
        let ports = self.ports.as_ref().map_or_else(String::new, |ports| {
            format!(", ports {}", listed(ports.iter().map(u16::to_string).collect()))
        });
        let paths = self
            .paths
            .as_ref()
            .map_or_else(String::new, |Paths(paths)| format!(", paths {}", listed(paths.clone())));
        format!("send requests to `{host}` ({methods}{ports}{paths})")
    }
}

/// Permission to send requests to a host. A field that is left out is as the agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpGrant {
    /// Restricts the methods.
    pub methods: Option<Methods>,
    /// Restricts the ports.
    pub ports: Option<BTreeSet<u16>>,
    /// Restricts the path prefixes.
    pub paths: Option<Paths>,
    /// Scheme; HTTPS by default.
    pub scheme: Scheme,
    /// True if the host may have addresses of this machine or of the operator's own network.
    pub private: bool,
    /// Headers that the hub sets in each request, replacing the agent's own. The agent sees none of
    /// them.
    pub headers: BTreeMap<HeaderName, HeaderTemplate>,
}

/// Scheme of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// HTTP over TLS.
    #[default]
    Https,
    /// HTTP without encryption.
    Http,
}

impl Scheme {
    /// The scheme as it appears in a URL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// HTTP methods, spelled as in requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeSet<String>", into = "BTreeSet<String>")]
pub struct Methods(BTreeSet<String>);

/// Path prefixes: `/v1` is `/v1` itself and everything below it, `/v1/` only what is below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Paths(Vec<String>);

/// Error for an invalid grant of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHttpGrant {
    /// Not a method, or one that opens a tunnel or reflects requests.
    #[error(
        "allow the method `{0}`: name one in capitals, such as `POST`; `CONNECT` and `TRACE` are never sent"
    )]
    Method(String),
    /// Not a path prefix.
    #[error(
        "allow the path `{0}`: begin with `/`, and say it without `.` and `..` as names, without `?`, `#`, `%`, `\\`, `//` and `;`"
    )]
    Path(String),
    /// Private addresses need a grant for one exact host.
    #[error(
        "allow private addresses for `{0}`: `private = true` is for one host that is named whole"
    )]
    Private(String),
    /// A secret needs a grant for a named host or domain.
    #[error("send a secret to `{0}`: name a host, or the domain that its hosts lie in")]
    Secret(String),
}

impl TryFrom<BTreeSet<String>> for Methods {
    type Error = InvalidHttpGrant;

    fn try_from(methods: BTreeSet<String>) -> Result<Self, InvalidHttpGrant> {
        match methods.iter().find(|method| !is_method(method)) {
            Some(wrong) => Err(InvalidHttpGrant::Method(wrong.clone())),
            None => Ok(Self(methods)),
        }
    }
}

impl From<Methods> for BTreeSet<String> {
    fn from(methods: Methods) -> Self {
        methods.0
    }
}

fn is_method(method: &str) -> bool {
    let never = ["CONNECT", "TRACE", "TRACK"];
    is_token(method)
        && !method.contains(|c: char| c.is_ascii_lowercase())
        && !never.contains(&method)
}

impl TryFrom<Vec<String>> for Paths {
    type Error = InvalidHttpGrant;

    fn try_from(paths: Vec<String>) -> Result<Self, InvalidHttpGrant> {
        let fits = |path: &str| {
            let plain =
                path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#%\\;".contains(&byte));
            let dots = path.split('/').any(|name| name == "." || name == "..");
            path.starts_with('/') && plain && !dots && !path.contains("//")
        };
        match paths.iter().find(|path| !fits(path)) {
            Some(wrong) => Err(InvalidHttpGrant::Path(wrong.clone())),
            None => Ok(Self(paths)),
        }
    }
}

impl From<Paths> for Vec<String> {
    fn from(paths: Paths) -> Self {
        paths.0
    }
}

impl Paths {
    /// True if a path lies below one of the prefixes for every server. A path that a server could
    /// read as another one is below none.
    fn covers(&self, path: &str) -> bool {
        let begins = |prefix: &String| {
            let rest = path.strip_prefix(prefix.as_str());
            rest.is_some_and(|rest| {
                prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/')
            })
        };
        let all = |prefix: &String| prefix == "/";
        self.0.iter().any(all) || (!is_ambiguous(path) && self.0.iter().any(begins))
    }
}

/// True if a server may decode a path to a different one: an encoded dot, slash, backslash, NUL or
/// percent sign, parameters after a `;`, or an empty segment.
fn is_ambiguous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["%2e", "%2f", "%5c", "%00", "%25", ";", "%3b", "//", "\\"]
        .iter()
        .any(|trick| path.contains(trick))
}

/// Hosts that the operator allows an agent, with the permission for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<HostPattern, HttpGrant>", into = "BTreeMap<HostPattern, HttpGrant>")]
pub struct HttpGrants(BTreeMap<HostPattern, HttpGrant>);

impl TryFrom<BTreeMap<HostPattern, HttpGrant>> for HttpGrants {
    type Error = InvalidHttpGrant;

    fn try_from(grants: BTreeMap<HostPattern, HttpGrant>) -> Result<Self, InvalidHttpGrant> {
        for (host, grant) in &grants {
            let host_name = || String::from(host.clone());
            if grant.private && !matches!(host, HostPattern::Exact(_)) {
                return Err(InvalidHttpGrant::Private(host_name()));
            }
            let has_secret = grant.headers.values().any(|value| value.secrets().next().is_some());
            if has_secret && *host == HostPattern::Any {
                return Err(InvalidHttpGrant::Secret(host_name()));
            }
        }
        Ok(Self(grants))
    }
}

impl From<HttpGrants> for BTreeMap<HostPattern, HttpGrant> {
    fn from(grants: HttpGrants) -> Self {
        grants.0
    }
}

impl HttpGrants {
    /// True if no host is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the grant explicit: writes down everything left out and therefore as `requested`, so
    /// that no later manifest widens it.
    #[must_use]
    pub fn settled(mut self, requested: &BTreeMap<HostPattern, HttpAsk>) -> Self {
        for (host, grant) in &mut self.0 {
            let named = String::from(host.clone());
            let meant: Vec<_> = requested
                .iter()
                .filter(|(ask, _)| {
                    ask.matches(&named) || host.matches(&String::from((*ask).clone()))
                })
                .map(|(_, ask)| ask)
                .collect();
            if grant.methods.is_none() {
                let all = meant.iter().flat_map(|ask| ask.methods().0);
                grant.methods = Some(Methods(all.collect()));
            }
            if grant.ports.is_none() {
                let usual = BTreeSet::from([grant.scheme.port()]);
                let all = meant.iter().flat_map(|ask| ask.ports.as_ref().unwrap_or(&usual));
                grant.ports = Some(all.copied().collect());
            }
            // If one matching line asks for all paths, all are granted.
            let paths: Option<Vec<_>> = meant.iter().map(|ask| ask.paths.as_ref()).collect();
            if let (None, Some(paths)) = (&grant.paths, paths) {
                grant.paths =
                    Some(Paths(paths.into_iter().flat_map(|Paths(all)| all.clone()).collect()));
            } else if grant.paths.is_none() {
                grant.paths = Some(Paths(vec!["/".to_owned()]));
            }
        }
        self
    }

    /// Iterates over the hosts with their permissions.
    pub fn iter(&self) -> impl Iterator<Item = (&HostPattern, &HttpGrant)> {
        self.0.iter()
    }
}

/// Effective HTTP permissions of a guest: a request must match both the manifest and the grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveHttp {
    requested: BTreeMap<HostPattern, HttpAsk>,
    granted: HttpGrants,
}

/// Request whose URL was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Method of the request.
    pub method: String,
    /// URL in its normal form, without a fragment.
    pub url: String,
    /// Headers that the hub sets.
    pub headers: BTreeMap<HeaderName, HeaderTemplate>,
}

impl Admitted {
    /// True if the hub adds a secret to the request.
    pub fn has_secrets(&self) -> bool {
        self.headers.values().any(|value| value.secrets().next().is_some())
    }
}

/// Reason why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpRefusal {
    /// The URL is invalid or ambiguous.
    #[error("send a request: {0}")]
    Url(&'static str),
    /// Not a method, or one that is never sent.
    #[error(
        "send a request by this method: say one in capitals, such as `POST`; `CONNECT` and `TRACE` are never sent"
    )]
    Method,
    /// The component's own manifest does not ask for the host.
    #[error(
        "send a request to `{host}`: this agent's manifest does not ask for it; an agent reaches only what its `[http.\"{host}\"]` names"
    )]
    NotRequested {
        /// Host of the URL.
        host: String,
    },
    /// The operator did not grant the host.
    #[error(
        "send a request to `{host}`: not granted; the operator allows it with `[agents.{agent}.grant.http.\"{host}\"]` in the hub's configuration, or to a plug-in with `a2a-hub plugin grant {agent} --http {host}`"
    )]
    NotGranted {
        /// Host of the URL.
        host: String,
        /// Agent that asked to send it.
        agent: String,
    },
    /// The host is granted, but not this request.
    #[error("send `{method} {url}`: {whose} allows there only {only}")]
    Narrower {
        /// Method of the request.
        method: String,
        /// URL without its query, shortened.
        url: String,
        /// Restricting side: the manifest, or the operator's grant by name.
        whose: String,
        /// Allowed values.
        only: String,
    },
    /// The host is on this machine, or in the operator's own network.
    #[error(
        "send a request to `{host}`: it is {address}, a private address; the operator allows that with `private = true` in the \
         grant of that very host"
    )]
    Private {
        /// Host of the URL.
        host: String,
        /// Address of the host.
        address: IpAddr,
    },
    /// The address belongs to no public server: link-local, multicast, metadata.
    #[error("send a request to `{host}`: it is {address}, where nothing may be sent")]
    Never {
        /// Host of the URL.
        host: String,
        /// Address of the host.
        address: IpAddr,
    },
    /// The name has no address.
    #[error("send a request to `{host}`: it has no address")]
    Nowhere {
        /// Host of the URL.
        host: String,
    },
}

impl HttpRefusal {
    /// True if the request is invalid for every agent.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Method)
    }
}

/// Fields of a request that grants restrict.
struct Wanted<'r> {
    method: &'r str,
    scheme: &'r str,
    host: &'r str,
    port: u16,
    path: &'r str,
}

impl EffectiveHttp {
    /// Intersects the requests with the grants.
    pub fn new(requested: &BTreeMap<HostPattern, HttpAsk>, granted: &HttpGrants) -> Self {
        Self { requested: requested.clone(), granted: granted.clone() }
    }

    /// True if no request can be sent at all.
    pub fn is_empty(&self) -> bool {
        self.requested.is_empty() || self.granted.is_empty()
    }

    /// Requested hosts that no line of the grant names.
    pub fn not_granted(&self) -> impl Iterator<Item = String> {
        let is_granted = |requested: &HostPattern| {
            let named = String::from(requested.clone());
            self.granted.iter().any(|(granted, _)| {
                granted.matches(&named) || requested.matches(&String::from(granted.clone()))
            })
        };
        self.requested
            .keys()
            .filter(move |requested| !is_granted(requested))
            .cloned()
            .map(String::from)
    }

    /// Names of all secrets in the hub's headers.
    pub fn secrets(&self) -> BTreeSet<String> {
        let headers = self.granted.iter().flat_map(|(_, grant)| grant.headers.values());
        headers.flat_map(HeaderTemplate::secrets).map(str::to_owned).collect()
    }

    /// Checks the URL of a request by `agent`, and returns the admitted request.
    pub fn admit(&self, agent: &str, method: &str, url: &str) -> Result<Admitted, HttpRefusal> {
        if !is_method(method) {
            return Err(HttpRefusal::Method);
        }
        let url = read(url)?;
        let host = url.host().and_then(|host| canonical(&host));
        let host = host.ok_or(HttpRefusal::Url("say the host without a final dot"))?;
        let port = url.port_or_known_default().unwrap_or(0);
        let wanted = Wanted { method, scheme: url.scheme(), host: &host, port, path: url.path() };
        let grant = self.grant_of(agent, &wanted)?;
        if let Some(address) = address(&host) {
            self.dial(&host, &[address])?;
        }
        Ok(Admitted { method: method.to_owned(), url: url.into(), headers: grant.headers.clone() })
    }

    /// Checks all addresses of a host before it is dialled. One forbidden address rejects the host,
    /// because the name's DNS server chooses which one is used.
    pub fn dial(&self, host: &str, addresses: &[IpAddr]) -> Result<(), HttpRefusal> {
        let host = host.to_ascii_lowercase();
        if addresses.is_empty() {
            return Err(HttpRefusal::Nowhere { host });
        }
        let named = HostPattern::Exact(host.clone());
        let may_be_private = self.granted.0.get(&named).is_some_and(|grant| grant.private);
        for &address in addresses {
            let host = host.clone();
            match reach(address) {
                Reach::Public => {}
                Reach::Private if may_be_private => {}
                Reach::Private => return Err(HttpRefusal::Private { host, address }),
                Reach::Never => return Err(HttpRefusal::Never { host, address }),
            }
        }
        Ok(())
    }

    /// Finds a grant that allows the request together with a line of the manifest. The most
    /// specific lines for the host come first, and a refusal names them.
    fn grant_of(&self, agent: &str, wanted: &Wanted<'_>) -> Result<&HttpGrant, HttpRefusal> {
        let host = || wanted.host.to_owned();
        let requested = closest(self.requested.iter(), wanted.host);
        if requested.is_empty() {
            return Err(HttpRefusal::NotRequested { host: host() });
        }
        let granted = closest(self.granted.iter(), wanted.host);
        let mut refusal = HttpRefusal::NotGranted { host: host(), agent: agent.to_owned() };
        for (nth, &(_, grant)) in granted.iter().enumerate() {
            for (mth, &(_, ask)) in requested.iter().enumerate() {
                let Err((whose, only)) = fits(ask, grant, wanted) else { return Ok(grant) };
                if (nth, mth) == (0, 0) {
                    refusal = wanted.refusal(agent, whose, only);
                }
            }
        }
        Err(refusal)
    }
}

/// Lines that match a host, most specific first.
fn closest<'g, T>(
    lines: impl Iterator<Item = (&'g HostPattern, &'g T)>,
    host: &str,
) -> Vec<(&'g HostPattern, &'g T)> {
    let mut lines: Vec<_> = lines.filter(|(pattern, _)| pattern.matches(host)).collect();
    lines.sort_by_key(|(pattern, _)| Reverse(pattern.rank()));
    lines
}

/// Side that restricts a request.
#[derive(Clone, Copy)]
enum Whose {
    Manifest,
    Grant,
}

/// Checks a request against both lines; the error names the restricting side and the allowed
/// values.
fn fits(ask: &HttpAsk, grant: &HttpGrant, wanted: &Wanted<'_>) -> Result<(), (Whose, String)> {
    use Whose::{Grant, Manifest};
    if wanted.scheme != grant.scheme.word() {
        return Err((Grant, format!("`{}:`", grant.scheme.word())));
    }
    let usual = BTreeSet::from([grant.scheme.port()]);
    let ports = match (&ask.ports, &grant.ports) {
        (None, None) => [(Grant, Some(&usual)), (Manifest, None)],
        (requested, granted) => [(Grant, granted.as_ref()), (Manifest, requested.as_ref())],
    };
    for (whose, ports) in ports {
        if let Some(ports) = ports.filter(|ports| !ports.contains(&wanted.port)) {
            let allowed: Vec<_> = ports.iter().map(u16::to_string).collect();
            return Err((whose, format!("the ports {}", allowed.join(", "))));
        }
    }
    let requested = ask.methods();
    for (whose, methods) in [(Grant, grant.methods.as_ref()), (Manifest, Some(&requested))] {
        if let Some(Methods(methods)) = methods.filter(|methods| !methods.0.contains(wanted.method))
        {
            let allowed: Vec<_> = methods.iter().map(String::as_str).collect();
            return Err((whose, format!("the methods {}", allowed.join(", "))));
        }
    }
    for (whose, paths) in [(Grant, grant.paths.as_ref()), (Manifest, ask.paths.as_ref())] {
        if let Some(Paths(paths)) = paths.filter(|paths| !paths.covers(wanted.path)) {
            let allowed = paths.join(", ");
            return Err((whose, format!("plain paths that begin with {allowed}")));
        }
    }
    Ok(())
}

impl Wanted<'_> {
    fn refusal(&self, agent: &str, whose: Whose, only: String) -> HttpRefusal {
        let Self { method, scheme, host, port, path } = self;
        let mut url = format!("{scheme}://{host}:{port}{path}");
        if url.len() > MAX_REFUSAL_URL {
            url.truncate(url.floor_char_boundary(MAX_REFUSAL_URL));
            url.push('…');
        }
        let whose = match whose {
            Whose::Manifest => "the agent's own manifest".to_owned(),
            Whose::Grant => format!("the operator's `[agents.{agent}.grant.http]`"),
        };
        HttpRefusal::Narrower { method: (*method).to_owned(), url, whose, only }
    }
}

/// Parses a URL, and rejects texts that other parsers could read differently.
fn read(text: &str) -> Result<Url, HttpRefusal> {
    let wrong = |why| Err(HttpRefusal::Url(why));
    if text.len() > MAX_URL {
        return wrong("its URL is longer than 8192 bytes");
    }
    // Parsers disagree about these: some drop them.
    if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\') {
        return wrong(
            "its URL has spaces, control characters or backslashes; encode them with `%`",
        );
    }
    let Ok(mut url) = Url::parse(text) else {
        return wrong(
            "its URL cannot be read; say a whole one, such as `https://api.example.com/v1`",
        );
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return wrong(
            "its URL is none of HTTP; say a whole one, such as `https://api.example.com/v1`",
        );
    }
    if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
        return wrong("its URL has a name before the host; who asks is said in a header");
    }
    url.set_fragment(None);
    Ok(url)
}

/// Authority of a URL: the text between `//` and the path.
fn authority(url: &str) -> &str {
    let rest = url.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
