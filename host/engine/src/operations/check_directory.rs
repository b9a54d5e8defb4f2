//! Check of a working directory before a client sends messages from it.

use super::Hub;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
};
use a2a_hub_runtime::Failure;

impl Hub {
    /// Checks that programs of the agent may work in `directory`, as they would for a message that
    /// names it. The caller must be one who may use the agent. An unknown agent has no directory.
    ///
    /// # Errors
    ///
    /// The directory does not exist, or no workspace of the agent contains it.
    pub async fn check_directory(&self, agent: &AgentId, directory: &str) -> Result<(), A2aError> {
        let Some(agent) = self.agents.find(agent) else { return Ok(()) };
        agent.check_directory(directory).await.map_err(|why| {
            if let Failure::Internal(_) = why {
                A2aError::internal()
            } else {
                A2aError::new(ErrorKind::InvalidParams, why.to_string())
            }
        })
    }
}
