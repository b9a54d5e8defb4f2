//! Handoff: an unfinished or failed task goes on at another agent.

use crate::model::id::{AgentId, TaskId};

/// Request to hand a task over. Another agent goes on with it in a new task of the same
/// conversation; the old task is canceled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Task to hand over.
    pub task: TaskId,
    /// Agent that goes on.
    pub agent: AgentId,
    /// Words to that agent.
    pub note: Option<String>,
}
