//! Finding agents, among those that whoever asks may know of.

use super::Hub;
use crate::error::HubError;
use a2a_hub_core::access::Principal;
use a2a_hub_protocol::operation::{AgentQuery, FoundAgents};

impl Hub {
    /// The agents that fit, the best first. One that the caller may not know of is not looked at: it shows in no score, and in no
    /// refusal. Registries are asked for clients only: an agent's program calls what its agent was granted.
    pub(super) async fn search(
        &self,
        caller: &Principal,
        query: &AgentQuery,
    ) -> Result<FoundAgents, HubError> {
        let among: Vec<_> =
            self.agents.all().into_iter().filter(|agent| self.sees(caller, agent)).collect();
        let here = self.agents.search(&among, query);
        if let Principal::AgentTask { .. } = caller {
            return Ok(here.await?);
        }
        let (here, elsewhere) = tokio::join!(here, self.agents.search_elsewhere(query));
        Ok(match (here, elsewhere) {
            (Ok(found), Ok((elsewhere, unasked))) => FoundAgents { elsewhere, unasked, ..found },
            (Ok(found), Err(_)) => found,
            // Here are other versions only, and elsewhere is one that fits.
            (Err(_), Ok((elsewhere, unasked))) if !elsewhere.is_empty() => {
                FoundAgents { elsewhere, unasked, ..FoundAgents::default() }
            }
            (Err(why), Ok(_) | Err(_)) => return Err(why.into()),
        })
    }
}
