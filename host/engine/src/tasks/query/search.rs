//! Search for tasks by their words, and the usage of tasks.

use crate::{error::HubError, tasks::Tasks};
use a2a_hub_core::search::{SearchTerms, excerpt};
use a2a_hub_protocol::operation::{
    SearchQuery, SearchResult, SearchResults, UsageQuery, UsageReport,
};
use a2a_hub_store::{ChangeLog, SearchHit, SearchIndexState, StorageError, TaskStore};
use std::sync::Arc;

/// Reads of all tasks by words, and of their usage.
#[derive(Clone, Copy)]
pub(crate) struct TaskHistory<'t>(pub(crate) &'t Tasks);

impl TaskHistory<'_> {
    /// Tasks that contain all terms of a query, the newest first.
    pub(crate) async fn search(&self, query: &SearchQuery) -> Result<SearchResults, HubError> {
        let terms = SearchTerms::parse(&query.query)?;
        let page = self.0.storage.search_tasks(&terms, query).await?;
        let SearchIndexState { pending, failure } = self.0.storage.search_index();
        Ok(SearchResults {
            results: page.tasks.into_iter().map(result).collect(),
            next: page.next.map(|next| next.to_string()),
            pending,
            failure,
        })
    }

    /// Changes of all tasks in their order.
    pub(crate) fn changes(&self) -> Arc<dyn ChangeLog> {
        Arc::<dyn TaskStore>::clone(&self.0.storage)
    }

    /// Sums of the usage of tasks, including those that were deleted.
    pub(crate) async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StorageError> {
        self.0.storage.usage(query).await
    }

    /// Warning that the index for searches cannot be written now, and how to fix it.
    pub(crate) fn index_failure(&self) -> Option<String> {
        let failure = self.0.storage.search_index().failure?;
        Some(format!("the index for searches is behind: {failure}"))
    }
}

fn result(found: SearchHit) -> SearchResult {
    let SearchHit { task, context, agent, state, created, updated, excerpt: marked } = found;
    SearchResult {
        task_id: task,
        agent_id: agent,
        context_id: context,
        state,
        created_at: created,
        updated_at: updated,
        excerpt: excerpt(&marked),
    }
}
