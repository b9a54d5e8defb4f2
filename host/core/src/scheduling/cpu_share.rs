//! Processor scheduling among agents: a multilevel feedback queue with two levels.
//!
//! Work for an agent has high priority until the agent has used more than its share of the
//! processor. Then all its work has low priority, and gets the time that others leave, until its
//! use has been low for a while. While no other agent is active, short runs of such an agent keep
//! high priority.

use crate::scheduling::token_bucket::{Bucket, Rate};
use std::time::{Duration, Instant};

/// Use at high priority, in nanoseconds of the processor: half of a core, enough for some thousand
/// short tasks a second; the burst suffices for one task of a large interpreter.
const RATE: Rate = Rate { per_second: 500_000_000, burst: 50_000_000 };

/// Maximum debt of an agent after heavy use, in nanoseconds: it regains high priority after a
/// second.
const MAX_DEBT: u64 = 500_000_000;

/// Processor time of one run at high priority that an agent beyond its share has while no other
/// agent is active. Such a run ends before a low-priority thread would wake up, so that a busy
/// agent of short tasks causes no context switches. A spinning run exceeds this at once.
pub const SHORT_RUN: Duration = Duration::from_millis(4);

/// Time for which an agent within its share counts as active after it has run.
const ABOUT: Duration = Duration::from_secs(1);

/// Time for which a finished short run of an agent within its share throttles the low-priority
/// runs, if these would leave it no core: meanwhile its response goes out and the next request
/// comes in.
const THROTTLE_AFTER_RUN: Duration = Duration::from_millis(10);

/// Time for which an unfinished short run throttles them while it waits, for example for the disk.
const WHILE_IT_WAITS: Duration = Duration::from_millis(50);

/// Processor time that all throttled runs use together, in nanoseconds: a hundredth of a core,
/// about as much as the kernel leaves to the nicest process (`nice` 19) next to a busy one.
const MEANWHILE: Rate = Rate { per_second: 10_000_000, burst: 5_000_000 };

/// Maximum debt of the throttled runs, in nanoseconds, even after a long run: they are throttled
/// for ten seconds at most.
const MAX_THROTTLED_DEBT: u64 = 100_000_000;

/// Priority of an agent's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Runs at once.
    High,
    /// Runs when no other work is pending.
    Low,
}

/// Share of the processor of one agent.
#[derive(Clone, Debug)]
pub struct Share {
    bucket: Bucket,
    priority: Priority,
    /// Number of its throttled runs: an agent that waits for the processor does not count as low
    /// use.
    throttled: usize,
}

impl Share {
    /// Creates the share of an agent that has used nothing.
    pub fn new(now: Instant) -> Self {
        Self { bucket: Bucket::full(RATE, now), priority: Priority::High, throttled: 0 }
    }

    /// Charges processor time to the agent.
    pub fn charge(&mut self, used: Duration, now: Instant) {
        self.bucket.take(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), now);
        self.bucket.forgive(MAX_DEBT);
    }

    /// Current priority of the agent. High priority returns only with half of a burst available, so
    /// that the priority does not change with every task.
    pub fn priority(&mut self, now: Instant) -> Priority {
        let balance = self.bucket.level(now);
        self.priority = match self.priority {
            Priority::High if balance < 0 => Priority::Low,
            Priority::Low
                if balance.unsigned_abs() >= RATE.burst / 2
                    && balance > 0
                    && self.throttled == 0 =>
            {
                Priority::High
            }
            unchanged @ (Priority::High | Priority::Low) => unchanged,
        };
        self.priority
    }

    /// Records that a run of this agent is throttled.
    pub fn record_throttled(&mut self) {
        self.throttled += 1;
    }

    /// Records the end of a run's throttling; the time it `waited` adds nothing to the agent's
    /// share.
    pub fn goes_on(&mut self, waited: Duration, now: Instant) {
        self.throttled = self.throttled.saturating_sub(1);
        self.charge(Duration::from_nanos(RATE.accrued(waited)), now);
    }

    /// Priority of one run of this agent that has used this processor time, in competition with
    /// other agents.
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

/// Key of an agent.
pub type AgentKey = u64;

/// Competition for the processor by agents within their share, and the throttling of the others.
#[derive(Clone, Debug)]
pub struct Contention {
    /// Agent within its share that ran last, with the time.
    last: Option<(AgentKey, Instant)>,
    /// End of the throttling by a short run of such an agent.
    until: Option<Instant>,
    /// Processor time of throttled low-priority runs.
    meanwhile: Bucket,
    /// Number of low-priority runs in progress.
    greedy: usize,
    /// Number of cores available to low-priority runs.
    spare: usize,
}

