//! The other tasks, as one task's actor and its agent's programs know them.

use super::{
    feed::{Lent, Subscription},
    port::GuestRequest,
};
use a2a_hub_agents::Agent;
use a2a_hub_core::{access::Principal, tree::Usage};
use a2a_hub_protocol::{id::TaskId, task::Task};
use a2a_hub_runtime::{
    Failure,
    port::delegate::{ChildRequest, DelegatePort},
};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How a run stands to others on its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunKind {
    /// Whether what it hears is recorded.
    pub(super) is_recorded: bool,
    /// Whether an earlier run may have left children at work: what they ask is told as well.
    pub(super) follows_another: bool,
}

/// All tasks of the hub, as far as the actor of one has to do with them.
#[async_trait::async_trait]
pub(super) trait OtherTasks: Send + Sync {
    /// Where the agent that is at work on `task` gives tasks to others, and its programs do. What these ask is told to `queue`.
    fn delegation(
        &self,
        agent: &Arc<Agent>,
        task: &Task,
        queue: mpsc::Sender<GuestRequest>,
        run: RunKind,
    ) -> Arc<dyn DelegatePort>;

    /// Whether a task has children that are not over.
    fn has_children(&self, task: &TaskId) -> bool;

    /// Returns once a task has no children that are not over.
    fn children_over(&self, task: &TaskId) -> BoxFuture<'static, ()>;

    /// Ends the children of a task that are at work, and lets no more begin; returns once they have ended, and whether there were
    /// any.
    async fn end_children(&self, task: &TaskId, by: &Principal) -> bool;

    /// Counts what a task has used up by now, all in all, for those above it. Where that uses up a budget, all that is at work
    /// under it is ended.
    fn report(&self, task: &TaskId, used: Usage);
}

/// The calls of one task's agent, as its programs make them.
#[async_trait::async_trait]
pub(super) trait Calls: Send + Sync {
    /// Gives another agent a task, or joins the child that there is under this key, and hears of it from its beginning on.
    async fn open(&self, request: ChildRequest) -> Result<Subscription, Failure>;

    /// Other tasks of the agent run until what is returned is taken back, or dropped: a program of its waits for others.
    async fn lend(&self) -> Box<dyn Lent>;
}
