//! Trust in the cards of remote agents. The trusted card is cached, so that a later change of the
//! card has no effect until it is trusted as well.

use super::{endpoint::RemoteEndpoint, peer::MAX_NAMES};
use a2a_hub_client::{
    ClientError, Outbound, card,
    card_changes::changes,
    keys::{KeyError, Keys, SignatureError},
};
use a2a_hub_core::{
    card_trust::{OfferedCard, TrustAnchors, TrustVerdict},
    plugin::installation::InstallationId,
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_store::{AgentMemory, StorageError};
use a2a_hub_tls::TlsFileError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Key of the trusted card among the agent's stored values.
const KEY: &str = "remote/card";

/// Storage for the card and the id mappings, in bytes.
const MAX_STORED_BYTES: u64 = MAX_NAMES + 4 * card::MAX_CARD as u64;

/// Characters of a digest that are shown to people.
const SHORT: usize = 12;

/// A trusted card.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Trusted {
    /// URL from which the card was fetched.
    url: String,
    /// The card as received.
    card: Value,
    /// Signed content of the card, if a signature is required.
    signed: Option<Value>,
}

/// Reason why a card is not used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The card cannot be fetched, or its agent cannot be called.
    #[error(transparent)]
    Remote(#[from] ClientError),
    /// The operator's keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// No trusted key has signed the card.
    #[error("trust the card of `{agent}`: {why}")]
    NotSigned {
        /// Agent that the card describes.
        agent: AgentId,
        /// Problem with the signatures.
        why: SignatureError,
    },
    /// The configuration pins another card.
    #[error(
        "trust the card of `{agent}`: its SHA-256 digest is {digest}, and `remote.{agent}.sha256` pins {pinned}"
    )]
    NotPinned {
        /// Agent that the card describes.
        agent: AgentId,
        /// Current digest of the card: SHA-256 in hexadecimal digits.
        digest: String,
        /// Pinned digest.
        pinned: String,
    },
    /// The card differs from the one that the operator approved.
    #[error("trust the card of `{agent}`: its digest is now {digest}; show it again")]
    NotAccepted {
        /// Agent that the card describes.
        agent: AgentId,
        /// Current digest of the card: SHA-256 in hexadecimal digits.
        digest: String,
    },
    /// The card differs from the one in use.
    #[error(
        "trust the card of `{agent}`: it was {} and is {}, and the old one stays in use; {}",
        short(.used), short(.digest), .changes.join("; ")
    )]
    Changed {
        /// Agent that the card describes.
        agent: AgentId,
        /// Digest of the card in use.
        used: String,
        /// Digest of the current card.
        digest: String,
        /// Differences between the two cards, one line each.
        changes: Vec<String>,
    },
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// The store failed. Without the store, a changed card cannot be told from the first one.
    #[error("store the card: {0}")]
    Store(#[from] StorageError),
}

impl TrustError {
    /// True if the agent answers with a card that is not trusted.
    pub(super) fn is_distrust(&self) -> bool {
        match self {
            Self::NotSigned { .. }
            | Self::NotPinned { .. }
            | Self::NotAccepted { .. }
            | Self::Changed { .. } => true,
            Self::Remote(_) | Self::Keys(_) | Self::Tls(_) | Self::Store(_) => false,
        }
    }

    /// Command or instruction that makes the card trusted, if one does.
    pub(super) fn fix(&self) -> Option<String> {
        match self {
            Self::Changed { agent, digest, .. } => {
                Some(format!("a2a-hub agent reload {agent} --accept {digest}"))
            }
            Self::NotPinned { agent, digest, .. } => Some(format!(
                "set `remote.{agent}.sha256` to {digest}, if that is right, and restart the hub"
            )),
            Self::NotSigned { .. }
            | Self::NotAccepted { .. }
            | Self::Remote(_)
            | Self::Keys(_)
            | Self::Tls(_)
            | Self::Store(_) => None,
        }
    }
}

