//! Where an agent may send requests by HTTP: what its manifest asks, what the operator allows, and whether one request lies in
//! both.
//!
//! A request is judged twice, as notifications are (`receiver`): what its URL says, and then which addresses its host has, all of
//! them, before one is dialled (server-side request forgery, DNS rebinding). A redirect is an answer like any other: where it
//! leads, the agent asks for itself, or does not get.

use crate::{
    address::{Reach, reach},
    http_header::{HeaderName, HeaderTemplate, is_token},
    http_host::{HostPattern, address, canonical},
    one_line::OneLine,
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};
use url::Url;

/// The longest URL, in bytes. RFC 9110, 4.1, asks for 8,000.
const MAX_URL: usize = 8_192;

/// What of a path is told in a refusal, in bytes.
const MAX_TOLD: usize = 200;

/// What a component would send to a host, as its manifest says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpAsk {
    /// The methods; `GET` and `HEAD` unless said.
    pub methods: Option<Methods>,
    /// The ports; whichever the operator allows unless said, which is 443 if the operator says none either.
    pub ports: Option<BTreeSet<u16>>,
    /// The beginnings of paths; all paths unless said.
    pub paths: Option<Paths>,
    /// Why, in the words of whoever wrote the component.
    pub reason: Option<OneLine>,
}

impl HttpAsk {
    fn methods(&self) -> Methods {
        let reading = || Methods(["GET", "HEAD"].map(str::to_owned).into());
        self.methods.clone().unwrap_or_else(reading)
    }

    /// What is asked for, in a line for the operator.
    pub fn told(&self, host: &HostPattern) -> String {
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

/// What the operator allows an agent to send to a host. What is left out is as the agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpGrant {
    /// Only these methods.
    pub methods: Option<Methods>,
    /// Only these ports.
    pub ports: Option<BTreeSet<u16>>,
    /// Only paths that begin like these.
    pub paths: Option<Paths>,
    /// What is spoken there: HTTPS unless said.
    pub scheme: Scheme,
    /// Whether the host may have addresses of this machine or of the operator's own network.
    pub private: bool,
    /// Headers that the hub puts into each request, in place of the agent's own of that name. The agent sees none of them.
    pub headers: BTreeMap<HeaderName, HeaderTemplate>,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// HTTP over TLS.
    #[default]
    Https,
    /// HTTP that everybody on the way can read.
    Http,
}

impl Scheme {
    /// As it stands in a URL.
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

/// Methods of HTTP, as requests spell them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeSet<String>", into = "BTreeSet<String>")]
pub struct Methods(BTreeSet<String>);

/// Beginnings of paths: `/v1` is `/v1` itself and what lies below it, `/v1/` only what lies below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Paths(Vec<String>);

/// Something that no grant of a host can say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHttpGrant {
    /// It is no method, or one that makes a tunnel or a mirror of the server.
    #[error(
        "allow the method `{0}`: name one in capitals, such as `POST`; `CONNECT` and `TRACE` are never sent"
    )]
    Method(String),
    /// It is no beginning of a path.
    #[error(
        "allow the path `{0}`: begin with `/`, and say it without `.` and `..` as names, without `?`, `#`, `%`, `\\`, `//` and `;`"
    )]
    Path(String),
    /// Which private hosts an agent reaches is said one by one.
    #[error(
        "allow private addresses for `{0}`: `private = true` is for one host that is named whole"
    )]
    Private(String),
    /// Who gets a secret is said by name.
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
    /// Whether a path lies below one of them, for whoever reads it. A path that a server may read as another one lies below none.
    fn hold(&self, path: &str) -> bool {
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

/// Whether a server may decode a path into one that lies elsewhere: an encoded dot, slash, backslash, NUL or percent sign,
/// parameters behind a `;`, an empty name.
fn is_ambiguous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["%2e", "%2f", "%5c", "%00", "%25", ";", "%3b", "//", "\\"]
        .iter()
        .any(|trick| path.contains(trick))
}

/// The hosts that the operator allows an agent, each with what may be sent there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<HostPattern, HttpGrant>", into = "BTreeMap<HostPattern, HttpGrant>")]
pub struct HttpGrants(BTreeMap<HostPattern, HttpGrant>);

impl TryFrom<BTreeMap<HostPattern, HttpGrant>> for HttpGrants {
    type Error = InvalidHttpGrant;

