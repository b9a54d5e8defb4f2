//! Requests of an agent against misbehaving servers on loopback.

use super::*;
use a2a_hub_core::grant::{Ask, EffectiveGrant, Grant, http::Scheme, intersect};
use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};

const PATIENCE: Duration = Duration::from_secs(10);
const SECRET: &str = "sk-1234567890";

/// Server on loopback that answers each connection with these pieces, a moment apart, and records
/// the requests. An empty piece stalls: the connection stays open and silent.
struct ScriptedServer {
    port: u16,
    asked: Arc<parking_lot::Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl ScriptedServer {
    async fn start(pieces: &[&str]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<parking_lot::Mutex<Vec<String>>>::default();
        let pieces: Vec<_> = pieces.iter().map(|&piece| piece.to_owned()).collect();
        let mut serving = JoinSet::new();
        let heard = Arc::clone(&asked);
        serving.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 16 << 10];
                let read = stream.read(&mut head).await.unwrap_or(0);
                heard.lock().push(String::from_utf8_lossy(&head[..read]).into_owned());
                for piece in &pieces {
                    if piece.is_empty() {
                        sleep(PATIENCE).await;
                    }
                    let _ = stream.write_all(piece.as_bytes()).await;
                    sleep(Duration::from_millis(20)).await;
                }
            }
        });
        Self { port, asked, _serving: serving }
    }

    fn asked(&self) -> String {
        self.asked.lock().join("\n---\n")
    }
}

/// Grant for `api.test` and `127.0.0.1`: all paths, with a secret, by plain HTTP.
fn held(port: u16, is_private: bool) -> Arc<EffectiveGrant> {
    let asks = serde_json::json!({ "http": { "*": { "methods": ["GET", "POST"] } } });
    let ask: Ask = serde_json::from_value(asks).unwrap();
    let headers = serde_json::json!({ "Authorization": "Bearer secret:AN_API_KEY" });
    let granted = serde_json::json!({
        "scheme": Scheme::Http, "ports": [port], "private": is_private, "headers": headers,
    });
    let grant = serde_json::json!({ "http": { "api.test": granted, "127.0.0.1": granted } });
    Arc::new(intersect(&ask, &serde_json::from_value::<Grant>(grant).unwrap()))
}

fn store(data: &Path) -> SecretStore {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(data.join("secrets")).unwrap();
    let mut options = fs::OpenOptions::new();
    let mut file =
        options.write(true).create(true).mode(0o600).open(data.join("secrets/AN_API_KEY"));
    std::io::Write::write_all(file.as_mut().unwrap(), SECRET.as_bytes()).unwrap();
    SecretStore::new(data)
}

fn agent() -> AgentId {
    AgentId::parse("poet").unwrap()
}

fn outgoing(held: &EffectiveGrant, url: &str, headers: &[(&str, &str)]) -> PermittedRequest {
    let admitted = held.http.admit("poet", "GET", url).unwrap();
    let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    PermittedRequest { admitted, headers: headers.collect(), body: Vec::new(), timeout: PATIENCE }
}

async fn body(mut answer: HttpResponse) -> String {
    let mut text = Vec::new();
    while let Some(piece) = answer.body.next().await.unwrap() {
        text.extend(piece);
    }
    String::from_utf8(text).unwrap()
}

/// Client of an agent that may reach `server`, with its grant.
fn http(server: &ScriptedServer, data: &Path) -> (AgentHttp, Arc<EffectiveGrant>, LiveGrant) {
    let held = held(server.port, true);
    let live = LiveGrant::new(Arc::clone(&held));
    (AgentHttp::new(agent(), live.clone(), store(data), Arc::new(resolve)), held, live)
}

#[tokio::test]
async fn response_secrets_are_redacted() {
    let data = tempfile::tempdir().unwrap();
    let pieces = [
        "HTTP/1.1 200 OK\r\nX-Key: Bearer sk-1234567890\r\nSet-Cookie: sk-1234567890\r\nConnection: close\r\n\r\nBearer sk-123",
        "456",
        "7890, and sk-12",
        "34; sk-1234567890",
    ];
    let server = ScriptedServer::start(&pieces).await;
    let (http, held, _) = http(&server, data.path());
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let own = [
        ("Authorization", "Bearer mine"),
        ("Accept-Encoding", "gzip"),
        ("Range", "bytes=0-3"),
        ("X-Own", "1"),
    ];
    let answer = http.send(outgoing(&held, &url, &own)).await.unwrap();
    let asked = server.asked();
    assert!(asked.contains("authorization: Bearer sk-1234567890\r\n"), "{asked}");
    assert!(
        asked.contains("x-own: 1\r\n") && asked.contains("accept-encoding: identity\r\n"),
        "{asked}"
    );
    assert!(
        !asked.contains("mine") && !asked.contains("gzip") && !asked.contains("bytes="),
        "{asked}"
    );
    let headers = format!(
        "{:?}",
        answer.headers.iter().map(|(_, value)| String::from_utf8_lossy(value)).collect::<Vec<_>>()
    );
    assert!(
        !headers.contains(SECRET) && headers.matches("[redacted AN_API_KEY]").count() == 2,
        "{headers}"
    );
    let mark = "[redacted AN_API_KEY]";
    assert_eq!(body(answer).await, format!("Bearer {mark}, and sk-1234; {mark}"));
}

