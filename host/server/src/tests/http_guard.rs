//! Attacks on the guard of HTTP: headers, credentials and origins of processes, on each binding.

mod routes;

use super::{Always, TestDispatcher};
use crate::{
    HttpServer,
    http::{caller::HttpPeer, hub_names::HubNames, listener::name_host, origin_guard::OriginGuard},
};
use a2a_hub_config::token::Tokens;
use a2a_hub_core::{access_control::Principal, http_name::HttpName};
use a2a_hub_engine::{Reply, people::People};
use a2a_hub_protocol::{
    id::{AgentId, TenantId},
    operation::{Answer, KeyTerms, Operation, PeopleReport, PeopleRequest},
};
use a2a_hub_rpc::peer::batch::PeerLookup;
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, Version},
};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// Kernel's word on the process at the other end of a connection.
#[derive(Clone, Copy, Debug)]
enum PeerProcess {
    /// Of the hub's user, and no agent started it.
    Own,
    /// Of another user.
    Other,
    /// Below an agent's process tree.
    Agent,
    /// Below the hub, and of no known agent.
    Orphan,
}
use PeerProcess::{Agent, Orphan, Other, Own};

impl PeerProcess {
    fn principal(self) -> Option<Principal> {
        match self {
            Own => Some(Principal::Operator),
            Other => None,
            Agent => Some(Principal::of_tree(AgentId::parse("codex").unwrap(), "1.2")),
            Orphan => Some(Principal::Anonymous),
        }
    }
}

/// Tokens of a hub with the tenant `acme`, in a directory.
struct TestTokens {
    dir: tempfile::TempDir,
}

impl TestTokens {
    fn new() -> Self {
        let it = Self { dir: tempfile::tempdir().unwrap() };
        drop(it.open());
        it
    }

    fn tenants() -> BTreeSet<TenantId> {
        std::iter::once(TenantId::parse("acme").unwrap()).collect()
    }

    fn open(&self) -> Tokens {
        Tokens::open(self.dir.path(), Self::tenants().iter()).unwrap()
    }

    /// Replaces `OPERATOR` and `ACME` in a header by their tokens.
    fn fill(&self, header: &str) -> String {
        let read = |file: &str| fs::read_to_string(Path::new(self.dir.path()).join(file)).unwrap();
        header.replace("OPERATOR", &read("http-token")).replace("ACME", &read("tenants/acme"))
    }
}

