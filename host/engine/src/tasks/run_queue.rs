//! Run queue: grants run permits in the order that `core::scheduling::task_admission` decides.

use a2a_hub_agents::Agent;
use a2a_hub_core::{
    grant::Resume,
    scheduling::task_admission::{self, Busy, Quota, QuotaLimits, SharedCapacity},
};
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TaskId},
    task::Task,
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::oneshot;

/// Run queues of all agents. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RunQueue(Arc<Mutex<HashMap<AgentId, Line>>>);

/// Run queue of one agent. An agent that works on one task of a conversation at a time locks the
/// conversation (its context lock).
struct Line {
    quota: Quota<TaskId, ContextId>,
    /// Limits of the agent's latest version.
    limits: QuotaLimits,
    /// True if tasks that wait for their clients count against the shared capacity.
    shares_capacity: bool,
    waiting: HashMap<TaskId, oneshot::Sender<()>>,
}

/// A run permit. Dropping it lets another task run.
pub(super) struct RunPermit {
    queue: RunQueue,
    agent: AgentId,
    /// Conversation lock that was granted with the permit.
    context_lock: Option<ContextLock>,
}

/// A task's conversation lock. Dropping it lets the conversation's next task begin.
pub(super) struct ContextLock {
    queue: RunQueue,
    agent: AgentId,
    context: ContextId,
}

/// A task's ticket in the queue. Dropping it leaves the queue.
pub(super) struct QueueTicket {
    queue: RunQueue,
    agent: AgentId,
    task: TaskId,
    /// Conversation lock that the task needs, and the task that held it when the ticket was made.
    locked_context: Option<ContextId>,
    pub(super) lock_holder: Option<TaskId>,
    called: oneshot::Receiver<()>,
    /// True if the permit was granted, and has its own owner.
    taken: bool,
}

/// Result of asking for a run permit.
pub(super) enum PermitRequest {
    Now(RunPermit),
    Later(QueueTicket),
}

/// A request for a run permit.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) agent: &'a Agent,
    pub(super) task: &'a TaskId,
    pub(super) context: &'a ContextId,
}

impl<'a> Asking<'a> {
    /// Request of a task for its agent.
    pub(super) fn for_task(task: &'a Task, agent: &'a Agent) -> Self {
        Self { agent, task: &task.id, context: &task.context_id }
    }

    fn locked_context(&self) -> Option<ContextId> {
        self.agent.one_per_context().then(|| self.context.clone())
    }
}

/// Count of a task that waits for its client while its agent uses capacity. Dropping it ends the
/// count.
pub(super) struct ClientWait {
    queue: RunQueue,
    agent: AgentId,
}

impl RunQueue {
    /// Counts a task that waits for its client while its agent uses capacity.
    pub(super) fn wait(&self, agent: &Agent) -> ClientWait {
        let limits = agent.quota();
        let mut lines = self.lines();
        let line = lines.entry(agent.id.clone()).or_insert_with(|| Line::new(limits));
        line.shares_capacity = agent.run_capacity().is_some();
        line.quota.wait();
        ClientWait { queue: self.clone(), agent: agent.id.clone() }
    }

    /// Requests a permit for a new task; refused if the queue is full.
    pub(super) fn ask(&self, asking: Asking<'_>) -> Result<PermitRequest, Busy> {
        self.require_capacity(asking.agent)?;
        self.admit(
            &asking.agent.id,
            asking.agent.quota(),
            asking.task,
            asking.locked_context(),
            Quota::ask,
        )
    }

    /// Refuses an agent that cannot be evicted while it waits, if waiting tasks leave no capacity.
    fn require_capacity(&self, agent: &Agent) -> Result<(), Busy> {
        let Some(capacity) = agent.run_capacity().filter(|_| agent.resume() != Resume::Session)
        else {
            return Ok(());
        };
        let lines = self.lines();
        let sharing = lines.values().filter(|line| line.shares_capacity);
        let waiting = sharing.map(|line| line.quota.waiting()).sum();
        let agent_waiting = lines.get(&agent.id).map_or(0, |line| line.quota.waiting());
        SharedCapacity { waiting, max_tasks: capacity.max }.admit(agent_waiting)
    }

    /// Requests a permit for a task that was admitted before, by this process or the previous one,
    /// and holds no conversation lock.
    pub(super) fn readmit(&self, asking: Asking<'_>) -> PermitRequest {
        self.requeue(asking.agent, asking.task, asking.locked_context())
    }

