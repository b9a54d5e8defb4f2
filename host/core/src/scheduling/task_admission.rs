//! Admission of one agent's tasks: limits concurrent runs and queues the others.
//!
//! ```text
//!          ask      ┌───────┐  permit ┌─────────┐ leave
//! new ─────────────►│ queue ├────────►│ running ├───────►
//!          full: no └───────┘         └──┬───▲──┘
//!                                  leave │   │ permit, before the queue
//!                          its client    ▼   │
//!                          answers   ┌───────┴───┐
//!              remote ──────────────►│ returning │
//!                        requeue     └───────────┘
//! ```
//!
//! A task that waits for its client runs nothing: it releases its permit, and is requeued with the
//! answer. The task was admitted before, so it is never refused then, and it precedes new tasks.
//!
//! Some agents have one session for each context, which allows only one writer. Their tasks name a
//! context lock, which one task holds from its start to its end, also while it waits for its
//! client. A task that waits for a lock does not delay tasks that need another lock or none.

use std::collections::VecDeque;

/// Limits that the operator sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Maximum number of the agent's running tasks.
    pub max_running: usize,
    /// Maximum number of queued tasks.
    pub max_queued: usize,
    /// Maximum number of tasks that wait for their client while the agent occupies capacity.
    pub max_waiting: usize,
}

/// Capacity of this machine that several agents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedCapacity {
    /// Number of tasks, over all these agents, that wait for their client while their agent
    /// occupies capacity.
    pub waiting: usize,
    /// Capacity in tasks.
    pub max_tasks: usize,
}

impl SharedCapacity {
    /// Checks whether an agent that cannot be evicted while it waits may start a new task;
    /// `agent_waiting` of its tasks wait already. Waiting tasks of all agents may occupy half of
    /// the capacity; the other half is for working tasks. Above that, an agent without waiting
    /// tasks is still admitted, because it may never ask anything.
    pub fn admit(self, agent_waiting: usize) -> Result<(), Busy> {
        let Self { waiting, max_tasks } = self;
        if agent_waiting > 0 && waiting >= (max_tasks / 2).max(1) {
            return Err(Busy::SharedCapacity { waiting, max_tasks });
        }
        Ok(())
    }
}

/// Result of a request for a run permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The task runs at once.
    Now,
    /// The task is queued until [`Quota::next`] returns it.
    Later,
}

/// Refusal because a limit of the agent is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// The agent's queue is full.
    #[error(
        "{running} of its tasks run and {queued} wait; try again later, or raise `max_running` or `max_queued`"
    )]
    Queue {
        /// Number of running tasks.
        running: usize,
        /// Number of queued tasks.
        queued: usize,
    },
    /// Too many of the agent's tasks wait for their clients.
    #[error(
        "{waiting} of its tasks wait for an answer, and each takes up room; answer them, or cancel them (`a2a-hub task cancel \
         --state input-required --older 1d`), or raise `max_waiting`"
    )]
    Questions {
        /// Number of tasks that wait for their client.
        waiting: usize,
    },
    /// Too many of the agent's tasks wait for its quota.
    #[error(
        "its quota is used up, and {waiting} of its tasks wait for the reset; try again later, or raise `max_queued`"
    )]
    UsedUpQuota {
        /// Number of tasks that wait for the quota.
        waiting: usize,
    },
    /// Too many tasks of the hub wait for their clients, including some of this agent.
    #[error(
        "{waiting} tasks of this hub wait for an answer, and together they may take up half of the room for {max_tasks} tasks; answer \
         them, or cancel them (`a2a-hub task cancel --state input-required --older 1d`), or raise `max_tasks`"
    )]
    SharedCapacity {
        /// Number of tasks of all agents that wait for their client.
        waiting: usize,
        /// Capacity in tasks.
        max_tasks: usize,
    },
}

/// Running and queued tasks of one agent. `K` names a task, `L` a context lock.
#[derive(Clone, Debug)]
pub struct Quota<K, L> {
    running: usize,
    /// Tasks that wait for their client while the agent occupies capacity.
    waiting: usize,
    returning: VecDeque<Waiting<K, L>>,
    queue: VecDeque<Waiting<K, L>>,
    /// Context locks that are held, with the task that holds each.
    lanes: Vec<(L, K)>,
}

/// Queued task, with the context lock that it needs.
#[derive(Clone, Debug)]
struct Waiting<K, L> {
    key: K,
    context_lock: Option<L>,
}

