//! What is left of a task whose actor has ended.

use super::run_queue::{Lane, RunPermit};
use a2a_hub_agents::Agent;
use a2a_hub_core::tree::Usage;
use a2a_hub_protocol::id::TaskId;
use std::sync::Arc;

/// What a task that is over leaves behind: programs that may still be ending, while nobody waits for them but the next task.
pub(super) struct Remains {
    pub(super) agent: Arc<Agent>,
    pub(super) task: TaskId,
    pub(super) turn: Option<RunPermit>,
    pub(super) lane: Option<Lane>,
    /// What it used up, as its agent reports it.
    pub(super) used: Usage,
    /// Whether the hub's end cut its agent off at its work.
    pub(super) was_cut: bool,
    /// Whether its children go on without it: its agent is run again by the next hub.
    pub(super) keeps_children: bool,
}

impl Remains {
    /// Waits until none of it is left, and lets other tasks run then.
    pub(super) async fn reap(self) {
        let Self { agent, task, turn, lane, .. } = self;
        agent.programs_gone(task.as_str()).await;
        drop((turn, lane));
    }
}
