//! Search for agents by name, skills and description, over an index of their cards.

use super::Agents;
use crate::{agent::Agent, port::peer_directory::FindPeers};
use a2a_hub_config::SecretStore;
use a2a_hub_core::discovery::search::{Found, Index, NotFound};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::{AgentQuery, FoundAgent, FoundAgents, FoundElsewhere, UnaskedRegistry},
};
use serde_json::json;
use std::sync::Arc;

impl Agents {
    /// The matching agents, best first. Fails if only agents of other versions match, or if the
    /// query cannot be understood.
    pub async fn search(
        &self,
        among: &[Arc<Agent>],
        query: &AgentQuery,
    ) -> Result<FoundAgents, A2aError> {
        let finder = &self.shared.finder;
        let searchable = finder.index(among, self.aliases()).await?;
        let server = self.shared.config().finding.embeddings.clone();
        let secrets = SecretStore::new(&self.shared.data_dir);
        let (similar, note) = finder.similar(&searchable, &server, &secrets, query).await;
        let index = &searchable.index;
        let found = index.find(query, similar.as_deref()).map_err(refused)?;
        let Found { hits, older, did_you_mean } = found;
        let agents = hits.into_iter().filter_map(|hit| {
            let agent = among.get(hit.index)?;
            let described = index.agents().get(hit.index)?;
            Some(FoundAgent {
                id: agent.id.clone(),
                aliases: described.aliases.clone(),
                card: agent.card.published(Some(&agent.id)),
                score: rounded(hit.score),
                why: hit.why,
            })
        });
        Ok(FoundAgents {
            agents: agents.collect(),
            older,
            did_you_mean,
            note,
            ..FoundAgents::default()
        })
    }

    /// Matching agents that the operator's registries list, best first, and the registries that
    /// failed. A listed agent does not become an agent of this hub; `[remote.<id>]` does that.
    pub async fn search_elsewhere(
        &self,
        query: &AgentQuery,
    ) -> Result<(Vec<FoundElsewhere>, Vec<UnaskedRegistry>), A2aError> {
        let config = self.shared.config();
        if config.registry.is_empty() || query.local_only {
            return Ok((Vec::new(), Vec::new()));
        }
        let (finder, settings) = (&self.shared.finder, config.breaker.settings());
        let (listings, untold) = finder.registries.ask(&config.registry, settings, query).await;
        let all =
            listings.iter().flat_map(|(registry, all)| all.iter().map(move |one| (registry, one)));
        let all: Vec<_> = all.collect();
        // The registries' results must match the query here as well, and are ranked together.
        let index = Index::new(all.iter().map(|(_, one)| one.description.clone()).collect());
        let found = index.find(query, None).map_err(refused)?;
        let elsewhere = found.hits.into_iter().filter_map(|hit| {
            let (registry, listed) = all.get(hit.index)?;
            Some(FoundElsewhere {
                registry: (*registry).clone(),
                url: listed.url.clone(),
                agent: self.known_at(&listed.url),
                card: listed.card.clone(),
                score: rounded(hit.score),
                why: hit.why,
            })
        });
        Ok((elsewhere.collect(), untold))
    }

    /// The remote agent of this hub whose configured URL is this one or a prefix of it.
    fn known_at(&self, url: &str) -> Option<AgentId> {
        let config = self.shared.config();
        let is_there = |at: &str| {
            let at = at.trim_end_matches('/');
            let suffix = url.strip_prefix(at).filter(|_| !at.is_empty());
            suffix.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let known = config.remote.iter().find(|(_, remote)| is_there(&remote.url));
        known.map(|(id, _)| id.clone()).filter(|id| self.find(id).is_some())
    }

    /// Search function for other agents; weak, because the agents that hold it are owned by the
    /// registry that it searches.
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

/// Error of a search without a match, with details for machines.
fn refused(why: NotFound) -> A2aError {
    match why {
        NotFound::Unclear(why) => why,
        NotFound::OtherVersions(there) => {
            let versions = there.agents.iter();
            let versions: Vec<_> = versions
                .map(|(id, version)| json!({ "agentId": id, "version": version }))
                .collect();
            let details = json!({ "field": "version", "versions": versions, "olderThere": there.some_are_older });
            A2aError::new(ErrorKind::AgentNotFound, there.to_string()).with(details)
        }
    }
}

/// A score as reported: more digits carry no information.
fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