    /// Takes the conversation lock of a recovered task without a permit; none if the task needs no
    /// lock, or another task holds it.
    pub(super) fn lock_context(&self, asking: Asking<'_>) -> Option<ContextLock> {
        let context = asking.locked_context()?;
        let limits = asking.agent.quota();
        let mut lines = self.lines();
        let line = lines.entry(asking.agent.id.clone()).or_insert_with(|| Line::new(limits));
        let (queue, agent) = (self.clone(), asking.agent.id.clone());
        let locked = line.quota.try_lock(asking.task.clone(), context.clone());
        locked.then_some(ContextLock { queue, agent, context })
    }

    /// Requests a permit for a task that released it while it waited for its client, and kept its
    /// conversation lock.
    pub(super) fn reacquire(&self, asking: Asking<'_>) -> PermitRequest {
        self.requeue(asking.agent, asking.task, None)
    }

    fn requeue(
        &self,
        agent: &Agent,
        task: &TaskId,
        locked_context: Option<ContextId>,
    ) -> PermitRequest {
        let requeue = |quota: &mut Quota<_, _>, key, locked_context, limits| {
            Ok(quota.requeue(key, locked_context, limits))
        };
        let admitted = self.admit::<std::convert::Infallible>(
            &agent.id,
            agent.quota(),
            task,
            locked_context,
            requeue,
        );
        match admitted {
            Ok(admitted) => admitted,
        }
    }

    fn admit<E>(
        &self,
        agent: &AgentId,
        limits: QuotaLimits,
        task: &TaskId,
        locked_context: Option<ContextId>,
        ask: impl FnOnce(
            &mut Quota<TaskId, ContextId>,
            TaskId,
            Option<ContextId>,
            QuotaLimits,
        ) -> Result<task_admission::Admission, E>,
    ) -> Result<PermitRequest, E> {
        let mut lines = self.lines();
        let line = lines.entry(agent.clone()).or_insert_with(|| Line::new(limits));
        line.limits = limits;
        let lock_holder =
            locked_context.as_ref().and_then(|context| line.quota.holder(context)).cloned();
        Ok(match ask(&mut line.quota, task.clone(), locked_context.clone(), limits)? {
            task_admission::Admission::Now => PermitRequest::Now(self.turn(agent, locked_context)),
            task_admission::Admission::Later => {
                let (call, called) = oneshot::channel();
                line.waiting.insert(task.clone(), call);
                let (queue, agent, task) = (self.clone(), agent.clone(), task.clone());
                PermitRequest::Later(QueueTicket {
                    queue,
                    agent,
                    task,
                    locked_context,
                    lock_holder,
                    called,
                    taken: false,
                })
            }
        })
    }

    /// Number of an agent's tasks that run or wait for a run permit.
    pub(super) fn load(&self, agent: &AgentId) -> usize {
        self.lines().get(agent).map_or(0, |line| line.quota.load())
    }

    fn turn(&self, agent: &AgentId, locked_context: Option<ContextId>) -> RunPermit {
        let of = |context| ContextLock { queue: self.clone(), agent: agent.clone(), context };
        RunPermit {
            queue: self.clone(),
            agent: agent.clone(),
            context_lock: locked_context.map(of),
        }
    }

