//! Which card of an agent elsewhere is used: the one that its operator trusts. It is kept, so that what the agent says of
//! itself later moves nothing until it is trusted, too.

use super::{endpoint::RemoteEndpoint, peer::MAX_NAMES};
use a2a_hub_client::{
    ClientError, Outbound, card,
    keys::{KeyError, Keys, SignatureError},
};
use a2a_hub_core::{
    installation::InstallationId,
    trust::{Offered, TrustAnchors, TrustVerdict},
};
use a2a_hub_protocol::{card::changes::changes, id::AgentId};
use a2a_hub_store::{AgentMemory, StorageError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the card is kept, among the agent's own values.
const KEY: &str = "remote/card";

/// How much room there is for it beside the names of tasks and conversations, in bytes.
const ROOM: u64 = MAX_NAMES + 4 * card::MAX_CARD as u64;

/// How much of a digest people look at, in letters.
const SHORT: usize = 12;

/// A card that is trusted.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Trusted {
    /// The URL it was looked for at.
    url: String,
    /// The card as it came.
    card: Value,
    /// What of it is signed, if it must be.
    signed: Option<Value>,
}

/// Why a card is not used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is none, or its agent cannot be talked to.
    #[error(transparent)]
    Remote(#[from] ClientError),
    /// The operator's keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// Nobody whom the operator trusts has signed it.
    #[error("trust the card of `{agent}`: {why}")]
    NotSigned {
        /// The agent whose card it is.
        agent: AgentId,
        /// What is wrong with its signatures.
        why: SignatureError,
    },
    /// The configuration pins another one.
    #[error(
        "trust the card of `{agent}`: its SHA-256 digest is {digest}, and `remote.{agent}.sha256` pins {pinned}"
    )]
    NotPinned {
        /// The agent whose card it is.
        agent: AgentId,
        /// The digest that its card has now: SHA-256 in hex.
        digest: String,
        /// What it must have.
        pinned: String,
    },
    /// It changed while it was looked at.
    #[error("trust the card of `{agent}`: its digest is {digest} by now; look again")]
    NotAccepted {
        /// The agent whose card it is.
        agent: AgentId,
        /// The digest that its card has now: SHA-256 in hex.
        digest: String,
    },
    /// It is another one than the one in use.
    #[error(
        "trust the card of `{agent}`: it was {} and is {}, and the old one stays in use; {}",
        short(.used), short(.digest), .changes.join("; ")
    )]
    Changed {
        /// The agent whose card it is.
        agent: AgentId,
        /// The digest of the card in use.
        used: String,
        /// That of the one that is there now.
        digest: String,
        /// What is different between the two, a line each.
        changes: Vec<String>,
    },
    /// The store does not work. Without it, no card could be told from the first.
    #[error("keep the card: {0}")]
    Store(#[from] StorageError),
}

impl TrustError {
    /// Whether the agent is there, but not as it is trusted.
    pub(super) fn is_distrust(&self) -> bool {
        match self {
            Self::NotSigned { .. }
            | Self::NotPinned { .. }
            | Self::NotAccepted { .. }
            | Self::Changed { .. } => true,
            Self::Remote(_) | Self::Keys(_) | Self::Store(_) => false,
        }
    }

    /// What has the card used, if one command does.
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
            | Self::Store(_) => None,
        }
    }
}

impl TrustError {
    /// The same with its fix, if there is one.
    pub fn with_way_out(&self) -> String {
        let fix = self.fix().map(|fix| format!("; fix: {fix}"));
        format!("{self}{}", fix.unwrap_or_default())
    }
}

impl Trusted {
    /// What of it may be believed.
    pub(super) fn card(&self) -> &Value {
        self.signed.as_ref().unwrap_or(&self.card)
    }

    pub(super) fn digest(&self) -> String {
        card::digest(&self.card)
    }

    /// The card that was trusted when it was last looked at, if it still is.
    pub(super) async fn recall(
        id: &AgentId,
        endpoint: &RemoteEndpoint,
        outbound: &Outbound,
        storage: &dyn AgentMemory,
    ) -> Result<Option<Self>, TrustError> {
        let Some(kept) = storage.recall(&InstallationId::from(id), KEY).await? else {
            return Ok(None);
        };
        let kept = serde_json::from_slice::<Self>(&kept).ok();
        // What is elsewhere is another agent.
        let Some(kept) = kept.filter(|kept| kept.url == endpoint.url) else { return Ok(None) };
        match Self::judge(id, endpoint, outbound, kept.card.clone(), Some(&kept), None).await {
            Ok(still) => Ok(Some(still)),
            // It was signed when it came, and the keys are elsewhere, too.
            Err(TrustError::Keys(why)) if why.is_passing() && kept.signed.is_some() => {
                Ok(Some(kept))
            }
            Err(why) if why.is_distrust() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The card that is there now, if it is trusted.
    pub(super) async fn look(
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

    pub(super) async fn keep(
        &self,
        id: &AgentId,
        storage: &dyn AgentMemory,
    ) -> Result<(), TrustError> {
        let kept = serde_json::to_vec(self).unwrap_or_default();
        Ok(storage.remember(&InstallationId::from(id), KEY, kept, ROOM).await?)
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
        match known.verdict(Offered { digest: &digest, signed: is_signed }) {
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
