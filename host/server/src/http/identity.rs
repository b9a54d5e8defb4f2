//! Identification of the caller of an HTTP request, by the kernel's word on its process and by the
//! credential that it presents.
//!
//! A credential replaces only the operator or nobody. A program below an agent's process tree stays
//! that agent: its credential is ignored, so a token that it read from a file gives it nothing.
//!
//! The kernel identifies the process at the other end of the connection. That process may serve
//! somebody else, so the operator's identity is withdrawn where a request shows that: it comes from
//! a web page, or through a proxy, or the hub has a name on other machines. Headers only withdraw
//! an identity; none gives one.

use super::{
    header_value::{SEC_FETCH_SITE, only},
    hub_names::HubNames,
};
use a2a_hub_config::token::{TOKEN_FILE, Tokens};
use a2a_hub_core::{access_control::Principal, identity::PersonProof};
use a2a_hub_engine::{
    devices::NoDevice,
    people::{KEY_PREFIX, NoCertificate, NoPerson},
};
use axum::http::{HeaderMap, HeaderName, header};

/// Headers of proxies (RFC 7239, RFC 9110 section 7.6.3, and customary ones), besides those that
/// begin with [`FORWARDED`].
const PROXY_HEADERS: [HeaderName; 3] =
    [header::FORWARDED, header::VIA, HeaderName::from_static("x-real-ip")];

/// Prefix of further headers of proxies, such as `X-Forwarded-For`.
const FORWARDED: &str = "x-forwarded-";

/// Credential in the `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credential<'h> {
    /// No header.
    Absent,
    /// Bearer token (RFC 6750, section 2.1) of the hub or a tenant.
    Bearer(&'h str),
    /// Bearer token that is a person's API key.
    Key(&'h str),
    /// Access token of a device, which comes with a proof (RFC 9449, section 7.1).
    Dpop(&'h str),
    /// Repeated header, or another scheme.
    Unreadable,
}

impl<'h> Credential<'h> {
    /// Reads the `Authorization` header.
    pub(super) fn from_headers(headers: &'h HeaderMap) -> Self {
        let shown = match only(headers, &header::AUTHORIZATION) {
            Ok(Some(shown)) => shown,
            Ok(None) => return Self::Absent,
            Err(()) => return Self::Unreadable,
        };
        let (scheme, token) = shown.split_once(' ').unwrap_or((shown, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            let token = token.trim();
            if token.starts_with(KEY_PREFIX) { Self::Key(token) } else { Self::Bearer(token) }
        } else if scheme.eq_ignore_ascii_case("dpop") {
            Self::Dpop(token.trim())
        } else {
            Self::Unreadable
        }
    }
}

/// Reason for which a caller is not identified. The text says how to authenticate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unidentified {
    /// Program of another user without a credential.
    #[error(
        "this hub serves its own user; others send `Authorization: Bearer` and what the file `{TOKEN_FILE}` in the hub's data \
         directory holds"
    )]
    OtherUser,
    /// Unknown token.
    #[error(
        "the token in `Authorization` is none of this hub's, or is none any more; its own user needs none, and a tenant's is in \
         `tenants/` in the hub's data directory"
    )]
    UnknownToken,
    /// API key that is no person's.
    #[error(transparent)]
    Person(#[from] NoPerson),
    /// Access token or proof that is that of no device.
    #[error(transparent)]
    Device(#[from] NoDevice),
    /// Client certificate that is nobody's.
    #[error(transparent)]
    Certificate(#[from] NoCertificate),
    /// Credential of somebody other than the person of the client certificate.
    #[error(
        "the client certificate of this connection is that of a person, and `Authorization` must be a key of the same person, or be \
         left out"
    )]
    OtherThanCertificate,
    /// Credential that is no single bearer token.
    #[error(
        "`Authorization` must come once and be `Bearer` with a token of this hub, such as what the file `{TOKEN_FILE}` in its data \
         directory holds; its own user needs none"
    )]
    Unreadable,
    /// Request of a web page in the operator's browser.
    #[error(
        "a web page is not the operator, so a request with `Origin` or `Sec-Fetch-Site` also sends `Authorization: Bearer` and what \
         the file `{TOKEN_FILE}` in the hub's data directory holds"
    )]
    Page,
    /// Request that a proxy forwarded.
    #[error(
        "a proxy forwarded this request (`Forwarded`, `X-Forwarded-*`, `X-Real-IP` or `Via`), so its process says nothing about the \
         caller: send `Authorization: Bearer` and what the file `{TOKEN_FILE}` in the hub's data directory holds"
    )]
    Forwarded,
    /// Request to a hub that other machines can reach.
    #[error(
        "other machines reach this hub as `{0}`, so over HTTP the process at the other end says nothing about the caller: send \
         `Authorization: Bearer` and what the file `{TOKEN_FILE}` in the hub's data directory holds, or use the unix socket"
    )]
    Public(String),
    /// Request to a hub that people have keys to.
    #[error(
        "people have API keys to this hub, so over HTTP the process at the other end says nothing about the caller: send \
         `Authorization: Bearer` and an API key, or what the file `{TOKEN_FILE}` in the hub's data directory holds, or use the \
         unix socket"
    )]
    HasPeople,
}

