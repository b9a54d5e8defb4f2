//! Where an agent elsewhere is found, and what makes its card trusted: what its `[remote.<id>]` says.

use a2a_hub_protocol::push::Secret;

/// Where an agent elsewhere is found, and what makes its card trusted.
pub(crate) struct RemoteEndpoint {
    /// The URL below which its card is looked for.
    pub(crate) url: String,
    /// What it is shown.
    pub(crate) token: Option<Secret>,
    /// The digest of its card, if the operator pins it; otherwise the first that was seen is.
    pub sha256: Option<String>,
    /// Origins that its card may send us to beside its own.
    pub(crate) origins: Vec<String>,
    /// Where the keys are of which one must have signed its card; none if it need not be signed.
    pub(crate) keys: Vec<String>,
}
