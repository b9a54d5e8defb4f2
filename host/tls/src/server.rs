//! TLS of the server: its configuration, which follows the files.

use crate::{
    client_certificate::{ClientCertificate, ParsedCertificate},
    denied::{DeniedCertificates, DenyingVerifier},
    files::{FileStamps, TlsFileError, read_certificates, read_key, stamps},
};
use a2a_hub_config::{ClientAuth, Tls, TlsVersion};
use a2a_hub_core::{
    http_name::HttpName,
    identity::{CertificateFingerprint, CertificateValidity, ValidityState},
};
use jiff::Timestamp;
use parking_lot::RwLock;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier},
    version::{TLS12, TLS13},
};
use std::{
    future::pending,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{task::spawn_blocking, time::sleep};
use tokio_util::sync::CancellationToken;

/// Interval at which the files are examined for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Protocols that clients choose from (RFC 7301), the preferred one first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Error of setting up TLS from its files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// `[tls]` names no certificate.
    #[error("set `tls.cert` and `tls.key`")]
    Off,
    /// A file is unusable.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// The certificate and the key do not go together, or are of an unsupported kind.
    #[error(
        "use the certificate {cert} with the key {key}: {why}; `openssl x509 -noout -pubkey -in {cert}` and `openssl pkey \
         -pubout -in {key}` print the same key if they go together"
    )]
    Pair {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// Error of the TLS library.
        why: rustls::Error,
    },
    /// The TLS library refuses the settings.
    #[error("set up TLS: {0}")]
    Setup(#[from] rustls::Error),
    /// The CA certificates of clients are unusable.
    #[error("use the CA certificates {path}: {why}")]
    ClientCa {
        /// File.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// The certificate is not valid at this time. Only a certificate that replaces another one is
    /// refused for this.
    #[error("use the certificate {0}: {1}")]
    NotValid(PathBuf, &'static str),
}

/// Condition of TLS, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsStatus {
    /// Names that the certificate is for: DNS names and IP addresses.
    pub names: Vec<String>,
    /// Last moment at which the certificate is valid, in seconds since 1970.
    pub expires_at: i64,
    /// Condition of the certificate.
    pub state: ValidityState,
    /// Reason why the files of now are not used, if so; those of before are.
    pub failure: Option<String>,
    /// Demand for client certificates; `None` without it.
    pub client_auth: Option<ClientAuth>,
}

impl TlsStatus {
    /// Last moment at which the certificate is valid: RFC 3339 in UTC.
    pub fn expires_at_text(&self) -> String {
        Timestamp::from_second(self.expires_at).map_or_else(|_| String::new(), |at| at.to_string())
    }

    /// Sentences about what the operator has to mend.
    pub fn warnings(&self) -> Vec<String> {
        let failure = self.failure.as_ref().map(|why| {
            format!("the changed TLS files are not used, and the old certificate stays: {why}")
        });
        let at = self.expires_at_text();
        let expiry = match self.state {
            ValidityState::Valid => None,
            ValidityState::ExpiresSoon => Some(format!(
                "the TLS certificate expires at {at}; renew it, and the hub takes the new files"
            )),
            ValidityState::Expired => Some(format!(
                "the TLS certificate expired at {at}, so clients refuse it; renew it, and the hub takes the new files"
            )),
            ValidityState::Future => {
                Some("the TLS certificate is not valid yet; is the clock right?".to_owned())
            }
        };
        failure.into_iter().chain(expiry).collect()
    }
}

/// TLS of a server. Clones share their state.
#[derive(Clone)]
pub struct ServerTls(Arc<ServerTlsInner>);

struct ServerTlsInner {
    settings: Tls,
    loaded: RwLock<LoadedTls>,
    denied: Arc<DeniedCertificates>,
}

struct LoadedTls {
    config: Arc<ServerConfig>,
    validity: CertificateValidity,
    names: Vec<String>,
    /// Stamps of the files that were examined last.
    stamps: FileStamps,
    failure: Option<String>,
}

impl ServerTls {
    /// Reads the files. An expired certificate is no error, but a warning. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// If a file is missing or unusable.
    pub fn open(settings: &Tls) -> Result<Self, TlsError> {
        let denied = Arc::new(DeniedCertificates::new(settings.denied.iter().copied()));
        let loaded = LoadedTls::read(settings, &denied)?;
        let (settings, loaded) = (settings.clone(), RwLock::new(loaded));
        Ok(Self(Arc::new(ServerTlsInner { settings, loaded, denied })))
    }

    /// Configuration for the next handshake.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.loaded.read().config)
    }

    /// Names at this port that the certificate is for, without wildcards.
    pub fn names(&self, port: u16) -> Vec<HttpName> {
        let loaded = self.0.loaded.read();
        let name = |host: &String| match host.contains(':') {
            true => HttpName::parse(&format!("https://[{host}]:{port}")).ok(),
            false => HttpName::parse(&format!("https://{host}:{port}")).ok(),
        };
        loaded.names.iter().filter_map(name).collect()
    }

    /// Condition at this moment.
    pub fn status(&self) -> TlsStatus {
        let loaded = self.0.loaded.read();
        let client_auth = self.0.settings.client_ca.as_ref().map(|_| self.0.settings.client_auth);
        TlsStatus {
            names: loaded.names.clone(),
            expires_at: i64::try_from(loaded.validity.not_after).unwrap_or(i64::MAX),
            state: loaded.validity.state(now()),
            failure: loaded.failure.clone(),
            client_auth,
        }
    }

    /// Follows the files and the denied certificates until `stop`.
    pub async fn follow(
        self,
        denied: impl Fn() -> Vec<CertificateFingerprint> + Send,
        stop: CancellationToken,
    ) {
        let follow = async {
            loop {
                sleep(POLL_INTERVAL).await;
                self.set_denied(denied());
                let this = self.clone();
                // Its panic is in the log; the files are read again at the next interval.
                let _ = spawn_blocking(move || this.refresh()).await;
            }
        };
        stop.run_until_cancelled_owned(follow).await;
    }

    /// Replaces the denied certificates.
    pub fn set_denied(&self, denied: Vec<CertificateFingerprint>) {
        self.0.denied.set(denied);
    }

    /// Reads the files if they changed, or were unusable before. If they are unusable, or hold a
    /// certificate that is not valid now, the previous ones stay in force. Blocks on disk I/O.
    pub fn refresh(&self) {
        let ServerTlsInner { settings, loaded, denied } = &*self.0;
        let stamps = stamps(&files_of(settings));
        {
            let loaded = loaded.read();
            if loaded.stamps == stamps && loaded.failure.is_none() {
                return;
            }
        }
        let read = LoadedTls::read(settings, denied);
        let read = read.and_then(|loaded| loaded.require_valid(settings));
        let mut loaded = loaded.write();
        match read {
            Ok(new) => {
                tracing::info!(names = new.names.join(", "), "read the TLS files again");
                *loaded = new;
            }
            Err(why) => {
                let why = why.to_string();
                if loaded.failure.as_ref() != Some(&why) {
                    tracing::error!(%why, "cannot use the changed TLS files, the old certificate stays");
                }
                (loaded.stamps, loaded.failure) = (stamps, Some(why));
            }
        }
    }

    /// Waits until a certificate of a connection's chain is denied, or the client's own expires.
    pub async fn until_ended(&self, certificate: &ClientCertificate) {
        let remaining = certificate.validity.not_after.saturating_sub(now());
        let expiry = async {
            // The timer of tokio ends after two years; connections live shorter.
            match remaining {
                0..=31_536_000 => sleep(Duration::from_secs(remaining)).await,
                _ => pending().await,
            }
        };
        tokio::select! {
            () = self.0.denied.until_contains(&certificate.chain) => {}
            () = expiry => {}
        }
    }
}

