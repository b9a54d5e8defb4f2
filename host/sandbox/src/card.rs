//! What a component says of itself: asked once it is loaded, with no capability and little time.

use crate::{
    guest,
    plugin::{LoadError, Plugin},
};
use a2a_hub_core::span::Span;
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use a2a_hub_runtime::{Call, Limits};
use std::time::Duration;

/// How long a component may take to say its card: it has nothing to wait for.
const CARD_DEADLINE: Duration = Duration::from_secs(2);

/// How much CPU time the card may cost.
const CARD_CPU: Duration = Duration::from_secs(1);

impl Plugin {
    /// What the component says of itself, asked with no capability at all.
    pub async fn card(&self, agent: &AgentId) -> Result<AgentCard, LoadError> {
        let limits = Limits { cpu: CARD_CPU, ..Limits::default() };
        let said = guest::call(self, Call::bare(agent.clone(), limits), async |guest, store| {
            guest.a2a_hub_agent().call_card(store).await
        });
        match tokio::time::timeout(CARD_DEADLINE, said).await {
            Ok(Ok(json)) => Ok(AgentCard::parse(&json)?),
            Ok(Err(why)) => Err(LoadError::Silent(why.to_string())),
            Err(_) => {
                let patience = Span(CARD_DEADLINE);
                Err(LoadError::Silent(format!("it took longer than {patience}")))
            }
        }
    }
}
