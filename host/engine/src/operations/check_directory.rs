//! Check of a working directory before a client sends messages from it.

use super::Hub;
use crate::error::refused_directory;
use a2a_hub_protocol::{error::A2aError, id::AgentId};

impl Hub {
    /// Checks that programs of the agent may work in `directory`, as they would for a message that
    /// names it. The caller must be one who may use the agent. An unknown agent has no directory.
    ///
    /// # Errors
    ///
    /// The directory does not exist, or no workspace of the agent contains it.
    pub async fn check_directory(&self, agent: &AgentId, directory: &str) -> Result<(), A2aError> {
        let Some(agent) = self.agents.find(agent) else { return Ok(()) };
        agent.check_directory(directory).await.map_err(|why| refused_directory(&why))
    }

    /// Checks that programs of the agent may work in these additional directories, and returns
    /// them with their links resolved.
    ///
    /// # Errors
    ///
    /// One does not exist, or no workspace of the agent contains it; or the agent is remote.
    pub async fn additional_directories(
        &self,
        agent: &AgentId,
        named: Vec<String>,
    ) -> Result<Vec<String>, A2aError> {
        let Some(agent) = self.agents.find(agent) else { return Ok(named) };
        agent.additional_directories(named).await.map_err(|why| refused_directory(&why))
    }
}
