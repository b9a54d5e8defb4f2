//! Search for agents, among those that the caller may see.

use super::Hub;
use crate::error::HubError;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::operation::{AgentQuery, FoundAgents};

impl Hub {
    /// Agents that match, best first. Agents that the caller may not see are excluded before the
    /// search: they affect no score and no refusal. Registries are asked for clients only: an
    /// agent's program calls only the agents that its agent was granted.
    pub(super) async fn search(
        &self,
        caller: &Principal,
        query: &AgentQuery,
    ) -> Result<FoundAgents, HubError> {
        let among: Vec<_> =
            self.agents.listed().into_iter().filter(|agent| self.sees(caller, agent)).collect();
        let here = self.agents.search(&among, query);
        if let Principal::AgentTask { .. } = caller {
            return Ok(here.await?);
        }
        let (here, elsewhere) = tokio::join!(here, self.agents.search_elsewhere(query));
        Ok(match (here, elsewhere) {
            (Ok(found), Ok((elsewhere, unasked))) => FoundAgents { elsewhere, unasked, ..found },
            (Ok(found), Err(_)) => found,
            // Local agents match in other versions only, and a remote one matches.
            (Err(_), Ok((elsewhere, unasked))) if !elsewhere.is_empty() => {
                FoundAgents { elsewhere, unasked, ..FoundAgents::default() }
            }
            (Err(why), Ok(_) | Err(_)) => return Err(why.into()),
        })
    }
}