/// Status, or principal in the form of a log, of requests to a hub at port 8080. Headers are
/// separated by `|`; `h2` stands for HTTP/2 with this authority.
#[tokio::test]
async fn attacks_give_no_identity() {
    const LOCAL: &str = "host: localhost:8080";
    let table: &[(PeerProcess, &[&str], &str, &str)] = &[
        // A single user on loopback needs nothing.
        (Own, &[], LOCAL, "operator-http"),
        (Own, &[], "host: 127.0.0.1:8080", "operator-http"),
        (Own, &[], "host: LOCALHOST.:8080", "operator-http"),
        (Own, &[], "host: localhost:8080|sec-fetch-mode: cors", "operator-http"),
        (Own, &[], "host: localhost:8080|user-agent: Mozilla/5.0|cookie: a=b", "operator-http"),
        (Own, &[], "h2: localhost:8080", "operator-http"),
        // Names of others (DNS rebinding), and spellings of the own ones.
        (Own, &[], "host: evil.example", "403"),
        (Own, &[], "host: evil.example:8080", "403"),
        (Own, &[], "host: localhost", "403"),
        (Own, &[], "host: localhost:8081", "403"),
        (Own, &[], "host: localhost.evil.example:8080", "403"),
        (Own, &[], "host: 127.0.0.1.nip.example:8080", "403"),
        (Own, &[], "host: 0.0.0.0:8080", "403"),
        (Own, &[], "host: 127.0.0.2:8080", "403"),
        (Own, &[], "host: 2130706433:8080", "403"),
        (Own, &[], "host: 0x7f.1:8080", "403"),
        (Own, &[], "host: [::1]:8080", "403"),
        (Own, &[], "host: [::ffff:127.0.0.1]:8080", "operator-http"),
        (Own, &[], "host: localhost..:8080", "403"),
        (Own, &[], "h2: evil.example:8080", "403"),
        // No name, several, and what is none (RFC 9112, section 3.2).
        (Own, &[], "", "400"),
        (Own, &[], "host: ", "400"),
        (Own, &[], "host: localhost:8080|host: localhost:8080", "400"),
        (Own, &[], "host: localhost:8080|host: evil.example", "400"),
        (Own, &[], "host: localhost:8080, evil.example", "400"),
        (Own, &[], "host: me@localhost:8080", "400"),
        (Own, &[], "host: localhost:+8080", "400"),
        (Own, &[], "host: [::1", "400"),
        (Own, &[], "h2: localhost:8080|host: evil.example", "400"),
        (Own, &[], "h2: localhost:8080|host: localhost:8080", "operator-http"),
        // Web pages of other origins, also with a token.
        (Own, &[], "host: localhost:8080|origin: http://evil.example", "403"),
        (Own, &[], "host: localhost:8080|origin: null", "403"),
        (Own, &[], "host: localhost:8080|origin: ", "403"),
        (Own, &[], "host: localhost:8080|origin: https://localhost:8080", "403"),
        (Own, &[], "host: localhost:8080|origin: http://localhost:9000", "403"),
        (Own, &[], "host: localhost:8080|origin: http://localhost:8080/", "403"),
        (Own, &[], "host: localhost:8080|origin: http://localhost:8080|origin: null", "403"),
        (Own, &[], "host: localhost:8080|sec-fetch-site: cross-site", "403"),
        (Own, &[], "host: localhost:8080|sec-fetch-site: same-site", "403"),
        (Own, &[], "host: localhost:8080|sec-fetch-site: Same-Origin", "403"),
        (Own, &[], "host: localhost:8080|sec-fetch-site: none|sec-fetch-site: none", "403"),
        (
            Own,
            &[],
            "host: localhost:8080|origin: http://evil.example|authorization: Bearer OPERATOR",
            "403",
        ),
        // Pages of the own origin are not the operator, and need a token.
        (Own, &[], "host: localhost:8080|origin: http://localhost:8080", "401"),
        (Own, &[], "host: localhost:8080|origin: HTTP://LocalHost:8080", "401"),
        (Own, &[], "host: localhost:8080|origin: http://127.0.0.1:8080", "401"),
        (Own, &[], "host: localhost:8080|sec-fetch-site: same-origin", "401"),
        (Own, &[], "host: localhost:8080|sec-fetch-site: none", "401"),
        (
            Own,
            &[],
            "host: localhost:8080|origin: http://localhost:8080|authorization: Bearer OPERATOR",
            "operator-token",
        ),
        (
            Own,
            &[],
            "host: localhost:8080|sec-fetch-site: same-origin|authorization: Bearer ACME",
            "client:acme",
        ),
        // What a proxy forwards is not its process's own; no header identifies anybody.
        (Own, &[], "host: localhost:8080|forwarded: for=127.0.0.1;host=localhost:8080", "401"),
        (Own, &[], "host: localhost:8080|x-forwarded-for: 127.0.0.1", "401"),
        (Own, &[], "host: localhost:8080|x-forwarded-host: localhost:8080", "401"),
        (Own, &[], "host: localhost:8080|x-real-ip: 127.0.0.1", "401"),
        (Own, &[], "host: localhost:8080|via: 1.1 proxy", "401"),
        (Own, &[], "host: evil.example|x-forwarded-host: localhost:8080", "403"),
        (Other, &[], "host: localhost:8080|x-forwarded-user: root", "401"),
        (
            Own,
            &[],
            "host: localhost:8080|x-forwarded-for: 10.0.0.1|authorization: Bearer ACME",
            "client:acme",
        ),
        // A credential replaces the operator, also an invalid one.
        (Own, &[], "host: localhost:8080|authorization: Bearer OPERATOR", "operator-token"),
        (Own, &[], "host: localhost:8080|authorization: bearer ACME", "client:acme"),
        (Own, &[], "host: localhost:8080|authorization: Bearer 00", "401"),
        (Own, &[], "host: localhost:8080|authorization: Bearer", "401"),
        (Own, &[], "host: localhost:8080|authorization: Basic b3BlcmF0b3I6", "401"),
        (Own, &[], "host: localhost:8080|authorization: OPERATOR", "401"),
        (
            Own,
            &[],
            "host: localhost:8080|authorization: Bearer ACME|authorization: Bearer ACME",
            "401",
        ),
        // Another user.
        (Other, &[], LOCAL, "401"),
        (Other, &[], "host: localhost:8080|authorization: Bearer OPERATOR", "operator-token"),
        (Other, &[], "host: localhost:8080|authorization: Bearer ACME", "client:acme"),
        (Other, &[], "host: localhost:8080|sec-fetch-site: none", "401"),
        // A program below an agent's tree stays that agent.
        (Agent, &[], LOCAL, "agent:codex/tree/1.2"),
        (Agent, &[], "host: localhost:8080|authorization: Bearer OPERATOR", "agent:codex/tree/1.2"),
        (Agent, &[], "host: localhost:8080|authorization: Bearer ACME", "agent:codex/tree/1.2"),
        (Agent, &[], "host: localhost:8080|authorization: Basic eA==", "agent:codex/tree/1.2"),
        (
            Agent,
            &[],
            "host: localhost:8080|origin: http://localhost:8080|authorization: Bearer OPERATOR",
            "agent:codex/tree/1.2",
        ),
        (Agent, &[], "h2: localhost:8080|authorization: Bearer ACME", "agent:codex/tree/1.2"),
        (Agent, &[], "host: localhost:8080|x-forwarded-for: 1.2.3.4", "agent:codex/tree/1.2"),
        (Agent, &[], "host: localhost:8080|origin: http://evil.example", "403"),
        (Orphan, &[], "host: localhost:8080|authorization: Bearer OPERATOR", "anonymous"),
        (Orphan, &[], LOCAL, "anonymous"),
        // A forwarded port of this user, which is named.
        (Own, &["http://localhost:9000"], "host: localhost:9000", "operator-http"),
        (Own, &["http://localhost:9000"], "host: localhost:9001", "403"),
        (
            Own,
            &["http://localhost:9000"],
            "host: localhost:9000|origin: http://localhost:9000",
            "401",
        ),
        (Own, &["http://localhost:9000"], "host: localhost:9000|sec-fetch-site: same-site", "403"),
        (Other, &["http://localhost:9000"], "host: localhost:9000", "401"),
        // A name on other machines withdraws the operator's identity, under each name.
        (Own, &["https://hub.example"], "host: hub.example", "401"),
        (Own, &["https://hub.example"], "host: HUB.example.:443", "401"),
        (Own, &["https://hub.example"], LOCAL, "401"),
        (Own, &["https://hub.example"], "h2: hub.example", "401"),
        (
            Own,
            &["https://hub.example"],
            "host: hub.example|authorization: Bearer OPERATOR",
            "operator-token",
        ),
        (
            Own,
            &["https://hub.example"],
            "host: hub.example|origin: https://hub.example|authorization: Bearer ACME",
            "client:acme",
        ),
        (
            Own,
            &["https://hub.example"],
            "host: localhost:8080|origin: https://hub.example|authorization: Bearer ACME",
            "client:acme",
        ),
        (
            Own,
            &["https://hub.example"],
            "host: hub.example|origin: http://hub.example|authorization: Bearer ACME",
            "403",
        ),
        (Own, &["https://hub.example"], "host: hub.example:80", "403"),
        (Own, &["https://hub.example"], "host: hub.example:8080", "403"),
        (Own, &["https://hub.example"], "host: evil.example|x-forwarded-host: hub.example", "403"),
        (Agent, &["https://hub.example"], "host: hub.example", "agent:codex/tree/1.2"),
        (Other, &["https://hub.example"], "host: hub.example", "401"),
    ];
    let tokens = TestTokens::new();
    for (process, names, headers, expected) in table {
        let got = admitted(*process, names, &tokens.fill(headers), &tokens, &Arc::default()).await;
        assert_eq!(got, *expected, "{process:?} {headers} {names:?}");
    }
}