impl<K, L> Default for Quota<K, L> {
    fn default() -> Self {
        let (returning, queue) = (VecDeque::new(), VecDeque::new());
        Self { running: 0, waiting: 0, returning, queue, lanes: Vec::new() }
    }
}

impl<K: PartialEq + Clone, L: PartialEq> Quota<K, L> {
    /// Requests a run permit, and the context lock that it needs, for a new task.
    pub fn ask(
        &mut self,
        key: K,
        context_lock: Option<L>,
        limits: QuotaLimits,
    ) -> Result<Admission, Busy> {
        if self.waiting >= limits.max_waiting {
            return Err(Busy::Questions { waiting: self.waiting });
        }
        let waiting = Waiting { key, context_lock };
        if self.has_capacity(&waiting, limits) {
            self.run(waiting);
            return Ok(Admission::Now);
        }
        if self.queue.len() >= limits.max_queued {
            return Err(Busy::Queue { running: self.running, queued: self.queue.len() });
        }
        self.queue.push_back(waiting);
        Ok(Admission::Later)
    }

    /// Requests a run permit for a task that was admitted before; `context_lock` is a context lock
    /// that it needs and does not hold.
    pub fn requeue(&mut self, key: K, context_lock: Option<L>, limits: QuotaLimits) -> Admission {
        let waiting = Waiting { key, context_lock };
        if self.has_capacity(&waiting, limits) {
            self.run(waiting);
            return Admission::Now;
        }
        self.returning.push_back(waiting);
        Admission::Later
    }

    /// Takes a context lock without a run permit, for a task that had begun before; false if
    /// another task holds that lock.
    pub fn try_lock(&mut self, key: K, context_lock: L) -> bool {
        let is_free = self.holder(&context_lock).is_none();
        if is_free {
            self.lanes.push((context_lock, key));
        }
        is_free
    }

    /// Task that holds the context lock.
    pub fn holder(&self, context_lock: &L) -> Option<&K> {
        self.lanes.iter().find(|(taken, _)| taken == context_lock).map(|(_, key)| key)
    }

    /// Releases the context lock of a task that has ended.
    pub fn free(&mut self, context_lock: &L) {
        self.lanes.retain(|(taken, _)| taken != context_lock);
    }

    /// Counts a task that waits for its client while its agent occupies capacity.
    pub fn wait(&mut self) {
        self.waiting += 1;
    }

    /// Number of running and queued tasks.
    pub fn load(&self) -> usize {
        self.running + self.returning.len() + self.queue.len()
    }

