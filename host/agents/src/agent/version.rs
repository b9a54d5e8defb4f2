//! Which component an agent is, as the journals of its runs keep it.

use super::{Agent, Terms};
use a2a_hub_core::{
    grant::{Grant, Resume},
    installation::InstallationId,
};
use serde::{Deserialize, Serialize};

/// Which component began a run, and what it was granted then, as the run's journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentVersion {
    /// The component's SHA-256 digest, in hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) installation: InstallationId,
    pub(crate) grant: Grant,
}

impl Agent {
    /// Which component it is, and what it was granted; none if it is no component.
    pub fn version(&self) -> Option<AgentVersion> {
        let sha256 = self.runtime.digest()?.to_owned();
        let Terms { installation, grant } = self.terms.clone();
        Some(AgentVersion { sha256, installation, grant })
    }

    /// Whether it is the component of this version.
    pub fn is(&self, version: &AgentVersion) -> bool {
        self.runtime.digest() == Some(version.sha256.as_str())
    }

    /// Whether its runs are recorded, to be run again from their start.
    pub fn replays(&self) -> bool {
        self.resume() == Resume::Replay
    }
}
