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

use std::collections::VecDeque;

/// What the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tasks at once.
    pub max_running: usize,
    /// Tasks that wait for that.
    pub max_queued: usize,
}

/// What a task is told that asks to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It runs.
    Now,
    /// It waits, until [`Quota::next`] names it.
    Later,
}

/// The agent's limits are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{running} of its tasks run and {queued} wait; try again later, or raise `max_running` or `max_queued`"
)]
pub struct Busy {
    /// Tasks at work.
    pub running: usize,
    /// Tasks that wait for their turn.
    pub queued: usize,
}

/// The tasks of one agent that run, or wait for it. `K` names a task.
#[derive(Clone, Debug)]
pub struct Quota<K> {
    running: usize,
    returning: VecDeque<K>,
    queue: VecDeque<K>,
}

impl<K> Default for Quota<K> {
    fn default() -> Self {
        Self { running: 0, returning: VecDeque::new(), queue: VecDeque::new() }
    }
}

impl<K: PartialEq> Quota<K> {
    /// A new task asks for its turn.
    pub fn ask(&mut self, key: K, limits: Limits) -> Result<Turn, Busy> {
        if self.has_room(limits) {
            self.running += 1;
            return Ok(Turn::Now);
        }
        if self.queue.len() >= limits.max_queued {
            return Err(Busy { running: self.running, queued: self.queue.len() });
        }
        self.queue.push_back(key);
        Ok(Turn::Later)
    }

    /// A task that was admitted before goes on.
    pub fn come_back(&mut self, key: K, limits: Limits) -> Turn {
        if self.has_room(limits) {
            self.running += 1;
            return Turn::Now;
        }
        self.returning.push_back(key);
        Turn::Later
    }

    /// One that ran does no more.
    pub fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// One that waited does no more; false if it does not wait.
    pub fn give_up(&mut self, key: &K) -> bool {
        let waited = self.returning.len() + self.queue.len();
        self.returning.retain(|known| known != key);
        self.queue.retain(|known| known != key);
        self.returning.len() + self.queue.len() < waited
    }

    /// Who runs now, if there is room: those who come back first, then the others, each in the order they came.
    pub fn next(&mut self, limits: Limits) -> Option<K> {
        if self.running >= limits.max_running {
            return None;
        }
        let next = self.returning.pop_front().or_else(|| self.queue.pop_front())?;
        self.running += 1;
        Some(next)
    }

    /// Whether nobody runs or waits.
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.returning.is_empty() && self.queue.is_empty()
    }

    /// Nobody overtakes those who wait.
    fn has_room(&self, limits: Limits) -> bool {
        self.running < limits.max_running && self.returning.is_empty() && self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { max_running: 2, max_queued: 3 };

    #[test]
    fn first_come_first_served_and_then_refused() {
        let mut quota = Quota::default();
        let told: Vec<_> = (0..6).map(|n| quota.ask(n, LIMITS)).collect();
        let busy = Err(Busy { running: 2, queued: 3 });
        let (now, later) = (Ok(Turn::Now), Ok(Turn::Later));
        assert_eq!(told, [now, now, later, later, later, busy]);
        assert_eq!(quota.next(LIMITS), None);
        quota.leave();
        assert!(quota.give_up(&2) && !quota.give_up(&2));
        assert_eq!((quota.next(LIMITS), quota.next(LIMITS)), (Some(3), None));
    }

    #[test]
    fn whoever_comes_back_is_not_refused_and_goes_first() {
        let mut quota = Quota::default();
        for n in 0..5 {
            quota.ask(n, LIMITS).unwrap();
        }
        quota.leave();
        assert_eq!(quota.come_back(0, LIMITS), Turn::Later, "the place is another's by right");
        assert_eq!(quota.next(LIMITS), Some(0));
        quota.leave();
        assert_eq!(quota.next(LIMITS), Some(2));
    }

    #[test]
    fn a_refusal_names_the_settings() {
        let busy = Busy { running: 8, queued: 64 };
        insta::assert_snapshot!(busy, @"8 of its tasks run and 64 wait; try again later, or raise `max_running` or `max_queued`");
    }

    proptest! {
        /// However tasks come and go: never more at once than may, nobody is idle without need, nobody is forgotten.
        #[test]
        fn nobody_is_forgotten(steps in proptest::collection::vec((0_u8..4, 0_usize..20), 0..200)) {
            let mut quota = Quota::default();
            let (mut running, mut waiting) = (Vec::new(), Vec::new());
            for (n, (step, pick)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let told = if step == 0 { quota.ask(n, LIMITS) } else { Ok(quota.come_back(n, LIMITS)) };
                        match told {
                            Ok(Turn::Now) => running.push(n),
                            Ok(Turn::Later) => waiting.push(n),
                            Err(_) => prop_assert!(waiting.len() >= LIMITS.max_queued),
                        }
                    }
                    2 if !running.is_empty() => {
                        running.remove(pick % running.len());
                        quota.leave();
                    }
                    3 if !waiting.is_empty() => {
                        let gone = waiting.remove(pick % waiting.len());
                        prop_assert!(quota.give_up(&gone));
                    }
                    _ => {}
                }
                while let Some(next) = quota.next(LIMITS) {
                    let at = waiting.iter().position(|known| *known == next);
                    running.push(waiting.remove(at.unwrap()));
                }
                prop_assert!(running.len() <= LIMITS.max_running);
                prop_assert!(waiting.is_empty() || running.len() == LIMITS.max_running);
            }
            prop_assert_eq!(quota.is_idle(), running.is_empty() && waiting.is_empty());
        }
    }
}
