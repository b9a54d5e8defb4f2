//! Identity of an agent's component as recorded in the journals of its runs.

use super::{Agent, AgentSource, Terms};
use a2a_hub_core::{
    grant::{Grant, Resume},
    plugin::installation::InstallationId,
};
use a2a_hub_sandbox::digest_of;
use serde::{Deserialize, Serialize};

/// Component that began a run, with its grant at that time, as recorded in the run's journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentVersion {
    /// SHA-256 digest of the component, in hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) installation: InstallationId,
    pub(crate) grant: Grant,
}

impl Agent {
    /// Digest and grant of the agent's component; none if the agent is not a component.
    pub fn version(&self) -> Option<AgentVersion> {
        let sha256 = self.runtime.digest()?.to_owned();
        let Terms { installation, grant } = self.terms.clone();
        Some(AgentVersion { sha256, installation, grant })
    }

    /// Digest of the agent's flow file; none if the agent is no flow.
    pub fn flow_digest(&self) -> Option<String> {
        match &self.source {
            AgentSource::Flow(flow) => Some(digest_of(flow.text.as_bytes())),
            AgentSource::BuiltIn
            | AgentSource::Acp
            | AgentSource::Native
            | AgentSource::Script
            | AgentSource::File(_)
            | AgentSource::Remote(_) => None,
        }
    }

    /// True if the agent runs the component of this version.
    pub fn is(&self, version: &AgentVersion) -> bool {
        self.runtime.digest() == Some(version.sha256.as_str())
    }

    /// True if the agent's runs are journaled and replayed from their start.
    pub fn replays(&self) -> bool {
        self.resume() == Resume::Replay
    }
}
