//! Full-text search of tasks.

use crate::{Head, StorageError};
use a2a_hub_core::search::SearchTerms;
use a2a_hub_protocol::operation::SearchQuery;

/// Task with the words of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTask {
    /// Summary.
    pub head: Head,
    /// Excerpt of its texts, with marks around the hits
    /// ([`HIT_BEGINS`](a2a_hub_core::search::HIT_BEGINS)).
    pub excerpt: String,
}

/// Page of tasks with the words of a search, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPage {
    /// The tasks.
    pub tasks: Vec<FoundTask>,
    /// Cursor of the next page; none at the end. A page with a cursor may have fewer tasks than the
    /// limit, even none.
    pub next: Option<u64>,
}

/// State of the index for searches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchIndexState {
    /// Number of changed tasks whose words the index does not have yet.
    pub pending: u64,
    /// Failure of the latest write, with the way to fix it; none if it succeeded.
    pub failure: Option<String>,
}

/// Search for tasks by the words in their messages and answers. The index follows the logs after a
/// moment; a deleted task is not found from its deletion on.
#[async_trait::async_trait]
pub trait TaskSearch: Send + Sync {
    /// Tasks that contain all terms and match the filters of `query`.
    async fn search_tasks(
        &self,
        terms: &SearchTerms,
        query: &SearchQuery,
    ) -> Result<FoundPage, StorageError>;

    /// State of the index.
    fn search_index(&self) -> SearchIndexState;
}

/// True if a found task matches the filters. `person` is the identity of the principal that began
/// its tree.
pub(super) fn admits(query: &SearchQuery, head: &Head, person: &str) -> bool {
    let SearchQuery { agent, context, tenant, state, since, person: by, .. } = query;
    agent.as_ref().is_none_or(|agent| *agent == head.agent)
        && context.as_ref().is_none_or(|context| *context == head.context)
        && tenant.as_ref().is_none_or(|tenant| tenant == head.context.tenant())
        && state.is_none_or(|state| state == head.state)
        && since.as_ref().is_none_or(|since| head.updated >= *since)
        && by.as_ref().is_none_or(|by| is_person(by, person))
}

fn is_person(wanted: &str, person: &str) -> bool {
    wanted == person || person.strip_prefix("person:").is_some_and(|name| name == wanted)
}