/// Now, in seconds since 1970.
fn now() -> u64 {
    u64::try_from(Timestamp::now().as_second()).unwrap_or_default()
}

/// Files of the settings.
fn files_of(settings: &Tls) -> Vec<&Path> {
    let files = [&settings.cert, &settings.key, &settings.client_ca];
    files.into_iter().flatten().map(PathBuf::as_path).collect()
}

impl LoadedTls {
    fn read(settings: &Tls, denied: &Arc<DeniedCertificates>) -> Result<Self, TlsError> {
        let (Some(cert), Some(key)) = (&settings.cert, &settings.key) else {
            return Err(TlsError::Off);
        };
        // Before the files, so that a change during the reading is noticed later.
        let stamps = stamps(&files_of(settings));
        let (chain, private) = (read_certificates(cert)?, read_key(key)?);
        let parsed = chain.first().and_then(ParsedCertificate::parse);
        let parsed = parsed.ok_or_else(|| TlsFileError::NoCertificate(cert.clone()))?;
        let provider = Arc::new(ring::default_provider());
        let versions = match settings.min_version {
            TlsVersion::V12 => &[&TLS13, &TLS12][..],
            TlsVersion::V13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions)?;
        let builder = match &settings.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let ca_error = |why: String| TlsError::ClientCa { path: path.clone(), why };
                let mut roots = RootCertStore::empty();
                for root in read_certificates(path)? {
                    roots.add(root).map_err(|why| ca_error(why.to_string()))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match settings.client_auth {
                    ClientAuth::Required => verifier,
                    ClientAuth::Optional => verifier.allow_unauthenticated(),
                };
                let verifier = verifier
                    .build()
                    .map_err(|why: VerifierBuilderError| ca_error(why.to_string()))?;
                let denied = Arc::clone(denied);
                builder.with_client_cert_verifier(Arc::new(DenyingVerifier { verifier, denied }))
            }
        };
        let mut config = builder.with_single_cert(chain, private).map_err(|why| {
            let (cert, key) = (cert.clone(), key.clone());
            TlsError::Pair { cert, key, why }
        })?;
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
        if settings.client_ca.is_some() {
            // A resumed session would skip the check of a certificate that is denied or expired
            // meanwhile.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        let (config, names) = (Arc::new(config), names_of(&parsed));
        Ok(Self { config, validity: parsed.validity, names, stamps, failure: None })
    }

    /// Checks a certificate that is to replace another one.
    fn require_valid(self, settings: &Tls) -> Result<Self, TlsError> {
        let why = match self.validity.state(now()) {
            ValidityState::Valid | ValidityState::ExpiresSoon => return Ok(self),
            ValidityState::Expired => "it has expired",
            ValidityState::Future => "it is not valid yet",
        };
        Err(TlsError::NotValid(settings.cert.clone().unwrap_or_default(), why))
    }
}

/// DNS names and IP addresses of a certificate.
fn names_of(parsed: &ParsedCertificate) -> Vec<String> {
    let address = |bytes: &Vec<u8>| {
        let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
        let v6 = || <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from);
        v4.or_else(|_| v6()).ok().map(|address| address.to_string())
    };
    let addresses = parsed.addresses.iter().filter_map(address);
    parsed.dns.iter().cloned().chain(addresses).collect()
}
