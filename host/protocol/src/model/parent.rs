//! Position of a task in a tree of delegated tasks.

use crate::model::{budget::Budget, id::TaskId};
use serde::{Deserialize, Serialize};

/// Position of a child task in its tree. It is written to the task's log at the start; no other
/// record of the tree exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// Task whose agent delegated this one.
    pub task: TaskId,
    /// Root task, which a client created.
    pub root: TaskId,
    /// Number of levels below the root: 1 for the root's children.
    pub depth: u32,
    /// Key by which the parent's agent identifies this child, if it set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Budget that the parent's agent set with the call; the budget in the task's message applies
    /// as well. Older versions neither write nor read it.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parent_budget_round_trips_through_log() {
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