impl Unidentified {
    /// True for a request from a process of the hub's own user without a credential.
    pub(super) fn is_same_user(&self) -> bool {
        match self {
            Self::Page | Self::Forwarded | Self::Public(_) | Self::HasPeople => true,
            Self::OtherUser
            | Self::UnknownToken
            | Self::Person(_)
            | Self::Device(_)
            | Self::Certificate(_)
            | Self::OtherThanCertificate
            | Self::Unreadable => false,
        }
    }

    /// Value of `WWW-Authenticate` (RFC 6750, section 3; RFC 9449, section 7.1).
    pub(super) fn challenge(&self) -> &'static str {
        match self {
            Self::UnknownToken | Self::Person(_) => {
                "Bearer realm=\"a2a-hub\", error=\"invalid_token\""
            }
            Self::Unreadable => "Bearer realm=\"a2a-hub\", error=\"invalid_request\"",
            Self::Device(NoDevice::Unknown) => {
                "DPoP realm=\"a2a-hub\", error=\"invalid_token\", algs=\"ES256\""
            }
            Self::Device(NoDevice::Proof(_)) => {
                "DPoP realm=\"a2a-hub\", error=\"invalid_dpop_proof\", algs=\"ES256\""
            }
            Self::OtherUser
            | Self::Page
            | Self::Forwarded
            | Self::Public(_)
            | Self::HasPeople
            | Self::Certificate(_)
            | Self::OtherThanCertificate => "Bearer realm=\"a2a-hub\"",
        }
    }
}

/// Identifies the caller of a request. `kernel` is the principal of the connected process, if it is
/// one of the hub's own user, and counts for nothing if people have keys to the hub
/// (`has_people`). `person` identifies a person by an API key, and `device` a device by its access
/// token.
///
/// A program of the hub's own user that presents a tenant's token acts for that tenant only, as a
/// proxy does for its users. Therefore an invalid credential must not give it more rights than a
/// valid one.
pub(super) fn identify(
    kernel: Option<&Principal>,
    headers: &HeaderMap,
    names: &HubNames,
    tokens: &Tokens,
    has_people: bool,
    person: impl FnOnce(&str) -> Result<Principal, NoPerson>,
    device: impl FnOnce(&str) -> Result<Principal, NoDevice>,
) -> Result<Principal, Unidentified> {
    let is_operator = match kernel {
        Some(Principal::Operator) => true,
        None => false,
        Some(program) => return Ok(program.clone()),
    };
    match Credential::from_headers(headers) {
        Credential::Bearer(token) => tokens.whose(token).ok_or(Unidentified::UnknownToken),
        Credential::Key(key) => Ok(person(key)?),
        Credential::Dpop(token) => Ok(device(token)?),
        Credential::Unreadable => Err(Unidentified::Unreadable),
        Credential::Absent if !is_operator => Err(Unidentified::OtherUser),
        Credential::Absent => match withdrawn(headers, names) {
            Some(why) => Err(why),
            None if has_people => Err(Unidentified::HasPeople),
            None => Ok(Principal::OperatorHttp),
        },
    }
}

/// Identifies the caller of a request over a connection with a client certificate. `identified` is
/// the result of [`identify`], and `certified` that of the certificate.
///
/// The certificate replaces the operator and nobody. A program below an agent's process tree stays
/// that agent. An API key must be that of the same person, and both narrow. All other credentials
/// are refused: they name somebody else than the certificate.
pub(super) fn identify_certified(
    kernel: Option<&Principal>,
    headers: &HeaderMap,
    identified: Result<Principal, Unidentified>,
    certified: Result<Principal, NoCertificate>,
) -> Result<Principal, Unidentified> {
    match kernel {
        None | Some(Principal::Operator) => {}
        Some(_) => return identified,
    }
    let certified = certified?;
    if Credential::from_headers(headers) == Credential::Absent {
        return Ok(certified);
    }
    match (identified?, certified) {
        (
            Principal::Person { name, key },
            Principal::Person { name: certified_name, key: certified_key },
        ) if name == certified_name => {
            let certificate = PersonProof::parse(&certified_key).certificate;
            let proof = PersonProof { key: Some(&key), certificate };
            Ok(Principal::Person { name, key: proof.to_string() })
        }
        _ => Err(Unidentified::OtherThanCertificate),
    }
}

