//! Task tree: the query, and the tasks below a root.

use crate::model::{
    id::{AgentId, ContextId, QuestionId, TaskId},
    question::QuestionKind,
    task::TaskState,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Query for a task tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeQuery {
    /// Root of the returned tree.
    pub id: TaskId,
    /// Maximum number of levels below the root.
    pub depth: usize,
    /// Maximum number of returned tasks.
    pub limit: usize,
}

/// Task with its descendants, the tasks that agents delegated: the answer to `hub/tasks/tree`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskTree {
    /// Tasks of the tree, each after its parent; the children of one parent are ordered oldest
    /// first.
    pub tasks: Vec<TreeTask>,
    /// True if tasks are left out because of `depth` or `limit`; `hidden` of a task shows the
    /// place.
    pub cut: bool,
}

/// Task in a tree.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeTask {
    /// Id of the task.
    pub id: TaskId,
    /// Task whose agent delegated this one; absent if a client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<TaskId>,
    /// Number of levels below the root of the returned tree.
    pub depth: usize,
    /// Agent of the task.
    pub agent_id: AgentId,
    /// Conversation of the task.
    pub context_id: ContextId,
    /// Key that the parent's agent gave to the task; absent if it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Agents that the tree may reach, if the API key that began it limits them; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_agents: Option<Vec<String>>,
    /// State of the task, such as `working`.
    #[serde(serialize_with = "super::state_name")]
    #[schemars(with = "String")]
    pub state: TaskState,
    /// Time of the task's creation: RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the latest status, which is the end of a finished task: RFC 3339 in UTC.
    pub updated_at: String,
    /// Tokens that the task itself used, input and output together, as its agent reports them.
    pub tokens: u64,
    /// Cost of the task itself in US dollars, as its agent reports it.
    pub cost_usd: f64,
    /// Machine-readable reason for the failure of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Request to the agent, in one line that may be shortened.
    pub asked: String,
    /// Open question of the task; absent unless the task waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<TreeQuestion>,
    /// Number of direct child tasks that are left out; absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: usize,
}

/// Question of a task in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeQuestion {
    /// Id of the question, with which an answer refers to it.
    #[schemars(with = "String")]
    pub id: QuestionId,
    /// Requested kind of answer: `input`, `permission` or `auth`.
    #[schemars(with = "String")]
    pub kind: QuestionKind,
    /// Text of the question, in one line that may be shortened.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
pub(super) fn is_zero(number: &usize) -> bool {
    *number == 0
}
