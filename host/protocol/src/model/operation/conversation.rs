//! Conversations (contexts): the query, and the summary of each.

use super::page::Page;
use crate::model::{
    id::{AgentId, ContextId, TaskId, TenantId},
    task::TaskState,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Filter for conversations, which are sorted by their newest task, latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextQuery {
    /// Restricts the list to conversations whose name begins with this prefix.
    pub id_prefix: Option<String>,
    /// Restricts the list to conversations of this tenant.
    pub tenant: Option<TenantId>,
    /// Restricts the list to conversations whose newest task has this working directory.
    pub directory: Option<String>,
    /// Cursor: the list begins after the conversation with this newest task.
    pub after: Option<TaskId>,
    /// Section of the filtered list.
    pub page: Page,
}

impl ContextQuery {
    /// All conversations, in this section of the list.
    pub fn all(page: Page) -> Self {
        Self { id_prefix: None, tenant: None, directory: None, after: None, page }
    }
}

/// Summary of a conversation: an element of the answer to `hub/contexts/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfo {
    /// Id of the conversation.
    pub id: ContextId,
    /// Number of tasks in the conversation.
    pub task_count: u64,
    /// Ids of the participating agents.
    pub agents: Vec<AgentId>,
    /// Start of the conversation's first task: RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the latest state change of a task in the conversation: RFC 3339 in UTC.
    pub updated_at: String,
    /// State of the conversation's newest task, such as `completed`.
    #[serde(serialize_with = "super::state_name")]
    #[schemars(with = "String")]
    pub last_state: TaskState,
    /// Newest task of the conversation.
    pub last_task_id: TaskId,
    /// Working directory of the newest task, as its client set it last; absent if it set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Task whose agent delegated the newest task; absent if a client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
}