/// Reason for which the process at the other end does not identify the caller.
///
/// `Sec-Fetch-Mode` alone is no sign of a web page: the `fetch` of Node.js sends it as well.
fn withdrawn(headers: &HeaderMap, names: &HubNames) -> Option<Unidentified> {
    if headers.contains_key(header::ORIGIN) || headers.contains_key(SEC_FETCH_SITE) {
        return Some(Unidentified::Page);
    }
    let is_proxys =
        |name: &HeaderName| PROXY_HEADERS.contains(name) || name.as_str().starts_with(FORWARDED);
    if headers.keys().any(is_proxys) {
        return Some(Unidentified::Forwarded);
    }
    names.public().map(|name| Unidentified::Public(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::identity::PersonName;
    use a2a_hub_protocol::id::AgentId;

    #[test]
    fn token_is_read_from_bearer_header() {
        let shown = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            match Credential::from_headers(&headers) {
                Credential::Bearer(token) => token.to_owned(),
                other @ (Credential::Absent
                | Credential::Key(_)
                | Credential::Dpop(_)
                | Credential::Unreadable) => {
                    format!("{other:?}")
                }
            }
        };
        assert_eq!(shown(&["Bearer abc"]), "abc");
        assert_eq!(shown(&["bearer  abc"]), "abc");
        assert_eq!((shown(&["Bearer"]), shown(&["bearer "])), (String::new(), String::new()));
        assert_eq!(shown(&[]), "Absent");
        assert_eq!(shown(&["Bearer a2ah_0"]), r#"Key("a2ah_0")"#);
        for unreadable in [&["Basic abc"][..], &["abc"], &["Bearer a", "Bearer a"], &["\u{fc}"]] {
            assert_eq!(shown(unreadable), "Unreadable", "{unreadable:?}");
        }
    }

    /// Callers over a connection with the certificate of `ada` (`ada`), or with one that nobody
    /// has (`none`). `KEY-x` is a key of the person `x`.
    #[test]
    fn certificate_replaces_only_operator_or_nobody() {
        let person = |name: &str, key: &str| Principal::Person {
            name: PersonName::parse(name).unwrap(),
            key: key.to_owned(),
        };
        let program = Principal::of_tree(AgentId::parse("codex").unwrap(), "1.2");
        let names = HubNames::new("127.0.0.1:8080".parse().unwrap(), &[], None);
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(dir.path(), std::iter::empty()).unwrap();
        let operator_token = std::fs::read_to_string(dir.path().join(TOKEN_FILE)).unwrap();
        let operator = Some(Principal::Operator);
        for (kernel, certificate, credential, expected) in [
            (operator.clone(), "ada", "", "person:ada/cert:ada.corp"),
            (None, "ada", "", "person:ada/cert:ada.corp"),
            (None, "ada", "Bearer a2ah_ada", "person:ada/0a1b+cert:ada.corp"),
            (operator.clone(), "ada", "Bearer a2ah_ada", "person:ada/0a1b+cert:ada.corp"),
            // Each credential names somebody else, or nobody.
            (None, "ada", "Bearer a2ah_bob", "OtherThanCertificate"),
            (None, "ada", "Bearer a2ah_none", "Person(Unknown)"),
            (None, "ada", "Bearer wrong", "UnknownToken"),
            (None, "ada", "Bearer OPERATOR", "OtherThanCertificate"),
            (operator.clone(), "ada", "Bearer OPERATOR", "OtherThanCertificate"),
            (None, "ada", "Basic abc", "Unreadable"),
            (None, "ada", "DPoP abc", "OtherThanCertificate"),
            // A certificate of nobody makes its holder nobody, also with a good credential.
            (None, "none", "", "Certificate"),
            (operator, "none", "", "Certificate"),
            (None, "none", "Bearer a2ah_ada", "Certificate"),
            (None, "none", "Bearer OPERATOR", "Certificate"),
            // Below an agent's tree, neither certificate nor key changes anything.
            (Some(program.clone()), "ada", "", "agent:codex/tree/1.2"),
            (Some(program.clone()), "none", "", "agent:codex/tree/1.2"),
            (Some(program), "ada", "Bearer a2ah_ada", "agent:codex/tree/1.2"),
            (Some(Principal::Anonymous), "ada", "Bearer a2ah_ada", "anonymous"),
        ] {
            let mut headers = HeaderMap::new();
            if !credential.is_empty() {
                let value = credential.replace("OPERATOR", &operator_token);
                headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            }
            let by_key = |key: &str| match key.strip_prefix(KEY_PREFIX) {
                Some("none") | None => Err(NoPerson::Unknown),
                Some(name) => Ok(person(name, "0a1b")),
            };
            let device = |_: &str| Ok(Principal::Device { id: "0a1b".to_owned() });
            let kernel = kernel.as_ref();
            let identified = identify(kernel, &headers, &names, &tokens, true, by_key, device);
            let certified = match certificate {
                "none" => Err(NoCertificate::NoPerson(PersonName::parse("eve").unwrap())),
                name => Ok(person(name, "cert:ada.corp")),
            };
            let got = match identify_certified(kernel, &headers, identified, certified) {
                Ok(principal) => principal.to_log(),
                Err(why) => format!("{why:?}"),
            };
            assert!(got.starts_with(expected), "{kernel:?} {certificate} {credential}: {got}");
        }
    }
}
