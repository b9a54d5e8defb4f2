//! Admission of HTTP requests: programs of this machine, but no web pages in a browser.
//!
//! A browser on this machine can reach loopback for any page. Therefore each request must name this
//! server as its `Host`, which prevents DNS rebinding (a page's own name bound to 127.0.0.1), and
//! must not have a foreign `Origin`. A body must be JSON or gRPC, which a page cannot send to
//! another origin without a CORS preflight (CSRF).
//!
//! Next, the caller must be a program of the hub's own user, or have a token of the hub, because
//! all users share loopback (see [`identity`](super::identity)). Only the public keys need no
//! authentication, a webhook for a trigger, whose signature is checked, and a person who joins,
//! whose invitation is checked.

use super::{
    caller::HttpPeer,
    context::is_grpc,
    header_value::{SEC_FETCH_SITE, only},
    hub_names::HubNames,
    identity::{Credential, Unidentified, identify, identify_certified},
    paths::{EndpointPath, HOOKS, HUB_METHODS, JOIN, PAIR, is_of_page},
    reply::{self, TODAYS, json_body, plain_error},
};
use crate::a2a::jwks;
use a2a_hub_config::token::Tokens;
use a2a_hub_core::{access_control::Principal, devices::proof::InvalidProof, http_name::HostPort};
use a2a_hub_engine::{
    devices::{DeviceHttpRequest, Devices, NoDevice},
    people::{NoCertificate, NoPerson, People},
};
use a2a_hub_protocol::{
    dialect::Dialect,
    error::{A2aError, ErrorKind},
    five_step::SUBMIT,
    hub::answer::AGENTS,
};
use a2a_hub_rpc::{dispatcher::HUB, jsonrpc};
use axum::{
    body::HttpBody,
    extract::Request,
    http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use url::Url;

/// Paths that tell nothing about clients, and which a browser of the hub's own user may open: the
/// front page and the probes.
const OPEN_PATHS: [&str; 3] = ["/", "/health", "/ready"];

/// Headers of a browser's navigation in a window or tab (Fetch Metadata Request Headers).
const NAVIGATION: [(HeaderName, &str); 2] = [
    (HeaderName::from_static("sec-fetch-mode"), "navigate"),
    (HeaderName::from_static("sec-fetch-dest"), "document"),
];

/// Header with the proof of a device (RFC 9449, section 4.1).
const DPOP: HeaderName = HeaderName::from_static("dpop");

/// Configuration of the guard.
#[derive(Clone)]
pub(crate) struct OriginGuard {
    names: HubNames,
    tokens: Arc<Tokens>,
    devices: Arc<Devices>,
    people: Arc<People>,
}

/// End of the credential that came with a request: a device is removed, or a key is revoked or
/// expires. Its answers end then. An extension of the request.
#[derive(Clone)]
pub(super) struct CredentialEnd {
    /// Cancelled when the credential is taken away.
    pub(super) revoked: CancellationToken,
    /// Error of further requests with it, once it is taken away.
    pub(super) why: Unidentified,
    /// Time until it expires, and the error of further requests with it then; `None` if it does
    /// not expire.
    pub(super) expiry: Option<(Duration, Unidentified)>,
}

/// Thumbprint of the key that a browser presents for its pairing, with a proof that counts. An
/// extension of the request.
#[derive(Clone)]
pub(crate) struct PresentedThumbprint(pub(crate) String);

impl OriginGuard {
    /// Creates the guard of a server with these names. Callers that the kernel does not identify
    /// need one of `tokens`, or the key of one of the `devices` or the `people`.
    pub(crate) fn new(
        names: HubNames,
        tokens: Tokens,
        devices: Arc<Devices>,
        people: Arc<People>,
    ) -> Self {
        Self { names, tokens: Arc::new(tokens), devices, people }
    }

    /// Identifies the caller of a request, or returns the reason for which it is unknown. A device
    /// and a person come with the end of their credential.
    async fn principal<B>(
        &self,
        caller: &HttpPeer,
        request: &Request<B>,
    ) -> Result<(Principal, Option<CredentialEnd>), Unidentified> {
        let kernel = caller.same_user().await;
        let (mut proven_person, mut proven_device) = (None, None);
        let person = |key: &str| {
            let proven = self.people.identify(key, Some(caller.address().ip()))?;
            let principal = proven.principal.clone();
            proven_person = Some(proven);
            Ok(principal)
        };
        let device = |token: &str| {
            let proven = self.with_proof(request, |it| self.devices.identify(token, it))?;
            let principal = Principal::Device { id: proven.id.clone() };
            proven_device = Some(proven);
            Ok(principal)
        };
        let (headers, has_people) = (request.headers(), self.people.any());
        let identified =
            identify(kernel, headers, &self.names, &self.tokens, has_people, person, device);
        let mut certified_person = None;
        let identified = match caller.certificate() {
            None => identified,
            Some(certificate) => {
                let (names, end) = (&certificate.names, certificate.validity.not_after);
                let certified = self.people.identify_certificate(names, end);
                let certified = certified.map(|person| {
                    let principal = person.principal.clone();
                    certified_person = Some(person);
                    principal
                });
                identify_certified(kernel, headers, identified, certified)
            }
        };
        let end = match (proven_person, proven_device, certified_person) {
            (Some(person), ..) => {
                if person.is_new_use {
                    self.people.store_last_use(&person.principal).await;
                }
                let expiry = person.expires_in.map(|it| (it, NoPerson::Expired.into()));
                let why = NoPerson::Unknown.into();
                Some(CredentialEnd { revoked: person.revoked, why, expiry })
            }
            (None, Some(device), _) => {
                if device.is_new_use {
                    self.devices.store_last_use().await;
                }
                let why = NoDevice::Unknown.into();
                Some(CredentialEnd { revoked: device.removed, why, expiry: None })
            }
            (None, None, Some(person)) => match &identified {
                Ok(Principal::Person { name, .. }) => {
                    let why = NoCertificate::NoPerson(name.clone()).into();
                    Some(CredentialEnd { revoked: person.revoked, why, expiry: None })
                }
                // The program of an agent, or nobody.
                Ok(_) | Err(_) => None,
            },
            (None, None, None) => None,
        };
        let path = request.uri().path();
        let is_open = matches!(*request.method(), Method::GET | Method::HEAD)
            && (OPEN_PATHS.contains(&path) || is_of_page(path));
        match identified {
            Err(why) if is_open && why.is_same_user() => Ok((Principal::Anonymous, None)),
            identified => identified.map(|principal| (principal, end)),
        }
    }

    /// Calls `check` with the proof of a device in a request, and what it has to be about.
    fn with_proof<B, T, E: From<InvalidProof>>(
        &self,
        request: &Request<B>,
        check: impl FnOnce(DeviceHttpRequest<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let proof = only(request.headers(), &DPOP).ok().flatten().ok_or(InvalidProof::Form)?;
        let is_hub = &|url: &Url| self.names.has_page(&url.origin().ascii_serialization());
        let (method, path) = (request.method().as_str(), request.uri().path());
        check(DeviceHttpRequest { proof, method, path, is_hub })
    }

    /// Identifies a browser that wants to be paired: a device that is paired already, or nobody. It
    /// must be on the other end of a program of the hub's own user that no agent started.
    async fn browser<B>(
        &self,
        caller: &HttpPeer,
        request: &mut Request<B>,
    ) -> Result<Principal, Response> {
        if caller.certificate().is_some() {
            let why = "a connection with a client certificate is a person's, and pairs no browser";
            return Err(refusal(StatusCode::FORBIDDEN, why, PAIR));
        }
        match caller.same_user().await {
            Some(Principal::Operator) => {}
            None => return Err(unauthenticated(&Unidentified::OtherUser, PAIR)),
            Some(_) => {
                let why = "a program that an agent started cannot be paired";
                return Err(refusal(StatusCode::FORBIDDEN, why, PAIR));
            }
        }
        match self.principal(caller, request).await {
            Ok((device @ Principal::Device { .. }, _)) => return Ok(device),
            // The device is known, and corrects its clock.
            Err(why @ Unidentified::Device(NoDevice::Proof(_))) => {
                return Err(unauthenticated(&why, PAIR));
            }
            Ok(_) | Err(_) => {}
        }
        let thumbprint = self
            .with_proof(request, |it| self.devices.presented_key(it))
            .map_err(|why| unauthenticated(&NoDevice::Proof(why).into(), PAIR))?;
        request.extensions_mut().insert(PresentedThumbprint(thumbprint));
        Ok(Principal::Anonymous)
    }
}

impl OriginGuard {
    /// Admits a request and stores its principal, or returns an error response.
    pub(crate) async fn admit<B: HttpBody>(
        &self,
        caller: &HttpPeer,
        request: &mut Request<B>,
    ) -> Result<(), Response> {
        let is_grpc = is_grpc(request.headers());
        // HTTP/2 requests may have a body without a header for it (RFC 9113, section 8.1).
        let has_body = !request.body().is_end_stream();
        let head = (request.method(), request.uri(), request.headers());
        let verdict = verdict(&self.names, head, has_body);
        if let Err((status, why)) = verdict {
            if is_grpc {
                return Err(grpc_refusal(status, why));
            }
            let response = match status {
                StatusCode::UNSUPPORTED_MEDIA_TYPE => wrong_media(request.uri().path(), why),
                _ => None,
            };
            return Err(response.unwrap_or_else(|| refusal(status, why, request.uri().path())));
        }
        let path = request.uri().path();
        if is_of_page(path)
            && let Some(page) = self.names.page_for(request.headers(), request.uri())
        {
            return Err(Redirect::temporary(&page).into_response());
        }
        let identified = if path == jwks::PATH {
            Ok((Principal::Anonymous, None))
        } else if path.starts_with(HOOKS) || path == JOIN {
            if !matches!(caller.same_user().await, None | Some(Principal::Operator)) {
                let deed = if path == JOIN { "use no invitation" } else { "send no webhook" };
                let why = format!("a program that an agent started may {deed}");
                return Err(refusal(StatusCode::FORBIDDEN, &why, path));
            }
            Ok((Principal::Anonymous, None))
        } else if path == PAIR && request.method() == Method::POST {
            Ok((self.browser(caller, request).await?, None))
        } else {
            self.principal(caller, request).await
        };
        let (principal, end) = identified.map_err(|why| {
            let text = why.to_string();
            if is_grpc {
                return grpc_refusal(StatusCode::UNAUTHORIZED, &text);
            }
            unauthenticated(&why, request.uri().path())
        })?;
        if let Some(end) = end {
            request.extensions_mut().insert(end);
        }
        request.extensions_mut().insert(principal);
        Ok(())
    }
}

/// Error response to a caller that is not identified.
pub(super) fn unauthenticated(why: &Unidentified, path: &str) -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, why.challenge())];
    (challenge, refusal(StatusCode::UNAUTHORIZED, &why.to_string(), path)).into_response()
}

