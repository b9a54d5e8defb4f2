//! Whose turn it is on the processor: a multilevel feedback queue of two levels. Work for an agent has high priority, until
//! the agent has used more than its share of the processor; then all that is done for it has low priority, which takes what
//! others leave, until it has been modest for a while. Where no other agent wants anything, its short runs keep their priority.

use crate::bucket::{Bucket, Rate};
use std::time::{Duration, Instant};

/// What an agent may use at high priority, in nanoseconds of the processor: half of a core, some thousand short tasks a second,
/// and as much at once as a task of a large interpreter takes.
const RATE: Rate = Rate { per_second: 500_000_000, burst: 50_000_000 };

/// An agent that has used too much for a long time owes no more than this, in nanoseconds: it has high priority again after
/// a second.
const MOST_OWED: u64 = 500_000_000;

/// What one run may use at high priority, whatever its agent has used, while no other agent is about: it is over before a thread of
/// low priority would have been woken for it, so that a busy agent of short tasks costs no switches between threads. Who spins is through
/// with that at once.
pub const SHORT_RUN: Duration = Duration::from_millis(4);

/// How long an agent within its share is about after it has run.
const ABOUT: Duration = Duration::from_secs(1);

/// How urgent the work for an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// It is done at once.
    High,
    /// It is done when nothing else is to be done.
    Low,
}

/// One agent's share of the processor.
#[derive(Clone, Debug)]
pub struct Share {
    bucket: Bucket,
    priority: Priority,
}

impl Share {
    /// That of an agent that has used nothing.
    pub fn new(now: Instant) -> Self {
        Self { bucket: Bucket::full(RATE, now), priority: Priority::High }
    }

    /// The agent has used the processor for so long.
    pub fn charge(&mut self, used: Duration, now: Instant) {
        self.bucket.take(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), now);
        self.bucket.forgive(MOST_OWED);
    }

    /// How urgent its work is now. What it lost by using up its share it has back once half of a burst is there, so that it
    /// does not change with every task.
    pub fn priority(&mut self, now: Instant) -> Priority {
        let left = self.bucket.level(now);
        self.priority = match self.priority {
            Priority::High if left < 0 => Priority::Low,
            Priority::Low if left.unsigned_abs() >= RATE.burst / 2 && left > 0 => Priority::High,
            unchanged @ (Priority::High | Priority::Low) => unchanged,
        };
        self.priority
    }

    /// How urgent one run of this agent is, which has used the processor for so long, beside the others.
    pub fn priority_of_run(
        &mut self,
        used: Duration,
        now: Instant,
        agent: AgentKey,
        contention: &mut Contention,
    ) -> Priority {
        match self.priority(now) {
            Priority::High => {
                contention.ran(agent, now);
                Priority::High
            }
            Priority::Low if used < SHORT_RUN && !contention.is_there_for(agent, now) => {
                Priority::High
            }
            Priority::Low => Priority::Low,
        }
    }
}

/// What tells an agent from the others.
pub type AgentKey = u64;

/// Whether agents that are within their share want the processor, too: which of them ran last, and when.
#[derive(Clone, Debug, Default)]
pub struct Contention(Option<(AgentKey, Instant)>);

impl Contention {
    /// An agent runs that is within its share.
    fn ran(&mut self, agent: AgentKey, now: Instant) {
        self.0 = Some((agent, now));
    }

    /// Whether another one than this has run lately.
    fn is_there_for(&self, agent: AgentKey, now: Instant) -> bool {
        self.0.is_some_and(|(last, at)| last != agent && now.saturating_duration_since(at) < ABOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn begun() -> Instant {
        Instant::now()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_agent_within_its_share_keeps_its_priority() {
        let begun = begun();
        let mut share = Share::new(begun);
        for task in 0..1_000 {
            let now = begun + ms(10 * task);
            share.charge(ms(2), now);
            assert_eq!(share.priority(now), Priority::High);
        }
    }

    #[test]
    fn a_spinner_loses_its_priority_and_has_it_back_when_it_stops() {
        let begun = begun();
        let mut share = Share::new(begun);
        share.charge(ms(50), begun);
        assert_eq!(share.priority(begun), Priority::High, "a burst is its own");
        share.charge(ms(5), begun + ms(5));
        assert_eq!(share.priority(begun + ms(5)), Priority::Low);
        for tick in 1..10_000 {
            let now = begun + ms(5 * tick);
            share.charge(ms(5), now);
            assert_eq!(share.priority(now), Priority::Low);
        }
        let stopped = begun + ms(50_000);
        assert_eq!(share.priority(stopped + ms(1_000)), Priority::Low);
        assert_eq!(share.priority(stopped + ms(1_100)), Priority::High);
    }

    #[test]
    fn a_short_run_of_a_busy_agent_keeps_its_priority_while_nobody_else_is_about() {
        let (begun, mut contention) = (begun(), Contention::default());
        let (mut busy, mut modest) = (Share::new(begun), Share::new(begun));
        assert_eq!(busy.priority_of_run(SHORT_RUN, begun, 1, &mut contention), Priority::High);
        busy.charge(ms(500), begun);
        assert_eq!(busy.priority_of_run(ms(1), begun, 1, &mut contention), Priority::High);
        assert_eq!(busy.priority_of_run(SHORT_RUN, begun, 1, &mut contention), Priority::Low);

        let mut of = |share: &mut Share, agent, at| {
            share.priority_of_run(ms(1), begun + at, agent, &mut contention)
        };
        assert_eq!(of(&mut modest, 2, ms(0)), Priority::High);
        busy.charge(ms(500), begun + ms(999));
        assert_eq!(of(&mut busy, 1, ms(999)), Priority::Low, "the other one goes first");
        busy.charge(ms(500), begun + ms(1_000));
        assert_eq!(of(&mut busy, 1, ms(1_000)), Priority::High, "it has been away for a second");
    }
}
