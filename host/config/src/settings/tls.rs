//! Settings of TLS: the certificate of the HTTP server, and the certificates of its clients.

use crate::{client_tls::absolute, error::ConfigError};
use a2a_hub_core::identity::{
    CertificateFingerprint, CertificateName, CertificateRule, CertificateRules, KeyScopes,
    PersonName,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most entries of `tls.denied` and of `[[tls.client]]`.
const MAX_ENTRIES: usize = 1_000;

/// `[tls]`: TLS of the HTTP server. Without a certificate, it serves plain HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// File with the certificate and its intermediate ones, in PEM. Relative to the configuration
    /// file, as all files here.
    pub cert: Option<PathBuf>,
    /// File with the private key, in PEM. Only the hub's user may read it.
    pub key: Option<PathBuf>,
    /// File with the CA certificates of clients, in PEM.
    pub client_ca: Option<PathBuf>,
    /// Demand for certificates of `client_ca`.
    pub client_auth: ClientAuth,
    /// Lowest version of TLS that clients may speak.
    pub min_version: TlsVersion,
    /// `[[tls.client]]`: people of client certificates.
    pub client: Vec<TlsClient>,
    /// Fingerprints of client certificates that are refused. Read again by a reload.
    pub denied: Vec<CertificateFingerprint>,
}

/// Demand for client certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// A connection without a certificate is refused.
    #[default]
    Required,
    /// A connection without a certificate is served, as without `client_ca`.
    Optional,
}

/// Version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    V12,
    /// TLS 1.3 (RFC 8446).
    #[default]
    #[serde(rename = "1.3")]
    V13,
}

/// `[[tls.client]]`: the person of client certificates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TlsClient {
    /// DNS name or SPIFFE ID, which must be the only one of its kind in the certificate.
    pub san: Option<String>,
    /// SHA-256 digest of the certificate.
    pub fingerprint: Option<CertificateFingerprint>,
    /// Name of the person.
    pub person: PersonName,
    /// Scopes, as those of an API key. Without any, the person's role is not narrowed.
    #[serde(default)]
    pub scopes: KeyScopes,
}

impl TlsClient {
    fn name(&self) -> Result<CertificateName, String> {
        match (&self.san, self.fingerprint) {
            (Some(san), None) => CertificateName::parse_san(san).map_err(|why| why.to_string()),
            (None, Some(fingerprint)) => Ok(CertificateName::Fingerprint(fingerprint)),
            (Some(_), Some(_)) | (None, None) => {
                Err(format!("the entry of `{}` needs `san` or `fingerprint`", self.person))
            }
        }
    }
}

impl Tls {
    /// True if the HTTP server speaks TLS.
    pub fn is_on(&self) -> bool {
        self.cert.is_some()
    }

    /// Rules about client certificates.
    ///
    /// # Errors
    ///
    /// If an entry has no valid name, or an earlier entry has the same one.
    pub fn rules(&self) -> Result<CertificateRules, ConfigError> {
        let mut rules: Vec<CertificateRule> = Vec::new();
        for client in &self.client {
            let name = client.name().map_err(|why| invalid("client", why))?;
            if rules.iter().any(|rule| rule.name == name) {
                let why = format!("two entries name `{name}`; remove one");
                return Err(invalid("client", why));
            }
            let (person, scopes) = (client.person.clone(), client.scopes.clone());
            rules.push(CertificateRule { name, person, scopes });
        }
        Ok(CertificateRules::new(rules))
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match (&self.cert, &self.key) {
            (Some(_), None) => {
                return Err(invalid("key", "name the file with the private key of `tls.cert`"));
            }
            (None, Some(_)) => {
                return Err(invalid("cert", "name the file with the certificate of `tls.key`"));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        if self.client_ca.is_some() && !self.is_on() {
            return Err(invalid("cert", "client certificates need TLS, so a `cert` and a `key`"));
        }
        let is_for_clients = !self.client.is_empty() || !self.denied.is_empty();
        if is_for_clients && self.client_ca.is_none() {
            let why =
                "`client` and `denied` are about certificates that this CA issues; name its file";
            return Err(invalid("client_ca", why));
        }
        for (setting, count) in [("client", self.client.len()), ("denied", self.denied.len())] {
            if count > MAX_ENTRIES {
                let why = format!("{count} entries are more than {MAX_ENTRIES}; use another CA");
                return Err(invalid(setting, why));
            }
        }
        self.rules().map(drop)
    }

    /// Makes paths absolute: `expand` replaces `~`, and others are relative to `base`.
    pub(crate) fn expand(&mut self, base: Option<&Path>, expand: impl Fn(PathBuf) -> PathBuf) {
        absolute([&mut self.cert, &mut self.key, &mut self.client_ca], base, expand);
    }
}

fn invalid(setting: &'static str, why: impl Into<String>) -> ConfigError {
    ConfigError::Tls { setting, why: why.into() }
}

#[cfg(test)]
mod tests {
    use crate::settings::read_checked;

    const ON: &str = "[tls]\ncert = 'a.pem'\nkey = 'b.pem'\nclient_ca = 'c.pem'\n";

    #[test]
    fn tls_needs_certificate_with_key() {
        for (text, why) in [
            ("tls.cert = 'a.pem'", "set `tls.key`"),
            ("tls.key = 'a.pem'", "set `tls.cert`"),
            ("tls.client_ca = 'a.pem'", "set `tls.cert`"),
            (
                "[tls]\ncert = 'a'\nkey = 'b'\n[[tls.client]]\nsan = 'ada'\nperson = 'ada'",
                "client_ca",
            ),
            ("tls.min_version = '1.1'", "1.1"),
            ("tls.client_auth = 'maybe'", "maybe"),
            ("http.host = '0.0.0.0'", "tls.cert"),
        ] {
            let refused = read_checked(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let open = read_checked("http.host = '0.0.0.0'\ntls.cert = 'a'\ntls.key = 'b'").unwrap();
        assert!(open.tls.is_on() && !read_checked("").unwrap().tls.is_on());
        assert!(
            read_checked(&format!("{ON}min_version = '1.2'\nclient_auth = 'optional'")).is_ok()
        );
    }

    #[test]
    fn clients_have_one_exact_name() {
        let read = |entries: &str| read_checked(&format!("{ON}{entries}"));
        let entry = |rest: &str| read(&format!("[[tls.client]]\n{rest}"));
        assert!(entry("san = 'spiffe://corp/ada'\nperson = 'ada'\nscopes = ['read']").is_ok());
        let print = "ab".repeat(32);
        assert!(entry(&format!("fingerprint = '{print}'\nperson = 'ada'")).is_ok());
        assert!(read(&format!("denied = ['{print}']")).is_ok());
        for wrong in [
            "person = 'ada'",
            "san = '*.corp'\nperson = 'ada'",
            "san = '10.0.0.1'\nperson = 'ada'",
            "san = 'ada.corp'\nperson = 'Ada'",
            "san = 'ada.corp'\nperson = 'ada'\nscopes = ['root']",
            "fingerprint = 'ab'\nperson = 'ada'",
            &format!("san = 'ada.corp'\nfingerprint = '{print}'\nperson = 'ada'"),
            "san = 'ada.corp'\nperson = 'ada'\n[[tls.client]]\nsan = 'ada.corp'\nperson = 'bob'",
        ] {
            assert!(entry(wrong).is_err(), "{wrong}");
        }
        assert!(read("denied = ['ab']").is_err());
    }
}