/// Principal that the guard stored; anonymous for a request that bypassed the guard.
pub(crate) fn principal(request: &Request) -> Principal {
    request.extensions().get().cloned().unwrap_or(Principal::Anonymous)
}

/// Error response before the request is read. On the hub's own endpoints, authentication errors
/// have the JSON-RPC code of its dialect.
fn refusal(status: StatusCode, why: &str, path: &str) -> Response {
    let is_auth_error = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if matches!(path, "/" | "/stream") && is_auth_error {
        let why = A2aError::new(ErrorKind::Authentication, why);
        let body = jsonrpc::unreadable(Dialect::Hub, &why);
        return (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    plain_error(status, why)
}

/// Error response to a request of the wrong media type at an A2A endpoint, or for a method of the
/// hub; `None` for other paths.
fn wrong_media(path: &str, why: &str) -> Option<Response> {
    if path.starts_with(HUB_METHODS) {
        let why = A2aError::new(ErrorKind::ContentTypeNotSupported, why);
        return Some(reply::refusal(&why, Dialect::Hub, None));
    }
    let is_hub =
        path.strip_prefix(HUB).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !is_hub && !path.starts_with(AGENTS) {
        return None;
    }
    let why = A2aError::new(ErrorKind::ContentTypeNotSupported, why);
    let endpoint = EndpointPath::parse(path);
    if endpoint.as_ref().is_ok_and(|endpoint| endpoint.subpath == SUBMIT) {
        return None;
    }
    if endpoint.is_ok_and(|endpoint| endpoint.subpath.starts_with("rest/")) {
        return Some(reply::refusal(&why, TODAYS, None));
    }
    let text = jsonrpc::unreadable(TODAYS, &why);
    Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, json_body(text)).into_response())
}

