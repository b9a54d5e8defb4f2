//! Files for TLS of outgoing connections.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Files with which a client connects to a remote hub or agent over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientTlsFiles {
    /// CA certificates that the server's certificate must come from, in PEM; the machine's without
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Certificate that the client shows, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// Private key of that certificate, in PEM.
    #[serde(rename = "key", skip_serializing_if = "Option::is_none")]
    pub cert_key: Option<PathBuf>,
}

impl ClientTlsFiles {
    /// Makes paths absolute: `expand` replaces `~`, and others are relative to `base`.
    pub(crate) fn expand(&mut self, base: Option<&Path>, expand: impl Fn(PathBuf) -> PathBuf) {
        absolute([&mut self.ca, &mut self.cert, &mut self.cert_key], base, expand);
    }

    /// Checks that a certificate comes with its key. `table` is the path of the settings.
    pub(crate) fn check(&self, table: &str) -> Result<(), ConfigError> {
        let (setting, why) = match (&self.cert, &self.cert_key) {
            (Some(_), Some(_)) | (None, None) => return Ok(()),
            (Some(_), None) => {
                ("key", format!("name the file with the private key of `{table}.cert`"))
            }
            (None, Some(_)) => {
                ("cert", format!("name the file with the certificate of `{table}.key`"))
            }
        };
        Err(ConfigError::ClientTls { setting: format!("{table}.{setting}"), why })
    }

    /// True if no file is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Makes paths absolute: `expand` replaces `~`, and others are relative to `base`.
pub(crate) fn absolute<'p>(
    paths: impl IntoIterator<Item = &'p mut Option<PathBuf>>,
    base: Option<&Path>,
    expand: impl Fn(PathBuf) -> PathBuf,
) {
    for path in paths.into_iter().flatten() {
        let expanded = expand(std::mem::take(path));
        *path = base.map_or(expanded.clone(), |base| base.join(&expanded));
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::read_checked;

    #[test]
    fn client_certificate_needs_its_key() {
        let read = |tls: &str| {
            read_checked(&format!(
                "[remote.far]\nurl = 'https://far.example'\n[remote.far.tls]\n{tls}"
            ))
        };
        for (tls, missing) in [
            ("cert = 'a.pem'", "set `remote.far.tls.key`"),
            ("key = 'a.key'", "set `remote.far.tls.cert`"),
            ("ca = 'ca.pem'\ncert = 'a.pem'", "set `remote.far.tls.key`"),
        ] {
            let refused = read(tls).unwrap_err();
            assert!(refused.contains(missing), "{tls}: {refused}");
        }
        assert!(read("ca = 'ca.pem'").is_ok() && read("").is_ok());
        assert!(read("cert = 'a.pem'\nkey = 'a.key'").is_ok());
    }
}
