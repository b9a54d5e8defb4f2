//! Runs of agents in worktrees: the operator's programs set a worktree up before the agent begins,
//! and the changes become the artifact `patch` before the run ends.
//!
//! ```text
//!  start ──► setup ──► the agent's run ──► changes ──► end
//!              └─ failed: the task fails, and the worktree is removed
//! ```

mod changes;
mod repository_configs;
mod rules;
mod setup;

pub use changes::conflict_with;
pub use repository_configs::decide_by_trust;
pub use rules::rules_of;

use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::{ContextId, TaskId},
};
use a2a_hub_runtime::{Run, StartAgent, port::tasks::TaskPort};
use a2a_hub_worktrees::Worktrees;
use changes::RunInWorktree;
use setup::run_after_setup;
use std::sync::Arc;

/// Id of the artifact with the changes. Only the hub writes it.
pub const PATCH: &str = "patch";

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

/// Starts an agent in a worktree, once that is set up.
pub fn start(worktree: WorktreeOfRun, agent: StartAgent) -> Box<dyn Run> {
    let changes = worktree.clone();
    let begin = move || Box::new(RunInWorktree::new(agent(), changes)) as Box<dyn Run>;
    Box::new(run_after_setup(worktree, Box::new(begin)))
}
