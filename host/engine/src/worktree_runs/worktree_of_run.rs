//! Worktree of a run, and what its changes are reported with.

pub use a2a_hub_core::task::metadata::PATCH;
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::{ContextId, TaskId},
};
use a2a_hub_runtime::port::tasks::TaskPort;
use a2a_hub_worktrees::Worktrees;
use std::sync::Arc;

/// Publishes an event of the hub.
pub type PublishEvent = Arc<dyn Fn(HubEventKind) + Send + Sync>;

/// Worktree of a run.
#[derive(Clone)]
pub struct WorktreeOfRun {
    /// The worktrees of the hub.
    pub worktrees: Worktrees,
    /// Task whose worktree it is.
    pub task: TaskId,
    /// Conversation of the task.
    pub context: ContextId,
    /// Port of the task, for progress and changes.
    pub port: Arc<dyn TaskPort>,
    /// True if an earlier run of the task reported changes.
    pub has_patch: bool,
    /// Receives the conflicts with other worktrees.
    pub publish: PublishEvent,
}
