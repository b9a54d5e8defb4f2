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

/// How long a short run of an agent within its share holds off (throttles) the runs of those that are not, where these would leave it no
/// core, once it is over: its answer goes out and the next request comes in meanwhile.
const HELD_OFF: Duration = Duration::from_millis(10);

/// How long it does so while it waits for something, such as the disk.
const WHILE_IT_WAITS: Duration = Duration::from_millis(50);

/// What those use together even so, in nanoseconds of the processor: a hundredth of a core, about what the kernel leaves to the nicest
/// process (`nice` 19) beside a busy one.
const MEANWHILE: Rate = Rate { per_second: 10_000_000, burst: 5_000_000 };

/// They owe no more than this of it, in nanoseconds, however much one of them used at once: they are held off for ten seconds at most.
const MOST_LENT: u64 = 100_000_000;

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
    /// How many of its runs are held off: who waits for the processor is not modest.
    held_off: usize,
}

impl Share {
    /// That of an agent that has used nothing.
    pub fn new(now: Instant) -> Self {
        Self { bucket: Bucket::full(RATE, now), priority: Priority::High, held_off: 0 }
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
            Priority::Low
                if left.unsigned_abs() >= RATE.burst / 2 && left > 0 && self.held_off == 0 =>
            {
                Priority::High
            }
            unchanged @ (Priority::High | Priority::Low) => unchanged,
        };
        self.priority
    }

    /// A run of this agent is held off.
    pub fn is_held_off(&mut self) {
        self.held_off += 1;
    }

    /// A run is not held off any more that was for so long: it has nothing for having waited.
    pub fn goes_on(&mut self, waited: Duration, now: Instant) {
        self.held_off = self.held_off.saturating_sub(1);
        self.charge(Duration::from_nanos(RATE.come(waited)), now);
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
                contention.ran(agent, used, now);
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

/// Whether agents that are within their share want the processor, too, and what the others are given of it meanwhile.
#[derive(Clone, Debug)]
pub struct Contention {
    /// Which of them ran last, and when.
    last: Option<(AgentKey, Instant)>,
    /// Until when a short run of one holds off the others.
    until: Option<Instant>,
    /// What runs of low priority may use while they are held off.
    meanwhile: Bucket,
    /// How many of those run.
    greedy: usize,
    /// For how many there are cores that nobody else needs.
    spare: usize,
}

impl Contention {
    /// Of agents that share so many cores.
    pub fn on(cores: usize, now: Instant) -> Self {
        let (last, until, greedy) = Default::default();
        let meanwhile = Bucket::full(MEANWHILE, now);
        // One of the others is for who is within its share, and one for the hub.
        let spare = cores.saturating_sub(2);
        Self { last, until, meanwhile, greedy, spare }
    }

    /// An agent runs that is within its share.
    fn ran(&mut self, agent: AgentKey, used: Duration, now: Instant) {
        self.last = Some((agent, now));
        // Who lives long could hold all others off with next to nothing.
        if used < SHORT_RUN {
            self.until = Some(now + WHILE_IT_WAITS);
        }
    }

    /// A run of high priority is over.
    pub fn is_over(&mut self, now: Instant) {
        self.until = self.until.map(|until| until.min(now + HELD_OFF));
    }

    /// Whether another one than this has run lately.
    fn is_there_for(&self, agent: AgentKey, now: Instant) -> bool {
        self.last
            .is_some_and(|(last, at)| last != agent && now.saturating_duration_since(at) < ABOUT)
    }

    /// Whether a run of low priority has to wait before it goes on: for how long, until it is asked again.
    pub fn holds_off(&mut self, now: Instant) -> Option<Duration> {
        let left = self.until?.checked_duration_since(now)?;
        if self.greedy < self.spare {
            return None;
        }
        let owed = self.meanwhile.take(0, now);
        (!owed.is_zero()).then(|| owed.min(left))
    }

    /// A run of low priority goes on.
    pub fn begins(&mut self) {
        self.greedy += 1;
    }

    /// It has used the processor for so long.
    pub fn ends(&mut self, used: Duration, now: Instant) {
        self.greedy = self.greedy.saturating_sub(1);
        self.meanwhile.take(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), now);
        self.meanwhile.forgive(MOST_LENT);
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
        let begun = begun();
        let mut contention = Contention::on(2, begun);
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

    /// A modest agent that has run just now.
    fn modest(contention: &mut Contention, used: Duration, now: Instant) {
        Share::new(now).priority_of_run(used, now, 1, contention);
        contention.is_over(now);
    }

    #[test]
    fn short_runs_hold_off_the_greedy_ones() {
        let begun = begun();
        let mut contention = Contention::on(2, begun);
        assert_eq!(contention.holds_off(begun), None, "nobody else is about");
        let mut used = Duration::ZERO;
        // A request each millisecond for ten seconds, and somebody who would take each turn of 5 ms that there is.
        for at in 0..10_000 {
            let now = begun + ms(at);
            modest(&mut contention, ms(0), now);
            if contention.holds_off(now).is_none() {
                contention.begins();
                contention.ends(ms(5), now);
                used += ms(5);
            }
        }
        assert_eq!(used, ms(105), "a hundredth, and what there was to begin with");
        let last = begun + ms(9_999);
        contention.ends(ms(5), last);
        assert_eq!(contention.holds_off(last), Some(HELD_OFF));
        assert_eq!(contention.holds_off(last + HELD_OFF + ms(1)), None, "they are gone");
        Share::new(last).priority_of_run(ms(0), last + ms(20), 1, &mut contention);
        let waits = contention.holds_off(last + ms(50));
        assert_eq!(waits, Some(ms(20)), "it is not over");
        modest(&mut contention, SHORT_RUN, last + ms(100));
        assert_eq!(contention.holds_off(last + ms(100)), None, "a long run holds nobody off");
    }

    #[test]
    fn nobody_is_held_off_while_there_are_cores_for_all() {
        let begun = begun();
        let mut contention = Contention::on(4, begun);
        contention.ends(ms(100), begun);
        modest(&mut contention, ms(0), begun);
        assert_eq!(contention.holds_off(begun), None);
        contention.begins();
        assert_eq!(contention.holds_off(begun), None);
        contention.begins();
        assert!(contention.holds_off(begun).is_some(), "two are left for the others");
        contention.ends(ms(1), begun);
        assert_eq!(contention.holds_off(begun), None);
    }

    #[test]
    fn who_is_held_off_is_not_modest() {
        let begun = begun();
        let mut share = Share::new(begun);
        share.charge(ms(551), begun);
        assert_eq!(share.priority(begun), Priority::Low);
        share.is_held_off();
        let later = begun + ms(10_000);
        assert_eq!(share.priority(later), Priority::Low);
        share.goes_on(ms(10_000), later);
        assert_eq!(share.priority(later), Priority::Low);
        assert_eq!(share.priority(later + ms(1_100)), Priority::High);
    }
}