/// Status, or principal in the form of a log, of a request to a hub at port 8080 with these people.
async fn admitted(
    process: PeerProcess,
    names: &[&str],
    headers: &str,
    tokens: &TestTokens,
    people: &Arc<People>,
) -> String {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
    let (here, there) = (client.peer_addr().unwrap(), client.local_addr().unwrap());
    let parsed: Vec<_> = names.iter().map(|name| HttpName::parse(name).unwrap()).collect();
    let all = HubNames::new(SocketAddr::from(([127, 0, 0, 1], 8080)), &parsed, None);
    let guard = OriginGuard::new(all, tokens.open(), Arc::default(), Arc::clone(people));
    let peers = PeerLookup::new(Arc::new(Always(process.principal())));
    let caller = HttpPeer::new(Some(here), there, peers);
    let mut request = Request::get("/agents").body(Body::empty()).unwrap();
    for header in headers.split('|').filter(|header| !header.is_empty()) {
        let (name, value) = header.split_once(": ").unwrap();
        if name == "h2" {
            *request.version_mut() = Version::HTTP_2;
            *request.uri_mut() = format!("http://{value}/agents").parse().unwrap();
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    name_host(&mut request);
    match guard.admit(&caller, &mut request).await {
        Ok(()) => request.extensions().get::<Principal>().unwrap().to_log(),
        Err(refused) => refused.status().as_str().to_owned(),
    }
}

/// Keys of people: `KEY` is one of `ada`, `OLD` one that has expired.
#[tokio::test]
async fn keys_identify_people_and_raise_no_agent() {
    let hub = TestDispatcher::new().await;
    let perform = async |request: PeopleRequest| {
        let operation = Operation::People(request);
        hub.dispatcher.hub().handle(&Principal::Operator, None, operation).await.unwrap()
    };
    let key = async |for_ms: u64| {
        let (person, label, scopes) = ("ada".to_owned(), String::new(), Vec::new());
        let terms = KeyTerms { person, label, scopes, for_ms };
        match perform(PeopleRequest::NewKey(terms)).await {
            Reply::One(Answer::People(PeopleReport::NewKey(made))) => made,
            Reply::One(_) | Reply::Stream(_) => panic!("no key"),
        }
    };
    let (name, role) = ("ada".to_owned(), "member".to_owned());
    perform(PeopleRequest::Add { name, role }).await;
    let (key, old) = (key(0).await, key(1).await);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (people, tokens) = (hub.dispatcher.hub().people(), TestTokens::new());
    let local = "host: localhost:8080";
    for (process, headers, expected) in [
        (Own, "|authorization: Bearer KEY", "person:ada/ID"),
        (Other, "|authorization: Bearer KEY", "person:ada/ID"),
        (Own, "|authorization: bearer  KEY", "person:ada/ID"),
        (Own, "|x-forwarded-for: ::1|authorization: Bearer KEY", "person:ada/ID"),
        // Below an agent's tree, a key changes nothing.
        (Agent, "|authorization: Bearer KEY", "agent:codex/tree/1.2"),
        (Orphan, "|authorization: Bearer KEY", "anonymous"),
        // Keys that are none.
        (Own, "|authorization: Bearer OLD", "401"),
        (Own, "|authorization: Bearer a2ah_", "401"),
        (Own, "|authorization: Bearer KEYx", "401"),
        (Own, "|authorization: Basic KEY", "401"),
        (Own, "|authorization: DPoP KEY", "401"),
        (Own, "|authorization: Bearer KEY|authorization: Bearer KEY", "401"),
        (Own, "|x-api-key: KEY", "401"),
        // While people have keys, the kernel identifies nobody, and tokens count as before.
        (Own, "", "401"),
        (Other, "", "401"),
        (Own, "|authorization: Bearer OPERATOR", "operator-token"),
        (Own, "|authorization: Bearer ACME", "client:acme"),
        (Agent, "", "agent:codex/tree/1.2"),
        // A page may send its key, and a foreign one may send nothing.
        (Own, "|origin: http://localhost:8080|authorization: Bearer KEY", "person:ada/ID"),
        (Own, "|origin: http://evil.example|authorization: Bearer KEY", "403"),
    ] {
        let headers =
            format!("{local}{headers}").replace("KEY", &key.secret).replace("OLD", &old.secret);
        let got = admitted(process, &[], &tokens.fill(&headers), &tokens, &people).await;
        assert_eq!(got.replace(&key.key.id, "ID"), expected, "{process:?} {headers}");
    }
}

/// Paths of a binding, by the callers that they are open to.
#[derive(Clone, Copy, PartialEq)]
enum Audience {
    /// Identified callers.
    Known,
    /// Those, and a browser of the hub's own user.
    OwnBrowser,
    /// Everybody.
    Everybody,
}
use Audience::{Everybody, Known, OwnBrowser};

/// Request to one binding: method, path, and body.
type BoundRequest = (&'static str, &'static str, &'static str);

const BINDINGS: [(Audience, BoundRequest); 25] = [
    (Known, ("POST", "/", r#"{"jsonrpc":"2.0","id":1,"method":"hub/ping"}"#)),
    (Known, ("POST", "/stream", r#"{"jsonrpc":"2.0","id":1,"method":"hub/ping"}"#)),
    (Known, ("POST", "/a2a", r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#)),
    (Known, ("POST", "/agents/claude-code", r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#)),
    (Known, ("GET", "/a2a/rest/tasks", "")),
    (Known, ("GET", "/agents/claude-code/rest/tasks", "")),
    (Known, ("POST", "/hub/ping", "")),
    (Known, ("POST", "/hub/questions/list", "{}")),
    (Known, ("GET", "/hub/questions/list", "")),
    (Known, ("POST", "/lf.a2a.v1.A2AService/ListTasks", "grpc")),
    (Known, ("POST", "/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)),
    (Known, ("GET", "/mcp", "websocket")),
    (Known, ("POST", "/submit_task", r#"{"input_data":{"text":"hi"}}"#)),
    (Known, ("GET", "/task_updates/x", "")),
    (Known, ("GET", "/.well-known/agent-card.json", "")),
    (Known, ("GET", "/.well-known/agents", "")),
    (Known, ("GET", "/agents", "")),
    (Known, ("GET", "/metrics", "")),
    (Known, ("GET", "/acp", "websocket")),
    (Known, ("GET", "/no-such-path", "")),
    (OwnBrowser, ("GET", "/", "")),
    (OwnBrowser, ("GET", "/health", "")),
    (Everybody, ("GET", "/.well-known/jwks.json", "")),
    (Everybody, ("POST", "/hooks/x", "{}")),
    (Everybody, ("POST", "/join", "{}")),
];

/// Server of a hub whose callers are all this process.
struct TestServer {
    address: SocketAddr,
    stop: CancellationToken,
    _serving: JoinSet<()>,
    hub: TestDispatcher,
}

impl TestServer {
    async fn new(process: PeerProcess, tokens: &TestTokens) -> Self {
        let hub = TestDispatcher::of_tenants(8, TestTokens::tenants()).await;
        let lineage = Arc::new(Always(process.principal()));
        let dispatcher = hub.dispatcher.clone().with_lineage(lineage);
        let server = HttpServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let (address, stop) = (server.address(), CancellationToken::new());
        let mut serving = JoinSet::new();
        serving.spawn(server.serve(dispatcher, tokens.open(), stop.clone()));
        Self { address, stop, _serving: serving, hub }
    }

    /// Sends a request with these headers, separated by `|`; returns the head of the response.
    async fn head(&self, (method, path, body): BoundRequest, headers: &str) -> String {
        let (media, body, more) = match body {
            "grpc" => ("application/grpc", "\0\0\0\0\0", "te: trailers\r\n"),
            "websocket" => (
                "",
                "",
                "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            ),
            body => ("application/json", body, "accept: application/json, text/event-stream\r\n"),
        };
        let headers = headers.replace("HERE", &self.address.to_string());
        let mut text = format!("{method} {path} HTTP/1.1\r\n{more}");
        for header in headers.split('|').filter(|header| !header.is_empty()) {
            write!(text, "{header}\r\n").unwrap();
        }
        if !body.is_empty() {
            write!(text, "content-type: {media}\r\ncontent-length: {}\r\n", body.len()).unwrap();
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        let (mut lines, mut head) = (BufReader::new(stream).take(1 << 16).lines(), String::new());
        while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
            head.push_str(&line);
            head.push('\n');
        }
        head
    }

    /// Status of the response. gRPC has its own numbers: 16 stands for 401, and 7 for each other
    /// refusal of the guard.
    async fn status(&self, binding: BoundRequest, headers: &str) -> String {
        let head = self.head(binding, headers).await;
        if head.contains("grpc-status: 16\n") {
            return "401".to_owned();
        }
        let is_grpc_refusal = head.contains("grpc-status: 7\n");
        if is_grpc_refusal && headers.is_empty() {
            return "400".to_owned();
        }
        if is_grpc_refusal {
            return "403".to_owned();
        }
        head.split(' ').nth(1).unwrap_or("none").to_owned()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Headers of a request, and the audiences that it belongs to; all other paths answer the status.
const ATTACKS: [(&str, PeerProcess, &str, &[Audience], &str); 11] = [
    ("program", Own, "host: HERE", &[Known, OwnBrowser, Everybody], ""),
    ("page", Own, "host: HERE|origin: http://HERE", &[OwnBrowser, Everybody], "401"),
    ("typed", Own, "host: HERE|sec-fetch-site: none", &[OwnBrowser, Everybody], "401"),
    ("proxied", Own, "host: HERE|x-forwarded-for: ::1", &[OwnBrowser, Everybody], "401"),
    (
        "page with token",
        Own,
        "host: HERE|origin: http://HERE|authorization: Bearer OPERATOR",
        &[Known, OwnBrowser, Everybody],
        "",
    ),
    (
        "foreign page with token",
        Own,
        "host: HERE|origin: http://evil.example|authorization: Bearer OPERATOR",
        &[],
        "403",
    ),
    ("rebound", Own, "host: evil.example|authorization: Bearer OPERATOR", &[], "403"),
    ("nameless", Own, "", &[], "400"),
    ("wrong token", Own, "host: HERE|authorization: Bearer 00", &[Everybody], "401"),
    ("wrong key", Own, "host: HERE|authorization: Bearer a2ah_00", &[Everybody], "401"),
    ("other user", Other, "host: HERE", &[Everybody], "401"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_binding_is_guarded_alike() {
    let tokens = TestTokens::new();
    let own = TestServer::new(Own, &tokens).await;
    let other = TestServer::new(Other, &tokens).await;
    let agent = TestServer::new(Agent, &tokens).await;
    for (audience, binding) in BINDINGS {
        for (attack, process, headers, open_to, refused) in ATTACKS {
            let server = if matches!(process, Other) { &other } else { &own };
            let status = server.status(binding, &tokens.fill(headers)).await;
            if open_to.contains(&audience) {
                assert!(
                    !["401", "403", "none"].contains(&&*status),
                    "{attack} {binding:?} {status}"
                );
            } else {
                assert_eq!(status, refused, "{attack} {binding:?}");
            }
        }
        // Below an agent's tree, a token changes nothing.
        let without = agent.status(binding, "host: HERE").await;
        for token in ["OPERATOR", "ACME", "00"] {
            let headers = tokens.fill(&format!("host: HERE|authorization: Bearer {token}"));
            assert_eq!(agent.status(binding, &headers).await, without, "{token} {binding:?}");
        }
    }
    // The challenge of RFC 9110, section 11.6.1, and the way out.
    let (_, a2a) = BINDINGS[2];
    let page = own.head(a2a, "host: HERE|origin: http://HERE").await;
    assert!(page.contains("www-authenticate: Bearer realm=\"a2a-hub\"\n"), "{page}");
    let wrong = own.head(a2a, "host: HERE|authorization: Bearer 00").await;
    assert!(wrong.contains("error=\"invalid_token\""), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_methods_take_json_by_post() {
    let own = TestServer::new(Own, &TestTokens::new()).await;
    for method in ["GET", "PUT", "DELETE"] {
        let head = own.head((method, "/hub/ping", ""), "host: HERE").await;
        assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("allow: POST\n"), "{head}");
    }
    for (path, headers, body, status) in [
        ("/hub/ping", "host: HERE", "", "200"),
        ("/hub/ping", "host: HERE", "{}", "200"),
        ("/hub/no/such", "host: HERE", "{}", "404"),
        ("/hub/", "host: HERE", "{}", "404"),
        ("/hub", "host: HERE", "{}", "404"),
        ("/hub/ping", "host: HERE|content-type: text/plain", "", "400"),
        ("/hub/ping", "host: HERE|content-encoding: gzip", "{}", "400"),
    ] {
        assert_eq!(own.status(("POST", path, body), headers).await, status, "{path} {headers}");
    }
}
