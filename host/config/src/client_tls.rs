//! Files for TLS of outgoing connections.

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
