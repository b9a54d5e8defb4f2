//! TLS of the HTTP listener: handshakes of clients that are slow, many or wrong, and certificates
//! that are replaced or denied while connections are open.

use super::Always;
use crate::http::{hub_names::HubNames, listener::HttpListener, origin_guard::OriginGuard};
use a2a_hub_config::{ClientAuth, Tls, token::Tokens};
use a2a_hub_core::{access_control::Principal, identity::CertificateFingerprint};
use a2a_hub_tls::{
    ClientCertificate, ServerTls,
    testing::{IssuedCertificate, TestCa, TestCertificate},
};
use axum::{Router, body::Body, extract::Request, routing::get};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::TLS13,
};
use std::{fs, io, net::SocketAddr, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

/// Begin of a ClientHello of 512 bytes, of which the rest never comes.
const HALF_HELLO: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];

/// HTTPS server of callers without identity. `GET /wait` answers once it is released.
struct HttpsServer {
    address: SocketAddr,
    dir: TempDir,
    ca: TestCa,
    tls: ServerTls,
    /// One permit for each answer of `/wait`.
    release: Arc<Semaphore>,
    /// One permit for each request to `/wait`.
    begun: Arc<Semaphore>,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl HttpsServer {
    async fn new(connections: usize, client_timeout: Duration, has_client_ca: bool) -> Self {
        let (dir, ca) = (tempfile::tempdir().unwrap(), TestCa::new());
        let (cert, key) = ca.issue(Self::content()).write(dir.path(), "hub");
        let clients = dir.path().join("clients.pem");
        fs::write(&clients, ca.cert()).unwrap();
        let settings = Tls {
            cert: Some(cert),
            key: Some(key),
            client_ca: has_client_ca.then_some(clients),
            client_auth: ClientAuth::Required,
            ..Tls::default()
        };
        let tls = ServerTls::open(&settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (release, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (wait, begins) = (Arc::clone(&release), Arc::clone(&begun));
        let waiting = async move || {
            begins.add_permits(1);
            wait.acquire().await.unwrap().forget();
            "released"
        };
        let routes = Router::new().route("/health", get(async || "served"));
        let routes = routes.route("/wait", get(waiting));
        // The operator's process, so that the guard admits the paths of the page.
        let lineage = Arc::new(Always(Some(Principal::Operator)));
        let listener = HttpListener::new(listener, connections, client_timeout, lineage);
        let listener = listener.with_tls(Some(tls.clone()));
        let tokens = Tokens::open(dir.path(), std::iter::empty()).unwrap();
        let names = HubNames::of_server(address, true, &[], None);
        let guard = OriginGuard::new(names, tokens, Arc::default(), Arc::default());
        let (stop, mut serving) = (CancellationToken::new(), JoinSet::new());
        serving.spawn(listener.serve(guard, routes, stop.clone()));
        Self { address, dir, ca, tls, release, begun, stop, serving }
    }

    fn content() -> TestCertificate<'static> {
        TestCertificate { dns: &["localhost"], ..TestCertificate::default() }
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn connect(
        &self,
        alpn: &[u8],
        certificate: Option<&IssuedCertificate>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let identity = certificate.map(IssuedCertificate::identity);
        let mut config = self.ca.client_config(identity.as_ref(), &[&TLS13]);
        config.alpn_protocols = vec![alpn.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.tcp().await).await
    }

    /// Sends a request over HTTP/1.1.
    async fn ask(&self, stream: &mut TlsStream<TcpStream>, path: &str) -> io::Result<()> {
        let port = self.address.port();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await
    }

    async fn answer(&self, path: &str) -> io::Result<String> {
        let mut stream = self.connect(b"http/1.1", None).await?;
        self.ask(&mut stream, path).await?;
        read_all(&mut stream).await
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Reads until the connection ends, also without `close_notify`.
async fn read_all(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<String> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes).await {
        Err(why) if why.kind() != io::ErrorKind::UnexpectedEof => return Err(why),
        Ok(_) | Err(_) => {}
    }
    Ok(String::from_utf8(bytes).unwrap())
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_share_one_port() {
    let server = HttpsServer::new(16, LONG, false).await;
    let answer = server.answer("/health").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("served"), "{answer}");
    let stream = server.connect(b"h2", None).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let url = format!("https://localhost:{}/health", server.address.port());
    let response = client.send_request(Request::get(url).body(Body::empty()).unwrap()).await;
    assert_eq!(response.unwrap().status(), 200);
    let other = server.connect(b"spdy/3", None).await.unwrap_err().to_string();
    assert!(other.contains("NoApplicationProtocol"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_refused_with_reason() {
    let server = HttpsServer::new(16, LONG, false).await;
    for request in ["GET /health HTTP/1.1\r\nhost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut plain = server.tcp().await;
        plain.write_all(request.as_bytes()).await.unwrap();
        let answer = timeout(LONG, read_all(&mut plain)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("this port speaks HTTPS"), "{answer}");
    }
    let mut junk = server.tcp().await;
    junk.write_all(b"\0\0\0junk").await.unwrap();
    // Unread bytes make the system reset the connection.
    let answer = timeout(LONG, read_all(&mut junk)).await.unwrap().unwrap_or_default();
    assert_eq!(answer, "");
    assert!(server.answer("/health").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_handshake_is_cut_off() {
    let server = HttpsServer::new(16, Duration::from_millis(300), false).await;
    let begun = Instant::now();
    let (mut silent, mut half, mut dripping) =
        (server.tcp().await, server.tcp().await, server.tcp().await);
    half.write_all(HALF_HELLO).await.unwrap();
    let drip = async {
        for byte in HALF_HELLO.iter().cycle() {
            if dripping.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ends = async { tokio::join!(read_all(&mut silent), read_all(&mut half), drip) };
    // How each connection ends does not matter: its bytes were read, or they were not.
    let _ = timeout(Duration::from_secs(10), ends).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

/// A client that chooses HTTP/2 in the handshake, and sends no preface, or the begin of one.
#[tokio::test(flavor = "multi_thread")]
async fn missing_preface_delays_no_shutdown() {
    const PREFACE_BEGIN: &[u8] = b"PRI * HTTP";
    let mut server = HttpsServer::new(16, LONG, false).await;
    let silent = server.connect(b"h2", None).await.unwrap();
    let mut half = server.connect(b"h2", None).await.unwrap();
    half.write_all(PREFACE_BEGIN).await.unwrap();
    // Both connections have ended their handshakes then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.stop.cancel();
    let ended = timeout(Duration::from_secs(10), server.serving.join_next()).await;
    ended.unwrap().unwrap().unwrap();
    drop((silent, half));
    let server = HttpsServer::new(16, Duration::from_millis(500), false).await;
    let mut silent = server.connect(b"h2", None).await.unwrap();
    let mut half = server.connect(b"h2", None).await.unwrap();
    half.write_all(PREFACE_BEGIN).await.unwrap();
    let ends = async { tokio::join!(read_all(&mut silent), read_all(&mut half)) };
    // A client that is never served is disconnected.
    let _ = timeout(Duration::from_secs(10), ends).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_handshakes_keep_nobody_out() {
    a2a_hub_process::limits::raise_open_files().unwrap();
    let server = HttpsServer::new(128, LONG, false).await;
    let mut half_open = Vec::new();
    for number in 0..1_000 {
        let Ok(mut stream) = TcpStream::connect(server.address).await else { break };
        // Those that were evicted are reset.
        drop(stream.write_all(HALF_HELLO).await);
        half_open.push(stream);
        if number % 250 == 249 {
            let answer = timeout(Duration::from_secs(10), async {
                loop {
                    match server.answer("/health").await {
                        Ok(answer) if answer.ends_with("served") => return,
                        // Refused or evicted in favour of another one: a client tries again.
                        Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            });
            assert!(answer.await.is_ok(), "after {number} half-open handshakes");
        }
    }
    assert_eq!(half_open.len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_certificate_loses_no_request() {
    const REQUESTS: usize = 200;
    let server = HttpsServer::new(400, LONG, false).await;
    let mut streams = Vec::new();
    for _ in 0..REQUESTS {
        let mut stream = server.connect(b"http/1.1", None).await.unwrap();
        server.ask(&mut stream, "/wait").await.unwrap();
        streams.push(stream);
    }
    let begun = server.begun.acquire_many(u32::try_from(REQUESTS).unwrap());
    timeout(LONG, begun).await.unwrap().unwrap().forget();
    let renewed = TestCertificate { years: Some((2020, 2999)), ..HttpsServer::content() };
    server.ca.issue(renewed).write(server.dir.path(), "hub");
    server.tls.refresh();
    assert!(server.tls.status().expires_at_text().starts_with("2999"));
    let served = server.connect(b"http/1.1", None).await.unwrap();
    let chain = served.get_ref().1.peer_certificates().unwrap();
    let seen = ClientCertificate::of_verified(&chain[0]);
    assert_eq!(i64::try_from(seen.validity.not_after).unwrap(), server.tls.status().expires_at);
    server.release.add_permits(REQUESTS);
    for mut stream in streams {
        let answer = timeout(LONG, read_all(&mut stream)).await.unwrap().unwrap();
        assert!(answer.ends_with("released"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_certificate_loses_its_connections() {
    let server = HttpsServer::new(16, LONG, true).await;
    let ada = TestCertificate { dns: &["ada.corp"], ..TestCertificate::default() };
    let (ada, other) = (server.ca.issue(ada), server.ca.issue(ada));
    let mut none = server.connect(b"http/1.1", None).await.unwrap();
    assert!(none.read_u8().await.is_err(), "a certificate is required");
    let mut idle = server.connect(b"http/1.1", Some(&ada)).await.unwrap();
    let mut others = server.connect(b"http/1.1", Some(&other)).await.unwrap();
    server.ask(&mut others, "/health").await.unwrap();
    // Nobody has the certificate: its holder is nobody, also as a process of the operator.
    let answer = timeout(LONG, read_all(&mut others)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("ada.corp"), "{answer}");
    let der = CertificateDer::from_pem_slice(ada.cert.as_bytes()).unwrap();
    let fingerprint: CertificateFingerprint =
        ClientCertificate::of_verified(&der).names.fingerprint;
    server.tls.set_denied(vec![fingerprint]);
    let ended = timeout(Duration::from_secs(5), read_all(&mut idle)).await;
    assert_eq!(ended.unwrap().unwrap_or_default(), "");
    let mut again = server.connect(b"http/1.1", Some(&ada)).await.unwrap();
    let refused = again.read_u8().await.unwrap_err().to_string();
    assert!(refused.to_lowercase().contains("revoked"), "{refused}");
    let others = server.connect(b"http/1.1", Some(&other)).await;
    assert!(others.is_ok());
}
