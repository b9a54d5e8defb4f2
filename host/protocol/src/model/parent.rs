//! Where a task stands in a tree of tasks: an agent at work on one task gave it to another agent.

use crate::model::id::TaskId;
use serde::{Deserialize, Serialize};

/// The place of a child task in its tree. It is in the task's log from the beginning, and nothing else keeps the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// The task whose agent gave this one.
    pub task: TaskId,
    /// The task at the root of the tree, which a client gave.
    pub root: TaskId,
    /// How far below the root it stands: 1 for the children of the root.
    pub depth: u32,
    /// What the parent's agent calls this child, if it calls it anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
