//! Finding agents, among those that whoever asks may know of.

use super::Hub;
use crate::error::HubError;
use a2a_hub_core::access::Principal;
use a2a_hub_protocol::operation::{AgentQuery, FoundAgents};

impl Hub {
    /// The agents that fit, the best first. One that the caller may not know of is not looked at: it shows in no score, and in no
    /// refusal.
    pub(super) async fn search(
        &self,
        caller: &Principal,
        query: &AgentQuery,
    ) -> Result<FoundAgents, HubError> {
        let among: Vec<_> =
            self.agents.all().into_iter().filter(|agent| self.sees(caller, agent)).collect();
        Ok(self.agents.search(&among, query).await?)
    }
}
