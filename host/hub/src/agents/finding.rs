//! Agents are found by what they are called, can do and say of themselves. An index of their cards is made once, and again when one of
//! them is another.

use super::{Agent, Agents, peer_directory::FindPeers};
use a2a_hub_core::{
    aliases::Aliases,
    finding::{Description, Found, Index},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::{AgentQuery, FoundAgent, FoundAgents},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};
use tokio::{sync::Mutex, task::spawn_blocking};

/// How many indexes are kept: those of all agents, and of the agents that some of them may call.
const MAX_KEPT: usize = 8;

/// Keeps the indexes that were made last, the latest first.
#[derive(Default)]
pub(super) struct Finder {
    kept: Mutex<VecDeque<Kept>>,
}

/// An index, and the agents that it is of.
struct Kept {
    /// Weak, so that one that left is not kept by it, and no other takes its place in memory.
    agents: Vec<Weak<Agent>>,
    aliases: Aliases,
    index: Arc<Index>,
}

impl Kept {
    fn is_of(&self, agents: &[Arc<Agent>], aliases: &Aliases) -> bool {
        let are_same =
            |(kept, agent): (&Weak<Agent>, &Arc<Agent>)| kept.as_ptr() == Arc::as_ptr(agent);
        self.agents.len() == agents.len()
            && self.agents.iter().zip(agents).all(are_same)
            && self.aliases == *aliases
    }
}

impl Agents {
    /// Those of these agents that fit, the best first. It is refused if none does but agents of other versions, or if nobody could
    /// follow what is asked.
    pub async fn search(
        &self,
        among: &[Arc<Agent>],
        query: &AgentQuery,
    ) -> Result<FoundAgents, A2aError> {
        let index = self.index(among).await?;
        let Found { hits, older, did_you_mean } = index.find(query, None)?;
        let agents = hits.into_iter().filter_map(|hit| {
            let agent = among.get(hit.place)?;
            let described = index.agents().get(hit.place)?;
            Some(FoundAgent {
                id: agent.id.clone(),
                aliases: described.aliases.clone(),
                card: agent.card.published(Some(&agent.id)),
                score: rounded(hit.score),
                why: hit.why,
            })
        });
        Ok(FoundAgents { agents: agents.collect(), older, did_you_mean, note: None })
    }

    /// The index of these agents.
    async fn index(&self, among: &[Arc<Agent>]) -> Result<Arc<Index>, A2aError> {
        let aliases = self.aliases();
        let mut kept = self.shared.finder.kept.lock().await;
        if let Some(known) = kept.iter().position(|kept| kept.is_of(among, &aliases)) {
            let index = Arc::clone(&kept[known].index);
            kept.swap(0, known);
            return Ok(index);
        }
        let described = among.iter().map(|agent| {
            let aliases = aliases.of(&agent.id).map(ToString::to_string).collect();
            Description::of(agent.id.as_str(), aliases, &agent.card)
        });
        let described: Vec<_> = described.collect();
        // Of a thousand cards it takes as long as a page of a book is long.
        let made = spawn_blocking(move || Index::new(described)).await;
        let index =
            Arc::new(made.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?);
        let agents = among.iter().map(Arc::downgrade).collect();
        kept.push_front(Kept { agents, aliases, index: Arc::clone(&index) });
        kept.truncate(MAX_KEPT);
        Ok(index)
    }

    /// Finds agents for other agents; weak, for the agents own it and are owned by what it looks into.
    pub(super) fn find_peers(&self) -> FindPeers {
        let shared = Arc::downgrade(&self.shared);
        Arc::new(move |callable: Vec<AgentId>, query: AgentQuery| {
            let shared = shared.upgrade();
            Box::pin(async move {
                let Some(shared) = shared else { return Ok(FoundAgents::default()) };
                let agents = Self { shared };
                let among: Vec<_> = callable.iter().filter_map(|id| agents.find(id)).collect();
                agents.search(&among, &query).await
            })
        })
    }
}

/// A score as it is told: more digits say nothing.
fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
