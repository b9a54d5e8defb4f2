//! Certificates for tests.

#![expect(clippy::unwrap_used, reason = "a test without certificates cannot go on")]

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SanType, date_time_ymd,
};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use std::{
    fs,
    io::Write as _,
    net::IpAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// CA that issues certificates.
pub struct TestCa(CertifiedIssuer<'static, KeyPair>);

/// Chain of a client's certificate, and its key.
pub type TestIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Content of a certificate.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestCertificate<'t> {
    /// DNS names.
    pub dns: &'t [&'t str],
    /// URIs.
    pub uris: &'t [&'t str],
    /// IP addresses.
    pub addresses: &'t [IpAddr],
    /// Common name of the subject.
    pub common_name: &'t str,
    /// First and last year of its validity; without them, it is valid for long.
    pub years: Option<(i32, i32)>,
    /// True for a certificate that its CA issued to servers only.
    pub is_for_servers: bool,
}

/// Certificate with its key, in PEM.
#[derive(Clone, Debug)]
pub struct IssuedCertificate {
    /// Certificate.
    pub cert: String,
    /// Key.
    pub key: String,
}

impl TestCa {
    /// Creates a CA with a new key.
    pub fn new() -> Self {
        let (params, key) = (Self::params("CA of a test"), KeyPair::generate().unwrap());
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Creates an intermediate CA, which this one vouches for.
    pub fn intermediate(&self) -> Self {
        let params = Self::params("intermediate CA of a test");
        Self(CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &self.0).unwrap())
    }

    fn params(common_name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params
    }

    /// Configuration of a client that trusts this CA, speaks these versions, and shows this
    /// certificate.
    pub fn client_config(
        &self,
        identity: Option<&TestIdentity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                builder.with_client_auth_cert(chain.clone(), key.clone_key()).unwrap()
            }
        }
    }

    /// Certificate of the CA, in PEM.
    pub fn cert(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate.
    pub fn issue(&self, content: TestCertificate<'_>) -> IssuedCertificate {
        let mut params = CertificateParams::default();
        let dns = content.dns.iter().map(|&name| SanType::DnsName(name.try_into().unwrap()));
        let uris = content.uris.iter().map(|&name| SanType::URI(name.try_into().unwrap()));
        let addresses = content.addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names = dns.chain(uris).chain(addresses).collect();
        params.distinguished_name.push(DnType::CommonName, content.common_name);
        if let Some((first, last)) = content.years {
            params.not_before = date_time_ymd(first, 1, 1);
            params.not_after = date_time_ymd(last, 1, 1);
        }
        if content.is_for_servers {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        }
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        IssuedCertificate { cert: cert.pem(), key: key.serialize_pem() }
    }
}

impl Default for TestCa {
    fn default() -> Self {
        Self::new()
    }
}

impl IssuedCertificate {
    /// Certificate and key, as a client shows them.
    pub fn identity(&self) -> TestIdentity {
        let cert = CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap();
        (vec![cert], PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap())
    }

    /// Writes `NAME.pem` and the private file `NAME.key`, in place of earlier ones.
    pub fn write(&self, dir: &Path, name: &str) -> (PathBuf, PathBuf) {
        let (cert, key) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
        for (path, text) in [(&cert, &self.cert), (&key, &self.key)] {
            let draft = path.with_extension("draft");
            let mut options = fs::OpenOptions::new();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft);
            file.unwrap().write_all(text.as_bytes()).unwrap();
            fs::rename(&draft, path).unwrap();
        }
        (cert, key)
    }
}