    /// Changes an agent's queue, then grants permits to the next tasks.
    fn change(&self, agent: &AgentId, change: impl FnOnce(&mut Line)) {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(agent) else { return };
        change(line);
        while let Some(task) = line.quota.next(line.limits) {
            // A waiting task is in both collections; a ticket that is dropped leaves both.
            if let Some(call) = line.waiting.remove(&task) {
                let _ = call.send(());
            }
        }
        if line.quota.is_idle() {
            lines.remove(agent);
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<AgentId, Line>> {
        self.0.lock()
    }
}

impl Line {
    fn new(limits: QuotaLimits) -> Self {
        let (quota, waiting) = (Quota::default(), HashMap::new());
        Self { quota, limits, shares_capacity: false, waiting }
    }
}

impl RunPermit {
    /// Conversation lock that came with the permit; none if the task holds it already or needs
    /// none. The lock outlives the permit.
    pub(super) fn take_context_lock(&mut self) -> Option<ContextLock> {
        self.context_lock.take()
    }
}

impl QueueTicket {
    /// Waits for the permit. Cancel-safe until it is granted.
    pub(super) async fn turn(&mut self) -> RunPermit {
        if self.taken || (&mut self.called).await.is_err() {
            // The permit was granted before; a ticket is granted once only.
            return std::future::pending().await;
        }
        self.taken = true;
        self.queue.turn(&self.agent, self.locked_context.take())
    }
}

impl Drop for ClientWait {
    fn drop(&mut self) {
        self.queue.change(&self.agent, |line| line.quota.waited());
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.queue.change(&self.agent, |line| line.quota.release_permit());
    }
}

impl Drop for ContextLock {
    fn drop(&mut self) {
        self.queue.change(&self.agent, |line| line.quota.free(&self.context));
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        self.queue.change(&self.agent, |line| {
            line.waiting.remove(&self.task);
            if !line.quota.give_up(&self.task) {
                // The permit was granted and not received.
                line.quota.release_permit();
                self.locked_context.iter().for_each(|context| line.quota.free(context));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const LIMITS: QuotaLimits = QuotaLimits { max_running: 1, max_queued: 2, max_waiting: 1 };

    fn ask_for(queue: &RunQueue, context: Option<&str>) -> Result<PermitRequest, Busy> {
        let agent = AgentId::parse("a").unwrap();
        queue.admit(&agent, LIMITS, &TaskId::fresh(), context.map(ContextId::new), Quota::ask)
    }

    fn ask(queue: &RunQueue) -> Result<PermitRequest, Busy> {
        ask_for(queue, None)
    }

    fn place(queue: &RunQueue) -> QueueTicket {
        match ask(queue) {
            Ok(PermitRequest::Later(place)) => place,
            Ok(PermitRequest::Now(_)) | Err(_) => panic!("there is no place"),
        }
    }

    #[test]
    fn dropped_permit_goes_to_next_task() {
        let queue = RunQueue::default();
        let Ok(PermitRequest::Now(first)) = ask(&queue) else { panic!("there is room") };
        let (mut second, mut third) = (place(&queue), place(&queue));
        assert!(ask(&queue).is_err());
        assert!(second.turn().now_or_never().is_none());
        drop(first);
        let turn = second.turn().now_or_never().unwrap();
        assert!(third.turn().now_or_never().is_none());
        drop(second);
        assert!(third.turn().now_or_never().is_none(), "only the turn counts by then");
        drop(turn);
        drop(third.turn().now_or_never().unwrap());
        drop(third);
        assert!(queue.lines().is_empty());
    }

    #[test]
    fn unclaimed_permit_is_passed_on() {
        let queue = RunQueue::default();
        let first = ask(&queue);
        let (second, gone, mut third) = (place(&queue), place(&queue), None::<QueueTicket>);
        drop(gone);
        third.replace(place(&queue));
        drop(first);
        drop(second);
        assert!(third.unwrap().turn().now_or_never().is_some());
        assert!(queue.lines().is_empty());
    }
    #[test]
    fn context_lock_is_held_until_task_ends() {
        let queue = RunQueue::default();
        let Ok(PermitRequest::Now(mut first)) = ask_for(&queue, Some("c")) else {
            panic!("no room")
        };
        let lane = first.take_context_lock();
        assert!(lane.is_some());
        let Ok(PermitRequest::Later(mut second)) = ask_for(&queue, Some("c")) else {
            panic!("no lane")
        };
        assert!(second.lock_holder.is_some(), "it can be told whom it waits for");
        // The first task waits for its client: others run, except in its conversation.
        drop(first);
        assert!(second.turn().now_or_never().is_none());
        let other = ask_for(&queue, Some("d"));
        assert!(matches!(&other, Ok(PermitRequest::Now(_))));
        drop(lane);
        assert!(second.turn().now_or_never().is_none(), "there is a lane, and no turn");
        drop(other);
        drop(second.turn().now_or_never().unwrap());
        drop(second);
        assert!(queue.lines().is_empty());
    }

    #[test]
    fn unclaimed_context_lock_is_passed_on() {
        let queue = RunQueue::default();
        let first = ask_for(&queue, Some("c"));
        let Ok(PermitRequest::Later(second)) = ask_for(&queue, Some("c")) else {
            panic!("no lane")
        };
        let Ok(PermitRequest::Later(mut third)) = ask_for(&queue, Some("c")) else {
            panic!("no lane")
        };
        drop(first);
        drop(second);
        drop(third.turn().now_or_never().unwrap());
        drop(third);
        assert!(queue.lines().is_empty());
    }
}
