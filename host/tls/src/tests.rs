//! Tests of certificates in files, of handshakes, and of names in certificates.

use crate::{
    ClientCertificate, ServerTls,
    fingerprints::{fingerprint, twins},
    testing::{TestCa, TestCertificate, TestIdentity},
};
use a2a_hub_config::{ClientAuth, Tls, TlsVersion};
use a2a_hub_core::identity::ValidityState;
use rustls::{
    SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::{TLS12, TLS13},
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const HUB: TestCertificate<'static> = TestCertificate { dns: &["hub.example"], ..ANY };
const ANY: TestCertificate<'static> = TestCertificate {
    dns: &[],
    uris: &[],
    addresses: &[],
    common_name: "",
    years: None,
    is_for_servers: false,
};
const ADA: TestCertificate<'static> = TestCertificate { dns: &["ada.corp"], ..ANY };

/// Directory with the files of a server, and its CA.
struct TlsStage {
    dir: TempDir,
    ca: TestCa,
    settings: Tls,
}

impl TlsStage {
    fn new() -> Self {
        let (dir, ca) = (tempfile::tempdir().unwrap(), TestCa::new());
        let (cert, key) = ca.issue(HUB).write(dir.path(), "hub");
        let settings = Tls { cert: Some(cert), key: Some(key), ..Tls::default() };
        Self { dir, ca, settings }
    }

    fn with_client_ca(mut self, client_auth: ClientAuth) -> Self {
        let path = self.dir.path().join("clients.pem");
        fs::write(&path, self.ca.cert()).unwrap();
        (self.settings.client_ca, self.settings.client_auth) = (Some(path), client_auth);
        self
    }

    fn open(&self) -> ServerTls {
        ServerTls::open(&self.settings).unwrap()
    }

    fn refused(&self) -> String {
        ServerTls::open(&self.settings).map(drop).unwrap_err().to_string()
    }

