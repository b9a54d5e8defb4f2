//! Agent search: cached indexes, which are rebuilt when one of their agents changes; an embeddings
//! server; and other registries.

use crate::agent::Agent;
use crate::finder::{EmbeddedText, Meaning, Registries};
use a2a_hub_config::{Embeddings, SecretStore};
use a2a_hub_core::{
    discovery::{
        aliases::Aliases,
        search::{Description, Index},
    },
    text::plain_text,
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::AgentQuery,
};
use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock, Weak},
};
use tokio::sync::Mutex;

/// Number of cached indexes: of all agents, and of the agents that some agents may call.
const MAX_CACHED: usize = 8;

/// Cache of the most recently used indexes, the latest first.
#[derive(Default)]
pub(super) struct Finder {
    cache: Mutex<VecDeque<CachedIndex>>,
    meaning: Meaning,
    pub(super) registries: Registries,
}

/// An index and, computed on demand, the texts that its agents are compared by for meaning.
pub(super) struct Searchable {
    pub(super) index: Index,
    texts: OnceLock<Vec<EmbeddedText>>,
}

impl Searchable {
    fn texts(&self) -> &[EmbeddedText] {
        self.texts.get_or_init(|| {
            self.index.agents().iter().map(|agent| EmbeddedText::new(agent.text())).collect()
        })
    }
}

/// A cached index with the agents that it covers.
struct CachedIndex {
    /// Weak references: they do not keep an agent alive, and no other agent gets the same address.
    agents: Vec<Weak<Agent>>,
    aliases: Aliases,
    index: Arc<Searchable>,
}

impl CachedIndex {
    fn is_of(&self, agents: &[Arc<Agent>], aliases: &Aliases) -> bool {
        let are_same =
            |(cached, agent): (&Weak<Agent>, &Arc<Agent>)| cached.as_ptr() == Arc::as_ptr(agent);
        self.agents.len() == agents.len()
            && self.agents.iter().zip(agents).all(are_same)
            && self.aliases == *aliases
    }
}

impl Finder {
    /// Index of these agents under these aliases, from the cache or built.
    pub(super) async fn index(
        &self,
        among: &[Arc<Agent>],
        aliases: Aliases,
    ) -> Result<Arc<Searchable>, A2aError> {
        let mut cache = self.cache.lock().await;
        if let Some(known) = cache.iter().position(|entry| entry.is_of(among, &aliases)) {
            let index = Arc::clone(&cache[known].index);
            cache.swap(0, known);
            return Ok(index);
        }
        let described = among.iter().map(|agent| {
            let aliases = aliases.for_agent(&agent.id).map(ToString::to_string).collect();
            Description::new(agent.id.as_str(), aliases, &agent.card)
        });
        let described: Vec<_> = described.collect();
        // An index of a thousand cards takes a while to build.
        let built = run_blocking(move || Index::new(described)).await;
        let index = built.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?;
        let index = Arc::new(Searchable { index, texts: OnceLock::new() });
        let agents = among.iter().map(Arc::downgrade).collect();
        cache.push_front(CachedIndex { agents, aliases, index: Arc::clone(&index) });
        cache.truncate(MAX_CACHED);
        Ok(index)
    }

    /// Similarity of the agents to the query's text, if the operator has configured an embeddings
    /// server; or a note why only words are compared.
    pub(super) async fn similar(
        &self,
        searchable: &Searchable,
        server: &Embeddings,
        secrets: &SecretStore,
        query: &AgentQuery,
    ) -> (Option<Vec<f64>>, Option<String>) {
        let (Some(text), Some(_)) = (&query.text, server.server()) else { return (None, None) };
        match self.meaning.similar(server, secrets, searchable.texts(), text).await {
            Ok(similar) => (Some(similar), None),
            Err(why) => {
                let note = format!("found by words: the server of embeddings is of no help: {why}");
                (None, Some(plain_text::line(&note, 400)))
            }
        }
    }
}
