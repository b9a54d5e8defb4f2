//! Cards of the agents that drive a program of the Agent Client Protocol. A program says its name,
//! its version, its modes and its models only once it runs, so the card follows the health checks.

use super::Agents;
use crate::agent::{Agent, AgentSource, acp};
use a2a_hub_config::AcpProgram;
use a2a_hub_core::plugin::installation::InstallationId;
use a2a_hub_protocol::{card::AgentCard, id::AgentId};

impl Agents {
    /// Card of the agent by what its program said of itself, as far as that is stored.
    pub(super) async fn introduced(
        &self,
        id: &AgentId,
        program: &AcpProgram,
        template: AgentCard,
    ) -> AgentCard {
        let owner = InstallationId::from(id);
        let stored = self.shared.storage.recall(&owner, acp::INTRODUCTION).await;
        let stored = stored.unwrap_or_else(|why| {
            tracing::warn!(agent = %id, %why, "cannot read the stored introduction of an ACP program");
            None
        });
        acp::card(id, program, template, &acp::introduction(stored))
    }

    /// Registers an agent anew if its program has said something else of itself by now.
    pub(super) async fn introduce(&self, agent: &Agent) {
        if agent.source != AgentSource::Acp {
            return;
        }
        let Some(program) = agent.config.acp_program(&agent.id) else { return };
        let card = self.introduced(&agent.id, &program, agent.card.clone()).await;
        if card != agent.card && !agent.shutdown.is_cancelled() {
            let mut anew = self.anew(agent);
            anew.card = card;
            self.register(anew);
        }
    }
}