impl Contention {
    /// Creates the state for agents that share this number of cores.
    pub fn on(cores: usize, now: Instant) -> Self {
        let (last, until, greedy) = Default::default();
        let meanwhile = Bucket::full(MEANWHILE, now);
        // One core is for an agent within its share, and one for the hub.
        let spare = cores.saturating_sub(2);
        Self { last, until, meanwhile, greedy, spare }
    }

    /// Records a run of an agent within its share.
    fn ran(&mut self, agent: AgentKey, used: Duration, now: Instant) {
        self.last = Some((agent, now));
        // Excludes long-lived runs, which could otherwise throttle all others with hardly any use.
        if used < SHORT_RUN {
            self.until = Some(now + WHILE_IT_WAITS);
        }
    }

    /// Records the end of a high-priority run.
    pub fn is_over(&mut self, now: Instant) {
        self.until = self.until.map(|until| until.min(now + THROTTLE_AFTER_RUN));
    }

    /// True if another agent than this one has run recently.
    fn is_there_for(&self, agent: AgentKey, now: Instant) -> bool {
        self.last
            .is_some_and(|(last, at)| last != agent && now.saturating_duration_since(at) < ABOUT)
    }

    /// Time for which a low-priority run must wait before it asks again; `None` if it may run now.
    pub fn holds_off(&mut self, now: Instant) -> Option<Duration> {
        let remaining = self.until?.checked_duration_since(now)?;
        if self.greedy < self.spare {
            return None;
        }
        let owed = self.meanwhile.take(0, now);
        (!owed.is_zero()).then(|| owed.min(remaining))
    }

    /// Records the start of a low-priority run.
    pub fn begins(&mut self) {
        self.greedy += 1;
    }

    /// Records the end of a low-priority run, with its processor time.
    pub fn ends(&mut self, used: Duration, now: Instant) {
        self.greedy = self.greedy.saturating_sub(1);
        self.meanwhile.take(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), now);
        self.meanwhile.forgive(MAX_THROTTLED_DEBT);
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
    fn modest_agent_keeps_high_priority() {
        let begun = begun();
        let mut share = Share::new(begun);
        for task in 0..1_000 {
            let now = begun + ms(10 * task);
            share.charge(ms(2), now);
            assert_eq!(share.priority(now), Priority::High);
        }
    }

    #[test]
    fn spinning_agent_loses_priority_until_it_stops() {
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
    fn short_run_without_competition_keeps_priority() {
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

    /// Runs a short task of an agent within its share.
    fn modest(contention: &mut Contention, used: Duration, now: Instant) {
        Share::new(now).priority_of_run(used, now, 1, contention);
        contention.is_over(now);
    }

    #[test]
    fn short_runs_throttle_greedy_runs() {
        let begun = begun();
        let mut contention = Contention::on(2, begun);
        assert_eq!(contention.holds_off(begun), None, "nobody else is about");
        let mut used = Duration::ZERO;
        // One request each millisecond for ten seconds, against a run that takes each available
        // slice of 5 ms.
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
        assert_eq!(contention.holds_off(last), Some(THROTTLE_AFTER_RUN));
        assert_eq!(contention.holds_off(last + THROTTLE_AFTER_RUN + ms(1)), None, "they are gone");
        Share::new(last).priority_of_run(ms(0), last + ms(20), 1, &mut contention);
        let waits = contention.holds_off(last + ms(50));
        assert_eq!(waits, Some(ms(20)), "it is not over");
        modest(&mut contention, SHORT_RUN, last + ms(100));
        assert_eq!(contention.holds_off(last + ms(100)), None, "a long run holds nobody off");
    }

    #[test]
    fn spare_cores_prevent_throttling() {
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
    fn throttled_agent_does_not_regain_priority() {
        let begun = begun();
        let mut share = Share::new(begun);
        share.charge(ms(551), begun);
        assert_eq!(share.priority(begun), Priority::Low);
        share.record_throttled();
        let later = begun + ms(10_000);
        assert_eq!(share.priority(later), Priority::Low);
        share.goes_on(ms(10_000), later);
        assert_eq!(share.priority(later), Priority::Low);
        assert_eq!(share.priority(later + ms(1_100)), Priority::High);
    }
}
