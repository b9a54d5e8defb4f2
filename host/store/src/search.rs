//! Full-text search of tasks.

use crate::StorageError;
use a2a_hub_core::search::SearchTerms;
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TaskId},
    operation::SearchQuery,
    task::TaskState,
};

/// Task with the words of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// Task.
    pub task: TaskId,
    /// Conversation.
    pub context: ContextId,
    /// Agent.
    pub agent: AgentId,
    /// Current state.
    pub state: TaskState,
    /// Timestamp of its first status.
    pub created: String,
    /// Timestamp of its latest status.
    pub updated: String,
    /// Excerpt of its texts, with marks around the hits
    /// ([`HIT_BEGINS`](a2a_hub_core::search::HIT_BEGINS)).
    pub excerpt: String,
}

/// Page of tasks with the words of a search, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPage {
    /// The tasks.
    pub tasks: Vec<SearchHit>,
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
