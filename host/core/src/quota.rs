//! How many tasks of one agent run at once, and who is next.
//!
//! ```text
//!          ask      ┌───────┐  room   ┌─────────┐ leave
//! new ─────────────►│ queue ├────────►│ running ├───────►
//!          full: no └───────┘         └──┬───▲──┘
//!                                  leave │   │ room, before the queue
//!                          its client    ▼   │
//!                          answers   ┌───────┴───┐
//!             elsewhere ────────────►│ returning │
//!                        come_back   └───────────┘
//! ```
//!
//! A task that waits for its client runs nothing, so it leaves, and comes back with the answer. It was admitted once, and
//! is not refused then, nor put behind those who came after it.
//!
//! Some agents keep one session for each conversation, in which two tasks would write at once. Their tasks name a lane, in
//! which one is at a time: from its turn until it is over, also while it waits for its client. Who waits for a lane holds up
//! nobody who needs another one.

use std::collections::VecDeque;

/// What the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLimits {
    /// How many tasks of the agent run at once.
    pub max_running: usize,
    /// Tasks that wait for that.
    pub max_queued: usize,
    /// Tasks that wait for their client while the agent takes up room.
    pub max_waiting: usize,
}

/// The room on this machine that the tasks of several agents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRoom {
    /// Tasks that wait for their clients while their agents take it up, of all those agents.
    pub waiting: usize,
    /// Tasks that there is room for.
    pub most: usize,
}

impl SharedRoom {
    /// Whether a new task may begin of an agent that cannot be let go while it waits, and has so many of its tasks waiting.
    /// Those that wait may take up half of the room, whichever agents they are of, for the other half is for those at work. Past
    /// that, an agent that has none waiting, and perhaps never asks anything, does not suffer for the others.
    pub fn admit(self, own_waiting: usize) -> Result<(), Busy> {
        let Self { waiting, most } = self;
        if own_waiting > 0 && waiting >= (most / 2).max(1) {
            return Err(Busy::SharedRoom { waiting, most });
        }
        Ok(())
    }
}

/// What a task is told that asks to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It runs at once.
    Now,
    /// It waits, until [`Quota::next`] names it.
    Later,
}

/// The agent's limits are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// Its queue is full.
    #[error(
        "{running} of its tasks run and {queued} wait; try again later, or raise `max_running` or `max_queued`"
    )]
    Queue {
        /// How many tasks are at work.
        running: usize,
        /// Tasks that wait for their turn.
        queued: usize,
    },
    /// Too many of its tasks wait for their clients.
    #[error(
        "{waiting} of its tasks wait for an answer, and each takes up room; answer them, or cancel them (`a2a-hub task cancel \
         --state input-required --older 1d`), or raise `max_waiting`"
    )]
    Questions {
        /// Tasks that wait for their client.
        waiting: usize,
    },
    /// Too many tasks of the hub wait for their clients, some of this agent's among them.
    #[error(
        "{waiting} tasks of this hub wait for an answer, and together they may take up half of the room for {most} tasks; answer \
         them, or cancel them (`a2a-hub task cancel --state input-required --older 1d`), or raise `max_tasks`"
    )]
    SharedRoom {
        /// Tasks that wait for their client, of all agents.
        waiting: usize,
        /// Tasks that there is room for.
        most: usize,
    },
}

/// The tasks of one agent that run, or wait for it. `K` names a task, `L` a lane.
#[derive(Clone, Debug)]
pub struct Quota<K, L> {
    running: usize,
    /// Those that wait for their client while the agent takes up room.
    waiting: usize,
    returning: VecDeque<Waiting<K, L>>,
    queue: VecDeque<Waiting<K, L>>,
    /// The lanes that are taken, and by which task.
    lanes: Vec<(L, K)>,
}

/// A task that waits for its turn, and for the lane that it needs.
#[derive(Clone, Debug)]
struct Waiting<K, L> {
    key: K,
    lane: Option<L>,
}

impl<K, L> Default for Quota<K, L> {
    fn default() -> Self {
        let (returning, queue) = (VecDeque::new(), VecDeque::new());
        Self { running: 0, waiting: 0, returning, queue, lanes: Vec::new() }
    }
}

impl<K: PartialEq + Clone, L: PartialEq> Quota<K, L> {
    /// A new task asks for its turn, and for the lane that it needs.
    pub fn ask(&mut self, key: K, lane: Option<L>, limits: QuotaLimits) -> Result<Turn, Busy> {
        if self.waiting >= limits.max_waiting {
            return Err(Busy::Questions { waiting: self.waiting });
        }
        let waiting = Waiting { key, lane };
        if self.has_room(&waiting, limits) {
            self.run(waiting);
            return Ok(Turn::Now);
        }
        if self.queue.len() >= limits.max_queued {
            return Err(Busy::Queue { running: self.running, queued: self.queue.len() });
        }
        self.queue.push_back(waiting);
        Ok(Turn::Later)
    }