    fn try_from(grants: BTreeMap<HostPattern, HttpGrant>) -> Result<Self, InvalidHttpGrant> {
        for (host, grant) in &grants {
            let told = || String::from(host.clone());
            if grant.private && !matches!(host, HostPattern::Exact(_)) {
                return Err(InvalidHttpGrant::Private(told()));
            }
            let has_secret = grant.headers.values().any(|value| value.secrets().next().is_some());
            if has_secret && *host == HostPattern::Any {
                return Err(InvalidHttpGrant::Secret(told()));
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
    /// Whether no host is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same for good: what is left out, for it is as `asked`, is written down, so that no later manifest widens it.
    #[must_use]
    pub fn settled(mut self, asked: &BTreeMap<HostPattern, HttpAsk>) -> Self {
        for (host, grant) in &mut self.0 {
            let named = String::from(host.clone());
            let meant: Vec<_> = asked
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
            // Where one line asks for all paths, all are granted.
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

    /// Each host, with what may be sent there.
    pub fn iter(&self) -> impl Iterator<Item = (&HostPattern, &HttpGrant)> {
        self.0.iter()
    }
}

/// What a guest holds: a request must lie in what it asks, and in what it is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldHttp {
    asked: BTreeMap<HostPattern, HttpAsk>,
    granted: HttpGrants,
}

/// A request that may be sent, as far as its URL tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The method.
    pub method: String,
    /// The URL, in its one usual form and without a fragment.
    pub url: String,
    /// Headers that the hub puts in.
    pub headers: BTreeMap<HeaderName, HeaderTemplate>,
}

impl Admitted {
    /// Whether the hub puts a secret into the request.
    pub fn has_secrets(&self) -> bool {
        self.headers.values().any(|value| value.secrets().next().is_some())
    }
}

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpRefusal {
    /// The URL cannot be read, or not in one way only.
    #[error("send a request: {0}")]
    Url(&'static str),
    /// It is no method, or one that is never sent.
    #[error(
        "send a request by this method: say one in capitals, such as `POST`; `CONNECT` and `TRACE` are never sent"
    )]
    Method,
    /// The component's own manifest does not ask for the host.
    #[error(
        "send a request to `{host}`: this agent's manifest does not ask for it; an agent reaches only what its `[http.\"{host}\"]` names"
    )]
    NotAsked {
        /// The host of the URL.
        host: String,
    },
    /// The operator did not grant the host.
    #[error(
        "send a request to `{host}`: not granted; the operator allows it with `[agents.{agent}.grant.http.\"{host}\"]` in the hub's configuration, or to a plug-in with `a2a-hub plugin grant {agent} --http {host}`"
    )]
    NotGranted {
        /// The host of the URL.
        host: String,
        /// The agent that would send it.
        agent: String,
    },
    /// The host is granted, but not this request.
    #[error("send `{method} {url}`: {whose} allows there only {only}")]
    Narrower {
        /// The method.
        method: String,
        /// The URL without its query, shortened.
        url: String,
        /// The manifest, or the operator's grant, which is named.
        whose: String,
        /// What is allowed instead.
        only: String,
    },
    /// The host is of this machine, or of the operator's own network.
    #[error(
        "send a request to `{host}`: it is {address}, a private address; the operator allows that with `private = true` in the \
         grant of that very host"
    )]
    Private {
        /// The host of the URL.
        host: String,
        /// The address that it has.
        address: IpAddr,
    },
    /// Its address is no server of anybody: link-local, multicast, metadata.
    #[error("send a request to `{host}`: it is {address}, where nothing may be sent")]
    Never {
        /// The host of the URL.
        host: String,
        /// The address that it has.
        address: IpAddr,
    },
    /// The name has no address.
    #[error("send a request to `{host}`: it has no address")]
    Nowhere {
        /// The host of the URL.
        host: String,
    },
}

impl HttpRefusal {
    /// Whether the request makes no sense, whoever asks.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Method)
    }
}

/// A request, in the words that grants have.
struct Wanted<'r> {
    method: &'r str,
    scheme: &'r str,
    host: &'r str,
    port: u16,
    path: &'r str,
}

impl HeldHttp {
    /// The overlap of what is asked and granted.
    pub fn new(asked: &BTreeMap<HostPattern, HttpAsk>, granted: &HttpGrants) -> Self {
        Self { asked: asked.clone(), granted: granted.clone() }
    }