impl TrustError {
    /// Message of the error with its fix, if any.
    pub fn with_way_out(&self) -> String {
        let fix = self.fix().map(|fix| format!("; fix: {fix}"));
        format!("{self}{}", fix.unwrap_or_default())
    }
}

impl Trusted {
    /// The part of the card that may be believed: the signed content, if a signature is required.
    pub(super) fn card(&self) -> &Value {
        self.signed.as_ref().unwrap_or(&self.card)
    }

    pub(super) fn digest(&self) -> String {
        card::digest(&self.card)
    }

    /// The cached card, if the current settings still trust it.
    pub(super) async fn recall(
        id: &AgentId,
        endpoint: &RemoteEndpoint,
        outbound: &Outbound,
        storage: &dyn AgentMemory,
    ) -> Result<Option<Self>, TrustError> {
        let Some(cached) = storage.recall(&InstallationId::from(id), KEY).await? else {
            return Ok(None);
        };
        let cached = serde_json::from_slice::<Self>(&cached).ok();
        // Another URL means another agent.
        let Some(cached) = cached.filter(|kept| kept.url == endpoint.url) else { return Ok(None) };
        match Self::judge(id, endpoint, outbound, cached.card.clone(), Some(&cached), None).await {
            Ok(still) => Ok(Some(still)),
            // The card was signed when it was cached, and the key server is temporarily
            // unreachable.
            Err(TrustError::Keys(why)) if why.is_passing() && cached.signed.is_some() => {
                Ok(Some(cached))
            }
            Err(why) if why.is_distrust() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Fetches the card, if it is trusted.
    pub(super) async fn fetch(
        id: &AgentId,
        endpoint: &RemoteEndpoint,
        outbound: &Outbound,
        used: Option<&Self>,
        accepted: Option<&str>,
    ) -> Result<Self, TrustError> {
        let base = card::base(&endpoint.url)?;
        let card = card::fetch(outbound, &base, endpoint.token.as_ref()).await?;
        Self::judge(id, endpoint, outbound, card, used, accepted).await
    }

    pub(super) async fn store(
        &self,
        id: &AgentId,
        storage: &dyn AgentMemory,
    ) -> Result<(), TrustError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Ok(storage.remember(&InstallationId::from(id), KEY, bytes, MAX_STORED_BYTES).await?)
    }

    async fn judge(
        id: &AgentId,
        endpoint: &RemoteEndpoint,
        outbound: &Outbound,
        card: Value,
        used: Option<&Self>,
        accepted: Option<&str>,
    ) -> Result<Self, TrustError> {
        let (signed, flaw) = if endpoint.keys.is_empty() {
            (None, None)
        } else {
            match Keys::load(&endpoint.keys, outbound).await?.verify(&card) {
                Ok(signed) => (Some(signed), None),
                Err(flaw) => (None, Some(flaw)),
            }
        };
        let (agent, digest, pinned) = (id.clone(), card::digest(&card), endpoint.sha256.as_deref());
        let in_use = used.map(Self::digest);
        let known = TrustAnchors { pinned, accepted, used: in_use.as_deref() };
        let is_signed = (!endpoint.keys.is_empty()).then_some(signed.is_some());
        match known.verdict(OfferedCard { digest: &digest, signed: is_signed }) {
            TrustVerdict::Use => Ok(Self { url: endpoint.url.clone(), card, signed }),
            TrustVerdict::NotSigned => {
                Err(TrustError::NotSigned { agent, why: flaw.unwrap_or(SignatureError::Unsigned) })
            }
            TrustVerdict::NotPinned => {
                let pinned = pinned.unwrap_or_default().to_owned();
                Err(TrustError::NotPinned { agent, digest, pinned })
            }
            TrustVerdict::NotAccepted => Err(TrustError::NotAccepted { agent, digest }),
            TrustVerdict::Changed => {
                let changes = used.map(|used| changes(&used.card, &card)).unwrap_or_default();
                let used = in_use.unwrap_or_default();
                Err(TrustError::Changed { agent, used, digest, changes })
            }
        }
    }
}

fn short(digest: &str) -> &str {
    digest.get(..SHORT).unwrap_or(digest)
}
