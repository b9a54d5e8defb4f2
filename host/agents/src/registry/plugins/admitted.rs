//! Components on their way from a plug-in's file to a registered agent.

use crate::agent::Agent;
use a2a_hub_core::{
    plugin::installation::{GrantStatus, Offered},
    text::one_line::OneLine,
};
use bytes::Bytes;

/// A component read from a plug-in's file.
pub(in crate::registry) struct PluginCandidate {
    pub(in crate::registry) bytes: Bytes,
    pub(in crate::registry) digest: String,
    /// Version in the manifest, if the component is signed.
    pub(in crate::registry) version: Option<OneLine>,
    /// Key of the record, if the component is signed with it.
    pub(in crate::registry) signed_by: Option<String>,
    /// True if the configuration pins this component next to a grant.
    pub(in crate::registry) is_pinned: bool,
    pub(in crate::registry) status: GrantStatus,
}

impl PluginCandidate {
    pub(in crate::registry) fn offered(&self) -> Offered<'_> {
        let Self { digest, version, signed_by, is_pinned, .. } = self;
        let (version, signed_by, is_pinned) = (version.as_ref(), signed_by.as_deref(), *is_pinned);
        Offered { sha256: digest, version, signed_by, is_pinned }
    }
}

/// An agent that may be registered, with the data to record at that time.
pub(in crate::registry) struct AdmittedAgent {
    pub(in crate::registry) agent: Agent,
    /// The agent's component; none if it is held back and the agent runs the granted one.
    pub(in crate::registry) candidate: Option<PluginCandidate>,
}

impl AdmittedAgent {
    /// True if the component that was read is held back, and the agent runs another.
    pub(in crate::registry) fn is_another(&self) -> bool {
        self.candidate.is_none()
    }
}
