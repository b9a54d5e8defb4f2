//! Ports of one task of an agent.

use a2a_hub_core::{access_control::Principal, identity::LoginUser};
use a2a_hub_runtime::port::{delegate::DelegatePort, journal::JournalPort, tasks::TaskPort};
use std::sync::Arc;

/// The hub's side of one task.
pub struct TaskPorts {
    /// Receives the task's events.
    pub task: Arc<dyn TaskPort>,
    /// Starts child tasks, if the agent may call others.
    pub delegation: Option<Arc<dyn DelegatePort>>,
    /// Records the answers that the agent receives, if its run is journaled.
    pub journal: Option<Arc<dyn JournalPort>>,
    /// Sender of the task or of its latest input; none if unknown.
    pub by: Option<Principal>,
    /// Caller whose share of the agent's memory this run has; none if unknown, which is the
    /// operator's.
    pub memory_by: Option<Principal>,
    /// Party that began the tree of the task, which decides about the login of its programs.
    pub login_user: LoginUser,
}

impl TaskPorts {
    /// Ports of a task whose agent works on another server, as it did for an earlier process.
    pub(super) fn of_followed(task: Arc<dyn TaskPort>) -> Self {
        Self {
            task,
            delegation: None,
            journal: None,
            by: None,
            memory_by: None,
            login_user: LoginUser::Operator,
        }
    }
}