    /// Number of tasks that wait for their client while the agent occupies capacity.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Counts a task that no longer waits for its client.
    pub fn waited(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Releases the run permit of a task.
    pub fn release_permit(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Removes a queued task; false if it is not queued.
    pub fn give_up(&mut self, key: &K) -> bool {
        let waited = self.returning.len() + self.queue.len();
        self.returning.retain(|waiting| waiting.key != *key);
        self.queue.retain(|waiting| waiting.key != *key);
        self.returning.len() + self.queue.len() < waited
    }

    /// Admits the next task if a run permit is free: requeued tasks first, then new ones, each in
    /// the order of arrival, skipping tasks whose context lock is held.
    pub fn next(&mut self, limits: QuotaLimits) -> Option<K> {
        if self.running >= limits.max_running {
            return None;
        }
        let may = |waiting: &Waiting<K, L>| self.may_go(waiting);
        let next = match self.returning.iter().position(may) {
            Some(at) => self.returning.remove(at),
            None => self.queue.iter().position(may).and_then(|at| self.queue.remove(at)),
        }?;
        let key = next.key.clone();
        self.run(next);
        Some(key)
    }

    /// True if no task runs or waits, and no context lock is held.
    pub fn is_idle(&self) -> bool {
        let waiting = self.returning.len() + self.queue.len();
        self.running == 0 && self.waiting == 0 && waiting == 0 && self.lanes.is_empty()
    }

    fn run(&mut self, waiting: Waiting<K, L>) {
        self.running += 1;
        self.lanes.extend(waiting.context_lock.map(|context_lock| (context_lock, waiting.key)));
    }

    /// A new task never overtakes a queued one that could run as well.
    fn has_capacity(&self, new: &Waiting<K, L>, limits: QuotaLimits) -> bool {
        let mut waiting = self.returning.iter().chain(&self.queue);
        self.running < limits.max_running
            && self.may_go(new)
            && !waiting.any(|waiting| self.may_go(waiting))
    }

    fn may_go(&self, waiting: &Waiting<K, L>) -> bool {
        waiting.context_lock.as_ref().is_none_or(|context_lock| self.holder(context_lock).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: QuotaLimits = QuotaLimits { max_running: 2, max_queued: 3, max_waiting: 2 };

    #[test]
    fn full_queue_refuses_further_tasks() {
        let mut quota = Quota::<usize, char>::default();
        let told: Vec<_> = (0..6).map(|n| quota.ask(n, None, LIMITS)).collect();
        let busy = Err(Busy::Queue { running: 2, queued: 3 });
        let (now, later) = (Ok(Admission::Now), Ok(Admission::Later));
        assert_eq!(told, [now, now, later, later, later, busy]);
        assert_eq!(quota.next(LIMITS), None);
        quota.release_permit();
        assert!(quota.give_up(&2) && !quota.give_up(&2));
        assert_eq!((quota.next(LIMITS), quota.next(LIMITS)), (Some(3), None));
    }

    #[test]
    fn requeued_task_is_admitted_first() {
        let mut quota = Quota::<usize, char>::default();
        for n in 0..5 {
            quota.ask(n, None, LIMITS).unwrap();
        }
        quota.release_permit();
        assert_eq!(
            quota.requeue(0, None, LIMITS),
            Admission::Later,
            "the place is another's by right"
        );
        assert_eq!(quota.next(LIMITS), Some(0));
        quota.release_permit();
        assert_eq!(quota.next(LIMITS), Some(2));
    }

    #[test]
    fn refusal_names_the_settings() {
        let waiting = Busy::Questions { waiting: 256 };
        insta::assert_snapshot!(waiting, @"256 of its tasks wait for an answer, and each takes up room; answer them, or cancel them (`a2a-hub task cancel --state input-required --older 1d`), or raise `max_waiting`");
        let shared = SharedCapacity { waiting: 2_000, max_tasks: 4_000 }.admit(1).unwrap_err();
        insta::assert_snapshot!(shared, @"2000 tasks of this hub wait for an answer, and together they may take up half of the room for 4000 tasks; answer them, or cancel them (`a2a-hub task cancel --state input-required --older 1d`), or raise `max_tasks`");
        let busy = Busy::Queue { running: 8, queued: 64 };
        insta::assert_snapshot!(busy, @"8 of its tasks run and 64 wait; try again later, or raise `max_running` or `max_queued`");
    }

    #[test]
    fn waiting_tasks_occupy_at_most_half_capacity() {
        for (waiting, most, own, admitted) in [
            (0, 4, 0, true),
            (1, 4, 1, true),
            (2, 4, 1, false),
            (2, 4, 0, true),
            (4, 4, 4, false),
            (0, 1, 0, true),
            (1, 1, 1, false),
        ] {
            let shared = SharedCapacity { waiting, max_tasks: most };
            assert_eq!(shared.admit(own).is_ok(), admitted, "{shared:?} {own}");
        }
    }

    /// The first task of each lock asks its client, and keeps the lock while others arrive.
    #[test]
    fn context_lock_serializes_only_its_own_tasks() {
        let mut quota = Quota::<usize, char>::default();
        let turns = [(0, 'a'), (1, 'a'), (2, 'b'), (3, 'a')]
            .map(|(task, lane)| quota.ask(task, Some(lane), LIMITS).unwrap());
        assert_eq!(turns, [Admission::Now, Admission::Later, Admission::Now, Admission::Later]);
        assert_eq!((quota.holder(&'a'), quota.holder(&'c')), (Some(&0), None));
        quota.release_permit();
        assert_eq!(quota.next(LIMITS), None, "it waits for its client, and the lane is its own");
        assert_eq!(
            quota.ask(4, None, LIMITS),
            Ok(Admission::Now),
            "who needs no lane is not held up"
        );
        quota.release_permit();
        assert_eq!(quota.requeue(0, None, LIMITS), Admission::Now);
        quota.release_permit();
        quota.free(&'a');
        assert_eq!((quota.next(LIMITS), quota.next(LIMITS)), (Some(1), None));
        assert_eq!(quota.ask(5, Some('a'), LIMITS), Ok(Admission::Later));
        quota.release_permit();
        quota.free(&'a');
        assert_eq!(quota.next(LIMITS), Some(3), "in the order they came");
    }

    #[test]
    fn requeued_task_waits_for_lock_first() {
        let mut quota = Quota::<usize, char>::default();
        assert_eq!(quota.requeue(0, Some('a'), LIMITS), Admission::Now);
        assert_eq!(quota.ask(1, Some('a'), LIMITS), Ok(Admission::Later));
        assert_eq!(quota.requeue(2, Some('a'), LIMITS), Admission::Later);
        quota.release_permit();
        quota.free(&'a');
        assert_eq!(quota.next(LIMITS), Some(2));
    }

    #[test]
    fn waiting_limit_refuses_new_tasks_not_answers() {
        let mut quota = Quota::<usize, char>::default();
        for n in 0..2 {
            assert_eq!(quota.ask(n, None, LIMITS), Ok(Admission::Now));
            quota.wait();
            quota.release_permit();
        }
        assert_eq!(quota.ask(2, None, LIMITS), Err(Busy::Questions { waiting: 2 }));
        assert!(!quota.is_idle());
        quota.waited();
        assert_eq!(quota.requeue(0, None, LIMITS), Admission::Now);
        assert_eq!(quota.ask(2, None, LIMITS), Ok(Admission::Now));
    }

    proptest! {
        /// For any order of requests and ends: the limit holds, a lock has one holder, no permit
        /// stays unused while a task could run, and no task is lost.
        #[test]
        fn any_steps_respect_limits_and_locks(steps in proptest::collection::vec((0_u8..6, 0_usize..20, 0_usize..4), 0..200)) {
            let mut quota = Quota::<usize, usize>::default();
            // Tasks with the lock that they hold; queued tasks also with the lock that they need.
            let (mut running, mut asking) = (Vec::new(), Vec::new());
            let mut waiting = Vec::<(usize, Option<usize>, Option<usize>)>::new();
            for (n, (step, pick, lane)) in steps.into_iter().enumerate() {
                let lane = (lane > 0).then_some(lane);
                match step {
                    0 | 1 => {
                        let turn = if step == 0 { quota.ask(n, lane, LIMITS) } else { Ok(quota.requeue(n, lane, LIMITS)) };
                        match turn {
                            Ok(Admission::Now) => running.push((n, lane)),
                            Ok(Admission::Later) => waiting.push((n, lane, None)),
                            Err(_) => prop_assert!(waiting.len() >= LIMITS.max_queued),
                        }
                    }
                    2 if !running.is_empty() => {
                        let (_, held) = running.remove(pick % running.len());
                        quota.release_permit();
                        held.iter().for_each(|lane| quota.free(lane));
                    }
                    3 if !waiting.is_empty() => {
                        let (gone, _, held) = waiting.remove(pick % waiting.len());
                        prop_assert!(quota.give_up(&gone));
                        held.iter().for_each(|lane| quota.free(lane));
                    }
                    4 if !running.is_empty() => {
                        asking.push(running.remove(pick % running.len()));
                        quota.release_permit();
                    }
                    5 if !asking.is_empty() => {
                        let (n, held) = asking.remove(pick % asking.len());
                        match quota.requeue(n, None, LIMITS) {
                            Admission::Now => running.push((n, held)),
                            Admission::Later => waiting.push((n, None, held)),
                        }
                    }
                    _ => {}
                }
                while let Some(next) = quota.next(LIMITS) {
                    let at = waiting.iter().position(|(known, ..)| *known == next);
                    let (n, needed, held) = waiting.remove(at.unwrap());
                    running.push((n, needed.or(held)));
                }
                let held = running.iter().chain(&asking).map(|(_, held)| *held);
                let taken: Vec<_> = held.chain(waiting.iter().map(|(.., held)| *held)).flatten().collect();
                prop_assert!(running.len() <= LIMITS.max_running);
                prop_assert!(taken.iter().all(|lane| taken.iter().filter(|it| *it == lane).count() == 1));
                let may_go = |needed: &Option<usize>| needed.is_none_or(|lane| !taken.contains(&lane));
                let all_wait = waiting.iter().all(|(_, needed, _)| !may_go(needed));
                prop_assert!(all_wait || running.len() == LIMITS.max_running);
                prop_assert_eq!(quota.is_idle(), running.is_empty() && waiting.is_empty() && taken.is_empty());
            }
        }
    }
}