#[tokio::test]
async fn encoded_response_is_refused() {
    let data = tempfile::tempdir().unwrap();
    for head in [
        "Content-Encoding: gzip\r\nContent-Length: 0",
        "Content-Encoding: identity, br\r\nContent-Length: 0",
        "Content-Encoding: identity\r\nContent-Encoding: zstd\r\nContent-Length: 0",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: deflate",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n0\r\n\r\n");
        let server = ScriptedServer::start(&[&answer]).await;
        let (http, held, _) = http(&server, data.path());
        let url = format!("http://127.0.0.1:{}/", server.port);
        let refused = http.send(outgoing(&held, &url, &[])).await.err().unwrap().to_string();
        let is_refused = refused.contains("could not take the secrets out of it");
        assert!(is_refused || refused.contains("send a request to"), "{head}: {refused}");
    }
    let server = ScriptedServer::start(&["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]).await;
    let (http, held, _) = http(&server, data.path());
    let url = format!("http://127.0.0.1:{}/", server.port);
    http.send(outgoing(&held, &url, &[])).await.unwrap();
    fs::remove_file(data.path().join("secrets/AN_API_KEY")).unwrap();
    let missing = http.send(outgoing(&held, &url, &[])).await.err().unwrap();
    assert!(missing.to_string().contains("set the variable `AN_API_KEY`"), "{missing}");
    assert_eq!(server.asked.lock().len(), 1, "without its secret, nothing is sent");
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let data = tempfile::tempdir().unwrap();
    let head = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n";
    let server = ScriptedServer::start(&[head]).await;
    let (http, held, _) = http(&server, data.path());
    let url = format!("http://127.0.0.1:{}/", server.port);
    let answer = http.send(outgoing(&held, &url, &[])).await.unwrap();
    assert_eq!((answer.status, server.asked.lock().len()), (302, 1));
}

/// The judged addresses are dialled without a second lookup (DNS rebinding), and one bad address
/// refuses them all.
#[tokio::test]
async fn only_judged_addresses_are_dialled() {
    let data = tempfile::tempdir().unwrap();
    let server = ScriptedServer::start(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"]).await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let resolving = |addresses: &[&str]| -> Arc<Resolve> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let lookups = Arc::clone(&lookups);
        Arc::new(move |_| {
            lookups.fetch_add(1, SeqCst);
            let addresses = addresses.clone();
            Box::pin(async move { Ok(addresses) })
        })
    };
    let url = format!("http://api.test:{}/", server.port);
    let ask = async |is_private: bool, addresses: &[&str]| {
        let held = held(server.port, is_private);
        let live = LiveGrant::new(Arc::clone(&held));
        let http = AgentHttp::new(agent(), live, store(data.path()), resolving(addresses));
        let answer = http.send(outgoing(&held, &url, &[])).await;
        match answer {
            Ok(answer) => body(answer).await,
            Err(Failure::Denied(why)) => format!("denied: {why}"),
            Err(other) => panic!("{other}"),
        }
    };
    let private = "denied: send a request to `api.test`: it is 127.0.0.1, a private address";
    assert!(ask(false, &["8.8.8.8", "127.0.0.1"]).await.starts_with(private));
    assert!(ask(false, &["127.0.0.1"]).await.starts_with(private));
    let never = ask(true, &["127.0.0.1", "169.254.169.254"]).await;
    assert!(never.contains("169.254.169.254, where nothing may be sent"), "{never}");
    assert!(server.asked.lock().is_empty(), "nothing was dialled");
    assert_eq!(ask(true, &["127.0.0.1"]).await, "hi");
    assert_eq!(lookups.load(SeqCst), 4, "once a request");
}

#[tokio::test]
async fn revocation_aborts_pending_requests() {
    let data = tempfile::tempdir().unwrap();
    let endless =
        ScriptedServer::start(&["HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst", ""]).await;
    let mute = ScriptedServer::start(&[""]).await;
    for (server, has_head) in [(&endless, true), (&mute, false)] {
        let (http, held, live) = http(server, data.path());
        let url = format!("http://127.0.0.1:{}/", server.port);
        let begun = Instant::now();
        let work = async {
            let mut answer = http.send(outgoing(&held, &url, &[])).await?;
            assert!(has_head);
            assert_eq!(answer.body.next().await?.as_deref(), Some(b"first".as_slice()));
            answer.body.next().await
        };
        let revoking = async {
            sleep(Duration::from_millis(200)).await;
            live.narrow_to(EffectiveGrant::default());
        };
        let (ended, ()) = tokio::join!(work, revoking);
        let Err(Failure::Denied(why)) = ended else { panic!("{ended:?}") };
        assert!(why.contains("revoked by the operator"), "{why}");
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert!(matches!(http.send(outgoing(&held, &url, &[])).await, Err(Failure::Denied(_))));
    }
}

#[tokio::test]
async fn silent_server_hits_timeout() {
    let data = tempfile::tempdir().unwrap();
    let server = ScriptedServer::start(&[""]).await;
    let (http, held, _) = http(&server, data.path());
    let url = format!("http://127.0.0.1:{}/", server.port);
    let timeout = Duration::from_millis(200);
    let request = PermittedRequest { timeout, ..outgoing(&held, &url, &[]) };
    let late = http.send(request).await.err().unwrap();
    assert!(late.to_string().ends_with("no answer within 200 ms"), "{late}");
}