    /// A task that was admitted before goes on; the lane is one that it needs and does not hold.
    pub fn come_back(&mut self, key: K, lane: Option<L>, limits: QuotaLimits) -> Turn {
        let waiting = Waiting { key, lane };
        if self.has_room(&waiting, limits) {
            self.run(waiting);
            return Turn::Now;
        }
        self.returning.push_back(waiting);
        Turn::Later
    }

    /// A task that had begun before takes its lane, and no turn; false if another one has that lane.
    pub fn hold(&mut self, key: K, lane: L) -> bool {
        let is_free = self.holder(&lane).is_none();
        if is_free {
            self.lanes.push((lane, key));
        }
        is_free
    }

    /// Who has taken that lane.
    pub fn holder(&self, lane: &L) -> Option<&K> {
        self.lanes.iter().find(|(taken, _)| taken == lane).map(|(_, key)| key)
    }

    /// The lane is free: the task that had taken it is over.
    pub fn free(&mut self, lane: &L) {
        self.lanes.retain(|(taken, _)| taken != lane);
    }

    /// One waits for its client, and its agent takes up room meanwhile.
    pub fn wait(&mut self) {
        self.waiting += 1;
    }

    /// How many run, or wait for their turn.
    pub fn load(&self) -> usize {
        self.running + self.returning.len() + self.queue.len()
    }

