//! The indexes by which agents are found, kept until one of their agents is another; and who else is asked: a server that compares texts
//! by meaning, and other registries.

mod listed;
mod meaning;
mod registries;

use crate::{agent::Agent, port::secrets::SecretStore};
use a2a_hub_config::Embeddings;
use a2a_hub_core::{
    aliases::Aliases,
    finding::{Description, Index},
    plain_text,
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::AgentQuery,
};
use meaning::{Meaning, Text};
use registries::Registries;
use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock, Weak},
};
use tokio::sync::Mutex;

/// How many indexes are kept: those of all agents, and of the agents that some of them may call.
const MAX_KEPT: usize = 8;

/// Keeps the indexes that were made last, the latest first.
#[derive(Default)]
pub(super) struct Finder {
    kept: Mutex<VecDeque<Kept>>,
    meaning: Meaning,
    pub(super) registries: Registries,
}

/// An index, and the texts that its agents are compared by in what they mean, once somebody asks for that.
pub(super) struct Searchable {
    pub(super) index: Index,
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

impl Finder {
    /// The index of these agents, which are called so besides.
    pub(super) async fn index(
        &self,
        among: &[Arc<Agent>],
        aliases: Aliases,
    ) -> Result<Arc<Searchable>, A2aError> {
        let mut kept = self.kept.lock().await;
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
        // Of a thousand cards it is no work of a moment.
        let made = run_blocking(move || Index::new(described)).await;
        let index = made.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?;
        let index = Arc::new(Searchable { index, texts: OnceLock::new() });
        let agents = among.iter().map(Arc::downgrade).collect();
        kept.push_front(Kept { agents, aliases, index: Arc::clone(&index) });
        kept.truncate(MAX_KEPT);
        Ok(index)
    }

    /// How similar the agents are in what they mean to what they are to do, where the operator has a server for that; or why words
    /// alone are compared.
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
