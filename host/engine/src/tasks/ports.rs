//! Interfaces to other tasks, for a task's actor and its agent's programs.

use super::guest_port::{AnswerRequests, GuestRequest};
use crate::conversations::handoff;
use a2a_hub_agents::Agent;
use a2a_hub_core::{access_control::Principal, task::tree_budget::Usage};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    task::Task,
};
use a2a_hub_runtime::{
    Ended, Failure, WrapRun,
    port::delegate::{ChildRequest, DelegatePort},
};
use a2a_hub_store::feed::{Lent, Subscription};
use a2a_hub_worktrees::Worktrees;
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Relation of a run to other runs on its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunKind {
    /// True if the run has a journal.
    pub(super) is_recorded: bool,
    /// True if an earlier run may have left children at work, whose questions are relayed as well.
    pub(super) follows_another: bool,
}

/// A task that goes on with another one, which ends first.
#[derive(Debug)]
pub(super) struct Handoff {
    /// Task to end.
    pub(super) old: TaskId,
    /// Task that goes on.
    pub(super) task: TaskId,
    /// Its agent.
    pub(super) agent: AgentId,
    /// Principal that handed the task over.
    pub(super) by: Principal,
    /// Reason of the old task's failure, if the hub handed it over.
    pub(super) reason: Option<String>,
}

impl Handoff {
    /// Handoff that `task` of `agent` began with; none if it began with a message only.
    pub(super) fn from_task(task: &Task, agent: &AgentId, by: Option<&Principal>) -> Option<Self> {
        let old = handoff::predecessor(task)?;
        let reason = handoff::reason(task).map(str::to_owned);
        let (agent, task) = (agent.clone(), task.id.clone());
        let as_agent = || Principal::AgentTask { agent: agent.clone(), task: task.clone() };
        let by = by.cloned().unwrap_or_else(as_agent);
        Some(Self { old, task, agent, by, reason })
    }
}

/// Access to the other tasks of the hub, for the actor of one.
#[async_trait::async_trait]
pub(super) trait OtherTasks: Send + Sync {
    /// Delegation port of the agent that works on `task`, and of its programs. Children's questions
    /// go to `queue`.
    fn delegation(
        &self,
        agent: &Arc<Agent>,
        task: &Task,
        queue: mpsc::Sender<GuestRequest>,
        run: RunKind,
    ) -> Arc<dyn DelegatePort>;

    /// Rules for the requests of the agent that works on `task`.
    fn rules(&self, agent: &Arc<Agent>, task: &Task) -> Arc<dyn AnswerRequests>;

    /// The worktrees of the tasks; none in a hub without them.
    fn worktrees(&self) -> Option<&Worktrees>;

    /// Ends the old task of a handoff. Returns the end of the new one if that must not begin.
    fn old_task_over(&self, handoff: Handoff) -> BoxFuture<'static, Option<Ended>>;

    /// Wraps the run of a task's agent that may be handed over to another one of its group; none if
    /// the task stays with its agent.
    fn hand_on(&self, agent: &Agent, task: &Task) -> Option<WrapRun>;

    /// True if a task has unfinished children.
    fn has_children(&self, task: &TaskId) -> bool;

    /// Waits until a task has no unfinished children.
    fn children_over(&self, task: &TaskId) -> BoxFuture<'static, ()>;

    /// Ends the running children of a task and prevents new ones; returns once they have ended,
    /// with true if there were any.
    async fn end_children(&self, task: &TaskId, by: &Principal) -> bool;

    /// Adds a task's total usage so far to its ancestors. If that exhausts a budget, the tasks
    /// under that budget are ended.
    fn report(&self, task: &TaskId, used: Usage);
}

/// Delegation calls of one task's agent, made by its programs.
#[async_trait::async_trait]
pub(super) trait ProgramCalls: Send + Sync {
    /// Starts a task at another agent, or joins the existing child with this key, and subscribes to
    /// it from its beginning.
    async fn open(&self, request: ChildRequest) -> Result<Subscription, Failure>;

    /// Lends the run permit to other tasks until the result is reclaimed or dropped; used while a
    /// program waits for others.
    async fn lend(&self) -> Box<dyn Lent>;
}
