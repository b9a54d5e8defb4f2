//! Remains of a task whose actor has ended.

use super::run_queue::{Lane, RunPermit};
use a2a_hub_agents::Agent;
use a2a_hub_core::tree::Usage;
use a2a_hub_protocol::id::TaskId;
use std::sync::Arc;

/// Resources of a finished task. Its programs may still be ending; only the next task waits for
/// them.
pub(super) struct Remains {
    pub(super) agent: Arc<Agent>,
    pub(super) task: TaskId,
    pub(super) turn: Option<RunPermit>,
    pub(super) lane: Option<Lane>,
    /// Usage, as reported by the agent.
    pub(super) used: Usage,
    /// True if the shutdown interrupted its agent at work.
    pub(super) was_cut: bool,
    /// True if its children continue without it, because the next process replays its agent.
    pub(super) keeps_children: bool,
}

impl Remains {
    /// Waits until its programs are gone, then releases the run permit and the conversation's lock.
    pub(super) async fn reap(self) {
        let Self { agent, task, turn, lane, .. } = self;
        agent.programs_gone(task.as_str()).await;
        drop((turn, lane));
    }
}
