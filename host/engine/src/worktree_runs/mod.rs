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
mod worktree_of_run;

pub use changes::conflict_with;
pub use repository_configs::decide_by_trust;
pub use rules::rules_of;
pub use worktree_of_run::{PATCH, PublishEvent, WorktreeOfRun};

use a2a_hub_runtime::{Run, StartAgent};
use changes::RunInWorktree;
use setup::run_after_setup;

/// Starts an agent in a worktree, once that is set up.
pub fn start(worktree: WorktreeOfRun, agent: StartAgent) -> Box<dyn Run> {
    let changes = worktree.clone();
    let begin = move || Box::new(RunInWorktree::new(agent(), changes)) as Box<dyn Run>;
    Box::new(run_after_setup(worktree, Box::new(begin)))
}
