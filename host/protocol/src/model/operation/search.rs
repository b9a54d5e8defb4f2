//! Full-text search of tasks: the request, and its answer.

use crate::model::{
    id::{AgentId, ContextId, TaskId, TenantId},
    task::TaskState,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Search for tasks by the words in their messages and answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, `"phrases"` and word beginnings with a trailing `*`, all of which a task must
    /// contain.
    pub query: String,
    /// Only tasks of this agent.
    pub agent: Option<AgentId>,
    /// Only tasks of this conversation.
    pub context: Option<ContextId>,
    /// Only tasks of this tenant.
    pub tenant: Option<TenantId>,
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks whose status changed at or after this time: RFC 3339 in UTC.
    pub since: Option<String>,
    /// Only tasks whose tree this principal began: `person:ada`, or the name `ada` alone.
    pub person: Option<String>,
    /// Only tasks behind this cursor, which a result named.
    pub after: Option<u64>,
    /// Maximum number of results.
    pub limit: usize,
}

/// Tasks with the words of a search: the answer to `hub/search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResults {
    /// The tasks, the newest first. A page may have fewer than the limit, and yet a next page.
    pub results: Vec<SearchResult>,
    /// Value of `cursor` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Number of changed tasks whose words are not in the index yet.
    pub pending: u64,
    /// Reason why the index cannot be written now, and how to fix it; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Task that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// Task.
    pub task_id: TaskId,
    /// Agent of the task.
    pub agent_id: AgentId,
    /// Conversation of the task.
    pub context_id: ContextId,
    /// Current state of the task.
    #[serde(serialize_with = "super::state_name")]
    #[schemars(with = "String")]
    pub state: TaskState,
    /// Time of its first status: RFC 3339 in UTC.
    pub created_at: String,
    /// Time of its latest status: RFC 3339 in UTC.
    pub updated_at: String,
    /// Excerpt of its texts around the hits, in one line.
    pub excerpt: Vec<ExcerptPart>,
}

/// Part of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExcerptPart {
    /// Text.
    pub text: String,
    /// True for words of the search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hit: bool,
}