/// Error response for a gRPC client before the request is read.
fn grpc_refusal(http: StatusCode, why: &str) -> Response {
    let unknown = http == StatusCode::UNAUTHORIZED;
    let code = if unknown { Code::Unauthenticated } else { Code::PermissionDenied };
    Status::new(code, why).into_http()
}

/// True if the card must contain the token's security scheme, so that the caller may get the
/// extended card: for callers who need a token, and those who send one anyway.
pub(crate) async fn by_token(caller: &HttpPeer, headers: &HeaderMap) -> bool {
    let credential = Credential::from_headers(headers);
    let has_token = matches!(credential, Credential::Bearer(_) | Credential::Key(_));
    has_token || caller.same_user().await.is_none()
}

fn verdict(
    names: &HubNames,
    (method, target, headers): (&Method, &Uri, &HeaderMap),
    has_body: bool,
) -> Result<(), (StatusCode, &'static str)> {
    let forbidden = |why| Err((StatusCode::FORBIDDEN, why));
    // RFC 9112, section 3.2; RFC 9113, section 8.3.1.
    let Ok(Some(host)) = only(headers, &header::HOST).map(|host| host.and_then(HostPort::parse))
    else {
        let why = "a request names the server once, in `Host` or HTTP/2's `:authority`, by a host and its port";
        return Err((StatusCode::BAD_REQUEST, why));
    };
    // In absolute form, which proxies receive, the target overrides the `Host` header (RFC 9112,
    // section 3.2.2).
    if target.authority().is_some_and(|named| !names.has_host(named.as_str())) {
        return forbidden("the request's target must be this server, which is no proxy");
    }
    if !names.is_host(&host) {
        let why = "the Host header must name this server, such as 127.0.0.1 and its port; to call it by another name, as \
                   through a proxy or a forwarded port, add that to `http.names`, such as `https://hub.example`";
        return forbidden(why);
    }
    let Ok(origin) = only(headers, &header::ORIGIN) else {
        return forbidden("the Origin header must be there once, and be text");
    };
    if origin.is_some_and(|origin| !names.has_origin(origin)) {
        return forbidden("requests from web pages of another origin are refused");
    }
    let Ok(site) = only(headers, &SEC_FETCH_SITE) else {
        return forbidden("the Sec-Fetch-Site header must be there once, and be text");
    };
    let is_same_site = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    if !is_same_site && !opens_page(method, target, headers) {
        return forbidden("requests from web pages of another site are refused");
    }
    // hyper considers only the last transfer coding and would treat a still compressed body as the
    // content.
    if !is_alone(headers, &header::TRANSFER_ENCODING, "chunked") {
        let why = "no Transfer-Encoding but chunked is understood: send the body as it is";
        return Err((StatusCode::NOT_IMPLEMENTED, why));
    }
    if !is_alone(headers, &header::CONTENT_ENCODING, "identity") {
        let why = "no Content-Encoding is understood: send the body as it is";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let is_known = is_json(headers) || is_grpc(headers);
    // A request without a body needs no media type; A2A clients subscribe this way over REST. An
    // empty POST from a web page still has a foreign `Origin`.
    let has_content = has_body || headers.contains_key(header::CONTENT_TYPE);
    if method == Method::POST && !is_known && has_content {
        let why = "send the request with `Content-Type: application/json`";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

/// True if a link, also one of another site or of a local file, opens the page in a window. It gets
/// files that hold nothing of the hub; a frame gets none.
fn opens_page(method: &Method, target: &Uri, headers: &HeaderMap) -> bool {
    let is = |(name, value): &(HeaderName, &str)| {
        only(headers, name).is_ok_and(|found| found == Some(*value))
    };
    let path = target.path();
    method == Method::GET && (path == "/" || is_of_page(path)) && NAVIGATION.iter().all(is)
}

/// True if a header is absent or has this single value.
fn is_alone(headers: &HeaderMap, name: &HeaderName, value: &str) -> bool {
    only(headers, name).is_ok_and(|it| it.is_none_or(|it| it.trim().eq_ignore_ascii_case(value)))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(media)) = only(headers, &header::CONTENT_TYPE) else { return false };
    let essence = media.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/a2a+json"]
        .iter()
        .any(|json| essence.eq_ignore_ascii_case(json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Always;
    use a2a_hub_core::http_name::HttpName;
    use a2a_hub_rpc::peer::batch::PeerLookup;
    use axum::body::Body;
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

    const ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));

    /// Guard of a hub without further names, with fresh tokens.
    fn guard() -> OriginGuard {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(dir.path(), std::iter::empty()).unwrap();
        let names = HubNames::new(ADDRESS, &[], None);
        OriginGuard::new(names, tokens, Arc::default(), Arc::default())
    }

    /// Status for a request with these headers, which are separated by `|`.
    fn status(method: &Method, headers: &str) -> u16 {
        status_of(method, "/", headers, false)
    }

    fn status_of(method: &Method, target: &str, headers: &str, has_body: bool) -> u16 {
        let forwarded = HttpName::parse("http://localhost:9000").unwrap();
        let names = HubNames::new(ADDRESS, &[forwarded], Some("https://hub.example/x"));
        let mut map = HeaderMap::new();
        for line in headers.split('|').filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").unwrap();
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, value.parse().unwrap());
        }
        verdict(&names, (method, &target.parse().unwrap(), &map), has_body)
            .map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn web_page_request_is_refused() {
        let get = |headers: &str| status(&Method::GET, headers);
        assert_eq!(get("host: 127.0.0.1:8080"), 200);
        assert_eq!(get("host: LOCALHOST:8080"), 200);
        assert_eq!(get("host: hub.example"), 200, "its public name");
        assert_eq!(get("host: localhost:9000"), 200, "a forwarded port");
        assert_eq!(get(""), 400, "no Host");
        assert_eq!(get("host: 127.0.0.1:8080|host: 127.0.0.1:8080"), 400, "two of them");
        for rebound in
            ["evil.example:8080", "127.0.0.1.evil.example:8080", "127.0.0.1", "127.0.0.2:8080"]
        {
            assert_eq!(get(&format!("host: {rebound}")), 403, "{rebound}");
        }
        let with = |header: &str| get(&format!("host: localhost:8080|{header}"));
        assert_eq!(with("origin: http://localhost:8080"), 200);
        assert_eq!(get("host: hub.example|origin: https://hub.example"), 200);
        assert_eq!(get("host: hub.example|origin: http://hub.example"), 403, "another scheme");
        for origin in
            ["http://evil.example", "null", "http://localhost:8081", "https://localhost:8080"]
        {
            assert_eq!(with(&format!("origin: {origin}")), 403, "{origin}");
        }
        assert_eq!(with("sec-fetch-site: cross-site"), 403);
        assert_eq!(with("sec-fetch-site: same-site"), 403);
        assert_eq!(with("sec-fetch-site: none"), 200);
        // A link of another site opens the page in a window, and in no frame.
        let opened = |path: &str, mode: &str, dest: &str| {
            let fetch = format!("sec-fetch-mode: {mode}|sec-fetch-dest: {dest}");
            let headers = format!("host: localhost:8080|sec-fetch-site: cross-site|{fetch}");
            status_of(&Method::GET, path, &headers, false)
        };
        assert_eq!(opened("/ui/tasks", "navigate", "document"), 200);
        for (path, mode, dest) in [
            ("/ui/tasks", "navigate", "iframe"),
            ("/ui/assets/x.js", "no-cors", "script"),
            ("/uix", "navigate", "document"),
            ("/health", "navigate", "document"),
            ("/agents", "navigate", "document"),
        ] {
            assert_eq!(opened(path, mode, dest), 403, "{path} {mode} {dest}");
        }
    }

    /// Absolute form is how proxies are addressed. A forwarded request would have a `Host` that the
    /// client invented.
    #[test]
    fn foreign_target_authority_is_refused() {
        let get = |target: &str| status_of(&Method::GET, target, "host: 127.0.0.1:8080", false);
        for own in
            ["/", "http://127.0.0.1:8080/", "http://LocalHost:8080/x", "https://hub.example/"]
        {
            assert_eq!(get(own), 200, "{own}");
        }
        for other in [
            "http://evil.example/",
            "http://evil.example:8080/health",
            "http://127.0.0.1:8080.evil.example/",
            "http://127.0.0.1:8081/",
            "http://evil.example@127.0.0.1:8080/",
            "http://127.0.0.1:8080@evil.example/",
        ] {
            assert_eq!(get(other), 403, "{other}");
        }
    }

    #[test]
    fn encoded_body_is_refused() {
        let post = |header: &str| {
            let headers = format!("host: 127.0.0.1:8080|content-type: application/json|{header}");
            status_of(&Method::POST, "/", &headers, true)
        };
        for plain in ["", "transfer-encoding: Chunked", "content-encoding: identity"] {
            assert_eq!(post(plain), 200, "{plain}");
        }
        // RFC 9112, section 6.1, and RFC 9110, section 8.4.
        for coded in ["gzip, chunked", "gzip", "chunked, chunked"] {
            assert_eq!(post(&format!("transfer-encoding: {coded}")), 501, "{coded}");
        }
        assert_eq!(post("transfer-encoding: gzip|transfer-encoding: chunked"), 501);
        assert_eq!(post("content-encoding: gzip"), 415);
    }

    #[tokio::test]
    async fn unauthenticated_error_has_dialect_code() {
        let told_of = async |status, path: &str| {
            let body = refusal(status, "the reason", path).into_body();
            let body = axum::body::to_bytes(body, 1 << 10).await.unwrap();
            let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
            (told["error"]["code"].as_i64(), told["error"]["data"]["reason"].as_str().is_some())
        };
        let told = async |path| told_of(StatusCode::UNAUTHORIZED, path).await;
        assert_eq!(told("/").await, (Some(-32006), true));
        assert_eq!(told("/stream").await, (Some(-32006), true));
        assert_eq!(told("/a2a").await, (Some(401), false), "official A2A has no such number");
        let packed = told_of(StatusCode::NOT_IMPLEMENTED, "/").await;
        assert_eq!(packed, (Some(501), false), "what is wrong with a body is nobody's name");
    }

    #[test]
    fn post_body_must_be_json_or_grpc() {
        let post = |media: &str| {
            status(&Method::POST, &format!("host: localhost:8080|content-type: {media}"))
        };
        assert_eq!(post("application/json"), 200);
        assert_eq!(post("Application/JSON; charset=utf-8"), 200);
        assert_eq!(post("application/a2a+json"), 200);
        assert_eq!(post("application/grpc"), 200);
        assert_eq!(post("application/grpc-web"), 415, "a web page may send it");
        assert_eq!(post("text/plain"), 415);
        assert_eq!(post("application/jsonp"), 415);
        let silent = |more: &str, has_body: bool| {
            status_of(&Method::POST, "/", &format!("host: localhost:8080{more}"), has_body)
        };
        assert_eq!(silent("", false), 200, "there is no body");
        assert_eq!(silent("", true), 415, "nobody says what it is");
        assert_eq!(silent("|content-type: text/plain", false), 415);
        assert_eq!(silent("|origin: http://evil.example", false), 403);
    }

    #[tokio::test]
    async fn agents_program_may_send_no_webhook() {
        let guard = guard();
        let agent = Principal::AgentTask {
            agent: a2a_hub_protocol::id::AgentId::parse("codex").unwrap(),
            task: a2a_hub_protocol::id::TaskId::new("t"),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (here, there) = (client.peer_addr().unwrap(), client.local_addr().unwrap());
        for (who, status) in [
            (Principal::Operator, 200),
            (agent, 403),
            // A program below the hub whose agent is not known.
            (Principal::Anonymous, 403),
        ] {
            let peers = PeerLookup::new(Arc::new(Always(Some(who.clone()))));
            let caller = HttpPeer::new(Some(here), there, peers);
            let request = Request::post("/hooks/deploy").header(header::HOST, "localhost:8080");
            let mut request = request.body(Body::empty()).unwrap();
            let admitted = guard.admit(&caller, &mut request).await;
            let told = admitted.map_or_else(|it| it.status().as_u16(), |()| 200);
            assert_eq!(told, status, "{who:?}");
            let principal = request.extensions().get::<Principal>();
            assert!(principal.is_none_or(|it| *it == Principal::Anonymous), "{principal:?}");
        }
    }

    /// As in HTTP/2.
    #[tokio::test]
    async fn body_without_header_needs_media_type() {
        let guard = guard();
        let caller = HttpPeer::new(None, ADDRESS, PeerLookup::new(Arc::new(Always(None))));
        for (body, status) in [(Body::empty(), 401), (Body::from("x"), 415)] {
            let request = Request::post("/").header(header::HOST, "localhost:8080").body(body);
            let refused = guard.admit(&caller, &mut request.unwrap()).await.unwrap_err();
            assert_eq!(refused.status(), status);
        }
    }
}
