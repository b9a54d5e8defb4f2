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

/// A task with those that its agent gave to other agents, and they to others: the answer to `hub/tasks/tree`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskTree {
    /// The tasks, each after its parent, the oldest first among those of one parent.
    pub tasks: Vec<TreeTask>,
    /// Whether tasks of the tree are not told, for it has more levels or more tasks than were asked for; `hidden` of a task tells
    /// where.
    pub cut: bool,
}

/// A task in a tree.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeTask {
    /// The task's id.
    pub id: TaskId,
    /// The task whose agent gave this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<TaskId>,
    /// How many levels below the root of what is told it stands.
    pub depth: usize,
    /// The agent whose task it is.
    pub agent_id: AgentId,
    /// The conversation that it belongs to.
    pub context_id: ContextId,
    /// What the parent's agent calls it, if it calls it anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where the task stands.
    #[serde(serialize_with = "super::state_name")]
    #[schemars(with = "String")]
    pub state: TaskState,
    /// When it was given: RFC 3339 in UTC.
    pub created_at: String,
    /// When its status was told last: of a task that is over, when it ended.
    pub updated_at: String,
    /// Tokens that it used itself, input and output together, as its agent reports them.
    pub tokens: u64,
    /// Dollars that it cost itself, as its agent reports them.
    pub cost_usd: f64,
    /// Why it failed, for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What its agent was asked for, in one line that may be shortened.
    pub asked: String,
    /// What it asks, if it waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<TreeQuestion>,
    /// How many tasks right below it are not told.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: usize,
}

/// What a task in a tree asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeQuestion {
    /// The question's name, by which an answer says what it answers.
    #[schemars(with = "String")]
    pub id: QuestionId,
    /// What kind of answer is wanted: `input`, `permission` or `auth`.
    #[schemars(with = "String")]
    pub kind: QuestionKind,
    /// What is asked, in one line that may be shortened.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
pub(super) fn is_zero(number: &usize) -> bool {
    *number == 0
}
