//! Remains of a task whose actor has ended.

use crate::tasks::run_queue::{ContextLock, RunPermit};
use a2a_hub_agents::Agent;
use a2a_hub_core::task::tree_budget::Usage;
use a2a_hub_protocol::id::TaskId;
use std::sync::Arc;

/// Resources of a finished task. Its programs may still be ending; only the next task waits for
/// them.
pub(in crate::tasks) struct ActorExit {
    pub(in crate::tasks) agent: Arc<Agent>,
    pub(in crate::tasks) task: TaskId,
    pub(in crate::tasks) turn: Option<RunPermit>,
    pub(in crate::tasks) context_lock: Option<ContextLock>,
    /// Usage, as reported by the agent.
    pub(in crate::tasks) used: Usage,
    /// True if the shutdown interrupted its agent at work.
    pub(in crate::tasks) was_cut: bool,
    /// True if its children continue without it, because the next process replays its agent.
    pub(in crate::tasks) keeps_children: bool,
}

impl ActorExit {
    /// Waits until its programs are gone, then releases the run permit and the conversation's lock.
    pub(in crate::tasks) async fn reap(self) {
        let Self { agent, task, turn, context_lock, .. } = self;
        agent.wait_for_programs(task.as_str()).await;
        drop((turn, context_lock));
    }
}
