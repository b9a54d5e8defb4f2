//! Remote agents that appear among the hub's own.

use crate::client_tls::ClientTlsFiles;
use serde::{Deserialize, Serialize};

/// `[remote.<id>]`: a remote agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remote {
    /// URL of the agent; its card is below.
    pub url: String,
    /// Variable of the hub's environment that holds the bearer token.
    pub token_env: Option<String>,
    /// SHA-256 digest that its card must have, in hex. Without it, the first card is trusted.
    pub sha256: Option<String>,
    /// Origins to which its card may direct the hub beside its own, such as
    /// `https://example.com:50051`.
    pub origins: Vec<String>,
    /// Keys, one of which must have signed its card: JWK sets, JWKs or PEM, each in a file, at an
    /// `https://` URL, or inline. With them, a changed card that is signed is accepted without
    /// asking.
    pub keys: Vec<String>,
    /// `[remote.<id>.tls]`: files for TLS. Relative paths start at the configuration file.
    #[serde(skip_serializing_if = "ClientTlsFiles::is_empty")]
    pub tls: ClientTlsFiles,
}