    /// Connects, and returns the client's certificate as the server sees it.
    async fn connect(
        &self,
        server: &ServerTls,
        identity: Option<&TestIdentity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Option<ClientCertificate>, String> {
        let config = self.ca.client_config(identity, versions);
        let (near, far) = duplex(1 << 16);
        let name = ServerName::try_from("hub.example").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let client = async {
            let mut stream = connector.connect(name, near).await.map_err(|why| why.to_string())?;
            stream.write_all(b"x").await.map_err(|why| why.to_string())?;
            let mut echoed = [0];
            // With TLS 1.3, the client sees a refusal of its certificate when it reads.
            let read = stream.read_exact(&mut echoed).await;
            read.map(|_| ()).map_err(|why| why.to_string())
        };
        let acceptor = TlsAcceptor::from(server.server_config());
        let serve = async {
            let mut stream = acceptor.accept(far).await.map_err(|why| why.to_string())?;
            let mut byte = [0];
            stream.read_exact(&mut byte).await.map_err(|why| why.to_string())?;
            stream.write_all(&byte).await.map_err(|why| why.to_string())?;
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            Ok::<_, String>(ClientCertificate::of_chain(chain))
        };
        let (client, served) = tokio::join!(client, serve);
        let served = served?;
        client.map(|()| served)
    }
}

const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

#[tokio::test]
async fn tls12_needs_its_setting() {
    let mut stage = TlsStage::new();
    let server = stage.open();
    assert_eq!(stage.connect(&server, None, BOTH).await, Ok(None));
    assert_eq!(stage.connect(&server, None, &[&TLS13]).await, Ok(None));
    let refused = stage.connect(&server, None, &[&TLS12]).await.unwrap_err();
    assert!(refused.contains("incompatible"), "{refused}");
    stage.settings.min_version = TlsVersion::V12;
    assert_eq!(stage.connect(&stage.open(), None, &[&TLS12]).await, Ok(None));
}

/// Table of client certificates, with the words of their refusal by both versions of TLS.
#[tokio::test]
async fn client_certificates_are_verified() {
    let mut stage = TlsStage::new().with_client_ca(ClientAuth::Required);
    stage.settings.min_version = TlsVersion::V12;
    let server = stage.open();
    // The holder of a certificate can make its twin; the first is that of P-256.
    let twin_of = |(chain, key): &TestIdentity| {
        let twin = CertificateDer::from(twins(&chain[0]).remove(0));
        assert_ne!(fingerprint(&twin), fingerprint(&chain[0]));
        (vec![twin], key.clone_key())
    };
    let issue = |content| stage.ca.issue(content).identity();
    let (good, denied) = (issue(ADA), issue(ADA));
    let (good_twin, denied_twin) = (twin_of(&good), twin_of(&denied));
    let second = issue(ADA);
    let second_twin = twin_of(&second);
    server.set_denied(vec![fingerprint(&denied.0[0]), fingerprint(&second_twin.0[0])]);
    let expired = TestCertificate { years: Some((2020, 2021)), ..ADA };
    let future = TestCertificate { years: Some((2998, 2999)), ..ADA };
    let servers = TestCertificate { is_for_servers: true, ..ADA };
    let other = TestCa::new();
    for (name, certificate, refusal) in [
        ("good", Some(good), None),
        ("flipped twin of a good one", Some(good_twin), None),
        ("none", None, Some("no certificates")),
        ("expired", Some(issue(expired)), Some("expired")),
        ("future", Some(issue(future)), Some("not valid yet")),
        ("for servers", Some(issue(servers)), Some("extended key usage")),
        ("of another CA", Some(other.issue(ADA).identity()), Some("invalid peer certificate")),
        ("denied", Some(denied), Some("Revoked")),
        ("flipped twin of a denied one", Some(denied_twin), Some("Revoked")),
        ("one whose flipped twin is denied", Some(second), Some("Revoked")),
    ] {
        for version in [&[&TLS13][..], &[&TLS12]] {
            let seen = stage.connect(&server, certificate.as_ref(), version).await;
            match (seen, refusal) {
                (Ok(Some(seen)), None) => assert_eq!(seen.names.dns, ["ada.corp"]),
                (Err(why), Some(refusal)) => {
                    let why = why.to_lowercase();
                    assert!(why.contains(&refusal.to_lowercase()), "{name}: {why}");
                }
                (seen, _) => panic!("{name}: {seen:?}"),
            }
        }
    }
    let stage = TlsStage::new().with_client_ca(ClientAuth::Optional);
    let server = stage.open();
    assert_eq!(stage.connect(&server, None, BOTH).await, Ok(None));
    let foreign = other.issue(ADA).identity();
    assert!(stage.connect(&server, Some(&foreign), BOTH).await.is_err());
    let own = stage.ca.issue(ADA).identity();
    assert!(stage.connect(&server, Some(&own), BOTH).await.unwrap().is_some());
}

#[tokio::test]
async fn names_are_read_as_they_are() {
    let stage = TlsStage::new().with_client_ca(ClientAuth::Required);
    let server = stage.open();
    let content = TestCertificate {
        dns: &["*.corp", "ada.corp\0.evil", "ADA.corp", "xn--d-zfa.corp"],
        uris: &["spiffe://corp/ada", "https://ada.corp"],
        addresses: &["10.0.0.1".parse().unwrap()],
        common_name: "bob.corp",
        ..ANY
    };
    let seen =
        stage.connect(&server, Some(&stage.ca.issue(content).identity()), BOTH).await.unwrap();
    let names = seen.unwrap().names;
    assert_eq!(names.dns, content.dns);
    assert_eq!(names.uris, content.uris);
    let common = TestCertificate { common_name: "ada.corp", ..ANY };
    let seen =
        stage.connect(&server, Some(&stage.ca.issue(common).identity()), BOTH).await.unwrap();
    let names = seen.unwrap().names;
    assert!(names.dns.is_empty() && names.uris.is_empty(), "a common name is no name: {names:?}");
}

#[tokio::test]
async fn broken_files_leave_old_certificate() {
    let stage = TlsStage::new();
    let (server, dir) = (stage.open(), stage.dir.path());
    let expires = |server: &ServerTls| server.status().expires_at_text()[..4].to_owned();
    assert_eq!((expires(&server), server.status().warnings()), ("4096".to_owned(), vec![]));
    let (cert, key) = (stage.settings.cert.clone().unwrap(), stage.settings.key.clone().unwrap());
    let good = (fs::read(&cert).unwrap(), fs::read(&key).unwrap());
    let put = |path: &Path, bytes: &[u8]| fs::write(path, bytes).unwrap();
    let other = stage.ca.issue(HUB);
    let refused_by = |break_it: &dyn Fn()| {
        break_it();
        server.refresh();
        let failure = server.status().failure;
        put(&cert, &good.0);
        put(&key, &good.1);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        server.refresh();
        assert_eq!(server.status().failure, None, "the files are good again");
        failure.unwrap_or_default()
    };
    let shared = || fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let expired = TestCertificate { years: Some((2020, 2021)), ..HUB };
    for (why, break_it) in [
        ("no certificate in PEM", &(|| put(&cert, b"junk")) as &dyn Fn()),
        ("no certificate in PEM", &|| put(&cert, b"")),
        ("no certificate in PEM", &|| {
            put(&cert, b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----");
        }),
        ("openssl pkey", &|| put(&cert, other.cert.as_bytes())),
        ("no unencrypted private key", &|| put(&key, other.cert.as_bytes())),
        ("chmod 600", &shared),
        ("it has expired", &|| drop(stage.ca.issue(expired).write(dir, "hub"))),
        ("it is not valid yet", &|| {
            let future = TestCertificate { years: Some((2998, 2999)), ..HUB };
            drop(stage.ca.issue(future).write(dir, "hub"));
        }),
        ("No such file", &|| fs::remove_file(&key).unwrap()),
    ] {
        let failure = refused_by(break_it);
        assert!(failure.contains(why), "{why}: {failure}");
        assert!(stage.connect(&server, None, BOTH).await.is_ok());
    }
    let renewed = TestCertificate { years: Some((2020, 2999)), ..HUB };
    stage.ca.issue(renewed).write(dir, "hub");
    server.refresh();
    assert_eq!(expires(&server), "2999");
    assert!(stage.connect(&server, None, BOTH).await.is_ok());
}

#[tokio::test]
async fn start_with_broken_files_is_refused() {
    let mut stage = TlsStage::new();
    let key = stage.settings.key.clone().unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(stage.refused().contains("chmod 600"), "{}", stage.refused());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let link = stage.dir.path().join("link.key");
    std::os::unix::fs::symlink(&key, &link).unwrap();
    stage.settings.key = Some(link);
    drop(stage.open());
    let no_ca = stage.dir.path().join("no-ca.pem");
    fs::write(&no_ca, "").unwrap();
    stage.settings.client_ca = Some(no_ca);
    assert!(stage.refused().contains("holds no certificate"), "{}", stage.refused());
    stage.settings.client_ca = None;
    stage.settings.cert = Some(stage.dir.path().to_owned());
    assert!(stage.refused().contains("holds no certificate"), "{}", stage.refused());
    let expired = TestCertificate { years: Some((2020, 2021)), ..HUB };
    let (cert, key) = stage.ca.issue(expired).write(stage.dir.path(), "expired");
    (stage.settings.cert, stage.settings.key) = (Some(cert), Some(key));
    let status = stage.open().status();
    assert_eq!(status.state, ValidityState::Expired, "the socket still works");
    assert!(status.warnings()[0].contains("expired at 2021-01-01"), "{:?}", status.warnings());
}

#[tokio::test]
async fn open_connection_ends_when_denied() {
    let stage = TlsStage::new().with_client_ca(ClientAuth::Required);
    let server = stage.open();
    let ada =
        stage.connect(&server, Some(&stage.ca.issue(ADA).identity()), BOTH).await.unwrap().unwrap();
    let bob =
        stage.connect(&server, Some(&stage.ca.issue(ADA).identity()), BOTH).await.unwrap().unwrap();
    let denied = server.clone();
    let end = server.until_ended(&ada);
    let deny = async { denied.set_denied(vec![ada.names.fingerprint]) };
    timeout(Duration::from_secs(5), async { tokio::join!(end, deny) }).await.unwrap();
    let other = timeout(Duration::from_millis(50), server.until_ended(&bob)).await;
    assert!(other.is_err(), "only the denied one ends");
}

/// The client's own certificate is not denied: that of its issuer is, which came with it.
#[tokio::test]
async fn denied_intermediate_ends_open_connection() {
    let stage = TlsStage::new().with_client_ca(ClientAuth::Required);
    let (server, between) = (stage.open(), stage.ca.intermediate());
    let issuer = CertificateDer::from_pem_slice(between.cert().as_bytes()).unwrap();
    let (mut chain, key) = between.issue(ADA).identity();
    chain.push(issuer.clone());
    let identity = (chain, key);
    let ada = stage.connect(&server, Some(&identity), BOTH).await.unwrap().unwrap();
    let open = timeout(Duration::from_millis(50), server.until_ended(&ada)).await;
    assert!(open.is_err(), "nothing is denied");
    server.set_denied(vec![fingerprint(&issuer)]);
    timeout(Duration::from_secs(5), server.until_ended(&ada)).await.unwrap();
    let refused = stage.connect(&server, Some(&identity), BOTH).await.unwrap_err();
    assert!(refused.contains("Revoked"), "{refused}");
}