    /// Whether no request can be sent at all.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty() || self.granted.is_empty()
    }

    /// Hosts that are asked for, and that no line of the grant names.
    pub fn not_granted(&self) -> impl Iterator<Item = String> {
        let is_granted = |asked: &HostPattern| {
            let named = String::from(asked.clone());
            self.granted.iter().any(|(granted, _)| {
                granted.matches(&named) || asked.matches(&String::from(granted.clone()))
            })
        };
        self.asked.keys().filter(move |asked| !is_granted(asked)).cloned().map(String::from)
    }

    /// The names of all secrets that the hub puts into its requests.
    pub fn secrets(&self) -> BTreeSet<String> {
        let headers = self.granted.iter().flat_map(|(_, grant)| grant.headers.values());
        headers.flat_map(HeaderTemplate::secrets).map(str::to_owned).collect()
    }

    /// Whether `agent` may send a request, as far as its URL tells, and what the hub makes of it.
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

    /// Whether a host may be dialled that has these addresses: one bad among them spoils them all, for who answers for the name
    /// chooses which is used.
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

    /// The line of the grant that allows a request, together with a line of the manifest. Where several name the host, the one
    /// that names it most closely is tried first, and is the one that a refusal tells of.
    fn grant_of(&self, agent: &str, wanted: &Wanted<'_>) -> Result<&HttpGrant, HttpRefusal> {
        let host = || wanted.host.to_owned();
        let asked = closest(self.asked.iter(), wanted.host);
        if asked.is_empty() {
            return Err(HttpRefusal::NotAsked { host: host() });
        }
        let granted = closest(self.granted.iter(), wanted.host);
        let mut refusal = HttpRefusal::NotGranted { host: host(), agent: agent.to_owned() };
        for (nth, &(_, grant)) in granted.iter().enumerate() {
            for (mth, &(_, ask)) in asked.iter().enumerate() {
                let Err((whose, only)) = fits(ask, grant, wanted) else { return Ok(grant) };
                if (nth, mth) == (0, 0) {
                    refusal = wanted.refusal(agent, whose, only);
                }
            }
        }
        Err(refusal)
    }
}

/// The lines that name a host, those first that name it most closely.
fn closest<'g, T>(
    lines: impl Iterator<Item = (&'g HostPattern, &'g T)>,
    host: &str,
) -> Vec<(&'g HostPattern, &'g T)> {
    let mut lines: Vec<_> = lines.filter(|(pattern, _)| pattern.matches(host)).collect();
    lines.sort_by_key(|(pattern, _)| Reverse(pattern.rank()));
    lines
}

/// Who says that less is allowed.
#[derive(Clone, Copy)]
enum Whose {
    Manifest,
    Grant,
}

/// Whether a request lies in both; if not, who allows less, and what that is.
fn fits(ask: &HttpAsk, grant: &HttpGrant, wanted: &Wanted<'_>) -> Result<(), (Whose, String)> {
    use Whose::{Grant, Manifest};
    if wanted.scheme != grant.scheme.word() {
        return Err((Grant, format!("`{}:`", grant.scheme.word())));
    }
    let usual = BTreeSet::from([grant.scheme.port()]);
    let ports = match (&ask.ports, &grant.ports) {
        (None, None) => [(Grant, Some(&usual)), (Manifest, None)],
        (asked, granted) => [(Grant, granted.as_ref()), (Manifest, asked.as_ref())],
    };
    for (whose, ports) in ports {
        if let Some(ports) = ports.filter(|ports| !ports.contains(&wanted.port)) {
            let told: Vec<_> = ports.iter().map(u16::to_string).collect();
            return Err((whose, format!("the ports {}", told.join(", "))));
        }
    }
    let asked = ask.methods();
    for (whose, methods) in [(Grant, grant.methods.as_ref()), (Manifest, Some(&asked))] {
        if let Some(Methods(methods)) = methods.filter(|methods| !methods.0.contains(wanted.method))
        {
            let told: Vec<_> = methods.iter().map(String::as_str).collect();
            return Err((whose, format!("the methods {}", told.join(", "))));
        }
    }
    for (whose, paths) in [(Grant, grant.paths.as_ref()), (Manifest, ask.paths.as_ref())] {
        if let Some(Paths(paths)) = paths.filter(|paths| !paths.hold(wanted.path)) {
            let told = paths.join(", ");
            return Err((whose, format!("plain paths that begin with {told}")));
        }
    }
    Ok(())
}

impl Wanted<'_> {
    fn refusal(&self, agent: &str, whose: Whose, only: String) -> HttpRefusal {
        let Self { method, scheme, host, port, path } = self;
        let mut url = format!("{scheme}://{host}:{port}{path}");
        if url.len() > MAX_TOLD {
            url.truncate(url.floor_char_boundary(MAX_TOLD));
            url.push('…');
        }
        let whose = match whose {
            Whose::Manifest => "the agent's own manifest".to_owned(),
            Whose::Grant => format!("the operator's `[agents.{agent}.grant.http]`"),
        };
        HttpRefusal::Narrower { method: (*method).to_owned(), url, whose, only }
    }
}

/// Reads a URL, which means the same to everybody who reads it.
fn read(text: &str) -> Result<Url, HttpRefusal> {
    let wrong = |why| Err(HttpRefusal::Url(why));
    if text.len() > MAX_URL {
        return wrong("its URL is longer than 8192 bytes");
    }
    // Some parsers drop these, others do not.
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

/// What stands between `//` and the path.
fn authority(url: &str) -> &str {
    let rest = url.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
