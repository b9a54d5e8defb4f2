//! Where a task stands in a tree of tasks: an agent at work on one task gave it to another agent.

use crate::model::{budget::Budget, id::TaskId};
use serde::{Deserialize, Serialize};

/// The place of a child task in its tree. It is in the task's log from the beginning, and nothing else keeps the tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What the parent's agent allowed with the call to follow from this task; what the task's message says counts as well. Hubs before
    /// this one did not write it, and do not read it.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_budget_of_a_call_is_kept_and_a_log_from_before_has_none() {
        let before = json!({"task": "b", "root": "a", "depth": 2, "key": "draft"});
        let read: Parent = serde_json::from_value(before.clone()).unwrap();
        assert_eq!(read.budget, Budget::default());
        assert_eq!(json!(read), before, "what narrows nothing is not written");

        let mut now = before;
        now["budget"] = json!({"depth": 0, "tasks": 1, "tokens": 10, "costUsd": 0.5});
        let read: Parent = serde_json::from_value(now.clone()).unwrap();
        let whole =
            Budget { depth: Some(0), tasks: Some(1), tokens: Some(10), cost_usd: Some(0.5) };
        assert_eq!(read.budget, whole);
        assert_eq!(json!(read), now);
    }
}