    /// How many wait for their client while the agent takes up room.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// One that waited for its client does no more.
    pub fn waited(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// One that ran does no more.
    pub fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// One that waited does no more; false if it does not wait.
    pub fn give_up(&mut self, key: &K) -> bool {
        let waited = self.returning.len() + self.queue.len();
        self.returning.retain(|waiting| waiting.key != *key);
        self.queue.retain(|waiting| waiting.key != *key);
        self.returning.len() + self.queue.len() < waited
    }

    /// Who runs now, if there is room: those who come back first, then the others, each in the order they came, but for who
    /// waits for a lane that is taken.
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

    /// Whether nobody runs or waits, and no lane is taken.
    pub fn is_idle(&self) -> bool {
        let waiting = self.returning.len() + self.queue.len();
        self.running == 0 && self.waiting == 0 && waiting == 0 && self.lanes.is_empty()
    }

    fn run(&mut self, waiting: Waiting<K, L>) {
        self.running += 1;
        self.lanes.extend(waiting.lane.map(|lane| (lane, waiting.key)));
    }

    /// Nobody overtakes those who could run as well.
    fn has_room(&self, new: &Waiting<K, L>, limits: QuotaLimits) -> bool {
        let mut waiting = self.returning.iter().chain(&self.queue);
        self.running < limits.max_running
            && self.may_go(new)
            && !waiting.any(|waiting| self.may_go(waiting))
    }

    fn may_go(&self, waiting: &Waiting<K, L>) -> bool {
        waiting.lane.as_ref().is_none_or(|lane| self.holder(lane).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: QuotaLimits = QuotaLimits { max_running: 2, max_queued: 3, max_waiting: 2 };

    #[test]
    fn first_come_first_served_and_then_refused() {
        let mut quota = Quota::<usize, char>::default();
        let told: Vec<_> = (0..6).map(|n| quota.ask(n, None, LIMITS)).collect();
        let busy = Err(Busy::Queue { running: 2, queued: 3 });
        let (now, later) = (Ok(Turn::Now), Ok(Turn::Later));
        assert_eq!(told, [now, now, later, later, later, busy]);
        assert_eq!(quota.next(LIMITS), None);
        quota.leave();
        assert!(quota.give_up(&2) && !quota.give_up(&2));
        assert_eq!((quota.next(LIMITS), quota.next(LIMITS)), (Some(3), None));
    }

    #[test]
    fn whoever_comes_back_is_not_refused_and_goes_first() {
        let mut quota = Quota::<usize, char>::default();
        for n in 0..5 {
            quota.ask(n, None, LIMITS).unwrap();
        }
        quota.leave();
        assert_eq!(
            quota.come_back(0, None, LIMITS),
            Turn::Later,
            "the place is another's by right"
        );
        assert_eq!(quota.next(LIMITS), Some(0));
        quota.leave();
        assert_eq!(quota.next(LIMITS), Some(2));
    }

    #[test]
    fn a_refusal_names_the_settings() {
        let waiting = Busy::Questions { waiting: 256 };
        insta::assert_snapshot!(waiting, @"256 of its tasks wait for an answer, and each takes up room; answer them, or cancel them (`a2a-hub task cancel --state input-required --older 1d`), or raise `max_waiting`");
        let shared = SharedRoom { waiting: 2_000, most: 4_000 }.admit(1).unwrap_err();
        insta::assert_snapshot!(shared, @"2000 tasks of this hub wait for an answer, and together they may take up half of the room for 4000 tasks; answer them, or cancel them (`a2a-hub task cancel --state input-required --older 1d`), or raise `max_tasks`");
        let busy = Busy::Queue { running: 8, queued: 64 };
        insta::assert_snapshot!(busy, @"8 of its tasks run and 64 wait; try again later, or raise `max_running` or `max_queued`");
    }

    #[test]
    fn those_who_wait_take_up_half_of_the_room_and_who_has_none_waiting_is_let_in() {
        for (waiting, most, own, admitted) in [
            (0, 4, 0, true),
            (1, 4, 1, true),
            (2, 4, 1, false),
            (2, 4, 0, true),
            (4, 4, 4, false),
            (0, 1, 0, true),
            (1, 1, 1, false),
        ] {
            let shared = SharedRoom { waiting, most };
            assert_eq!(shared.admit(own).is_ok(), admitted, "{shared:?} {own}");
        }
    }

    /// Each lane's first task asks something, and waits for its client while the others come.
    #[test]
    fn one_task_of_a_lane_at_a_time_and_no_other_lane_waits_for_it() {
        let mut quota = Quota::<usize, char>::default();
        let turns = [(0, 'a'), (1, 'a'), (2, 'b'), (3, 'a')]
            .map(|(task, lane)| quota.ask(task, Some(lane), LIMITS).unwrap());
        assert_eq!(turns, [Turn::Now, Turn::Later, Turn::Now, Turn::Later]);
        assert_eq!((quota.holder(&'a'), quota.holder(&'c')), (Some(&0), None));
        quota.leave();
        assert_eq!(quota.next(LIMITS), None, "it waits for its client, and the lane is its own");
        assert_eq!(quota.ask(4, None, LIMITS), Ok(Turn::Now), "who needs no lane is not held up");
        quota.leave();
        assert_eq!(quota.come_back(0, None, LIMITS), Turn::Now);
        quota.leave();
        quota.free(&'a');
        assert_eq!((quota.next(LIMITS), quota.next(LIMITS)), (Some(1), None));
        assert_eq!(quota.ask(5, Some('a'), LIMITS), Ok(Turn::Later));
        quota.leave();
        quota.free(&'a');
        assert_eq!(quota.next(LIMITS), Some(3), "in the order they came");
    }

    #[test]
    fn who_comes_back_without_a_lane_waits_for_it_before_new_tasks() {
        let mut quota = Quota::<usize, char>::default();
        assert_eq!(quota.come_back(0, Some('a'), LIMITS), Turn::Now);
        assert_eq!(quota.ask(1, Some('a'), LIMITS), Ok(Turn::Later));
        assert_eq!(quota.come_back(2, Some('a'), LIMITS), Turn::Later);
        quota.leave();
        quota.free(&'a');
        assert_eq!(quota.next(LIMITS), Some(2));
    }

    #[test]
    fn those_who_wait_for_their_clients_have_a_limit_and_their_answers_are_not_refused() {
        let mut quota = Quota::<usize, char>::default();
        for n in 0..2 {
            assert_eq!(quota.ask(n, None, LIMITS), Ok(Turn::Now));
            quota.wait();
            quota.leave();
        }
        assert_eq!(quota.ask(2, None, LIMITS), Err(Busy::Questions { waiting: 2 }));
        assert!(!quota.is_idle());
        quota.waited();
        assert_eq!(quota.come_back(0, None, LIMITS), Turn::Now);
        assert_eq!(quota.ask(2, None, LIMITS), Ok(Turn::Now));
    }

    proptest! {
        /// However tasks come and go: never more at once than may, one a lane, nobody is idle without need, nobody is forgotten.
        #[test]
        fn nobody_is_forgotten(steps in proptest::collection::vec((0_u8..6, 0_usize..20, 0_usize..4), 0..200)) {
            let mut quota = Quota::<usize, usize>::default();
            // Tasks with the lane that they hold; of those that wait, the one that they need, too.
            let (mut running, mut asking) = (Vec::new(), Vec::new());
            let mut waiting = Vec::<(usize, Option<usize>, Option<usize>)>::new();
            for (n, (step, pick, lane)) in steps.into_iter().enumerate() {
                let lane = (lane > 0).then_some(lane);
                match step {
                    0 | 1 => {
                        let turn = if step == 0 { quota.ask(n, lane, LIMITS) } else { Ok(quota.come_back(n, lane, LIMITS)) };
                        match turn {
                            Ok(Turn::Now) => running.push((n, lane)),
                            Ok(Turn::Later) => waiting.push((n, lane, None)),
                            Err(_) => prop_assert!(waiting.len() >= LIMITS.max_queued),
                        }
                    }
                    2 if !running.is_empty() => {
                        let (_, held) = running.remove(pick % running.len());
                        quota.leave();
                        held.iter().for_each(|lane| quota.free(lane));
                    }
                    3 if !waiting.is_empty() => {
                        let (gone, _, held) = waiting.remove(pick % waiting.len());
                        prop_assert!(quota.give_up(&gone));
                        held.iter().for_each(|lane| quota.free(lane));
                    }
                    4 if !running.is_empty() => {
                        asking.push(running.remove(pick % running.len()));
                        quota.leave();
                    }
                    5 if !asking.is_empty() => {
                        let (n, held) = asking.remove(pick % asking.len());
                        match quota.come_back(n, None, LIMITS) {
                            Turn::Now => running.push((n, held)),
                            Turn::Later => waiting.push((n, None, held)),
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
