//! Agents are found by what they are called, can do and say of themselves. An index of their cards is made once, and again when one of
//! them is another.

mod listed;
mod meaning;
mod registries;

use super::{Agent, Agents, peer_directory::FindPeers, secrets::SecretStore};
use a2a_hub_core::{
    aliases::Aliases,
    finding::{Description, Found, Index, NotFound},
    plain_text,
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::{AgentQuery, FoundAgent, FoundAgents, FoundElsewhere, UnaskedRegistry},
};
use meaning::{Meaning, Text};
use registries::Registries;
use serde_json::json;
use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock, Weak},
};
use tokio::{sync::Mutex, task::spawn_blocking};

/// How many indexes are kept: those of all agents, and of the agents that some of them may call.
const MAX_KEPT: usize = 8;

/// Keeps the indexes that were made last, the latest first.
#[derive(Default)]
pub(super) struct Finder {
    kept: Mutex<VecDeque<Kept>>,
    meaning: Meaning,
    registries: Registries,
}

/// An index, and the texts that its agents are compared by in what they mean, once somebody asks for that.
struct Searchable {
    index: Index,
    texts: OnceLock<Vec<Text>>,
}

impl Searchable {
    fn texts(&self) -> &[Text] {
        self.texts.get_or_init(|| {
            self.index.agents().iter().map(|agent| Text::new(agent.text())).collect()
        })
    }
}

/// An index, and the agents that it is of.
struct Kept {
    /// Weak, so that one that left is not kept by it, and no other takes its place in memory.
    agents: Vec<Weak<Agent>>,
    aliases: Aliases,
    index: Arc<Searchable>,
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
        let searchable = self.index(among).await?;
        let (similar, note) = self.similar(&searchable, query).await;
        let index = &searchable.index;
        let found = index.find(query, similar.as_deref()).map_err(refused)?;
        let Found { hits, older, did_you_mean } = found;
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
        Ok(FoundAgents {
            agents: agents.collect(),
            older,
            did_you_mean,
            note,
            ..FoundAgents::default()
        })
    }

    /// The agents that fit and that the operator's registries list, the best first, and the registries that told of nobody. None
    /// is this hub's by that: what is called here is what `[remote.<id>]` names.
    pub async fn search_elsewhere(
        &self,
        query: &AgentQuery,
    ) -> Result<(Vec<FoundElsewhere>, Vec<UnaskedRegistry>), A2aError> {
        let config = self.shared.config();
        if config.registry.is_empty() || query.local_only {
            return Ok((Vec::new(), Vec::new()));
        }
        let (registries, settings) = (&self.shared.finder.registries, config.breaker.settings());
        let (told, untold) = registries.ask(&config.registry, settings, query).await;
        let all =
            told.iter().flat_map(|(registry, all)| all.iter().map(move |one| (registry, one)));
        let all: Vec<_> = all.collect();
        // Whatever they found it by, it must fit here as well, and is ranked among those of the others.
        let index = Index::new(all.iter().map(|(_, one)| one.description.clone()).collect());
        let found = index.find(query, None).map_err(refused)?;
        let elsewhere = found.hits.into_iter().filter_map(|hit| {
            let (registry, listed) = all.get(hit.place)?;
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

    /// The agent of this hub that is elsewhere, at this URL or above it, as the operator said.
    fn known_at(&self, url: &str) -> Option<AgentId> {
        let config = self.shared.config();
        let is_there = |at: &str| {
            let at = at.trim_end_matches('/');
            let below = url.strip_prefix(at).filter(|_| !at.is_empty());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let known = config.remote.iter().find(|(_, remote)| is_there(&remote.url));
        known.map(|(id, _)| id.clone()).filter(|id| self.find(id).is_some())
    }

    /// How similar the agents are in what they mean to what they are to do, where the operator has a server for that; or why words
    /// alone are compared.
    async fn similar(
        &self,
        searchable: &Searchable,
        query: &AgentQuery,
    ) -> (Option<Vec<f64>>, Option<String>) {
        let server = self.shared.config().finding.embeddings.clone();
        let (Some(text), Some(_)) = (&query.text, server.server()) else { return (None, None) };
        let secrets = SecretStore::new(&self.shared.data_dir);
        let meaning = &self.shared.finder.meaning;
        match meaning.similar(&server, &secrets, searchable.texts(), text).await {
            Ok(similar) => (Some(similar), None),
            Err(why) => {
                let note = format!("found by words: the server of embeddings is of no help: {why}");
                (None, Some(plain_text::line(&note, 400)))
            }
        }
    }

    /// The index of these agents.
    async fn index(&self, among: &[Arc<Agent>]) -> Result<Arc<Searchable>, A2aError> {
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
        let index = made.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?;
        let index = Arc::new(Searchable { index, texts: OnceLock::new() });
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

/// Why nobody is found, with what there is for machines.
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

/// A score as it is told: more digits say nothing.
fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
