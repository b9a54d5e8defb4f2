//! Address of a remote agent and the trust settings for its card: the values of `[remote.<id>]`.

use a2a_hub_protocol::push::Secret;

/// Address of a remote agent and the trust settings for its card.
pub(crate) struct RemoteEndpoint {
    /// Base URL of the card.
    pub(crate) url: String,
    /// Bearer token sent to the agent.
    pub(crate) token: Option<Secret>,
    /// Digest of the card, if the operator pins it. Otherwise the first card seen is pinned.
    pub sha256: Option<String>,
    /// Origins that the card may refer to besides its own.
    pub(crate) origins: Vec<String>,
    /// Sources of the keys that may sign the card; empty if no signature is required.
    pub(crate) keys: Vec<String>,
}
