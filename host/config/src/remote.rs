//! Agents elsewhere that are to appear among the hub's own.

use serde::{Deserialize, Serialize};

/// An agent elsewhere, as `[remote.<id>]` describes it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remote {
    /// Where it is: its card is below.
    pub url: String,
    /// The variable of the hub's environment that holds the bearer token to show it.
    pub token_env: Option<String>,
    /// The SHA-256 digest that its card must have, in hex; without it, the first card that is seen is trusted.
    pub sha256: Option<String>,
    /// Origins that its card may send the hub to beside its own, such as `https://example.com:50051`.
    pub origins: Vec<String>,
    /// The keys of which one must have signed its card: JWK sets, JWKs or PEM, each in a file, at an `https://` URL, or as
    /// it stands. With them, a card that changed and is signed is taken without asking.
    pub keys: Vec<String>,
}
