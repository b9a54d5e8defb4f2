//! A component that was read from a plug-in's file, and the agent that comes of it, until that has its place.

use crate::agent::Agent;
use a2a_hub_core::{
    installation::{Offered, Standing},
    one_line::OneLine,
};
use bytes::Bytes;

/// A component that was read from a plug-in's file.
pub(super) struct Candidate {
    pub(super) bytes: Bytes,
    pub(super) digest: String,
    /// The version that it says it is, if it is signed.
    pub(super) version: Option<OneLine>,
    /// The key of the record, if the component is signed with it.
    pub(super) signed_by: Option<String>,
    /// Whether the configuration pins it beside a grant.
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

/// An agent that may join, and what is to be recorded once it does.
pub(super) struct Admitted {
    pub(super) agent: Agent,
    /// The component that it is; none if that one is held back, and the agent is another.
    pub(super) candidate: Option<Candidate>,
}

impl Admitted {
    /// Whether the agent is not the component that was read, for that one is held back.
    pub(super) fn is_another(&self) -> bool {
        self.candidate.is_none()
    }
}
