//! Components on their way from a plug-in's file to a registered agent.

use crate::agent::Agent;
use a2a_hub_core::{
    installation::{Offered, Standing},
    one_line::OneLine,
};
use bytes::Bytes;

/// A component read from a plug-in's file.
pub(super) struct Candidate {
    pub(super) bytes: Bytes,
    pub(super) digest: String,
    /// Version in the manifest, if the component is signed.
    pub(super) version: Option<OneLine>,
    /// Key of the record, if the component is signed with it.
    pub(super) signed_by: Option<String>,
    /// True if the configuration pins this component next to a grant.
    pub(super) is_pinned: bool,
    pub(super) standing: Standing,
}

impl Candidate {
    pub(super) fn offered(&self) -> Offered<'_> {
        let Self { digest, version, signed_by, is_pinned, .. } = self;
        let (version, signed_by, is_pinned) = (version.as_ref(), signed_by.as_deref(), *is_pinned);
        Offered { sha256: digest, version, signed_by, is_pinned }
    }
}

/// An agent that may be registered, with the data to record at that time.
pub(super) struct Admitted {
    pub(super) agent: Agent,
    /// The agent's component; none if it is held back and the agent runs the granted one.
    pub(super) candidate: Option<Candidate>,
}

impl Admitted {
    /// True if the component that was read is held back, and the agent runs another.
    pub(super) fn is_another(&self) -> bool {
        self.candidate.is_none()
    }
}
